"""Settings come from the environment, and a bad value is one clear error that shows no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.errors import BadSetting
from airflow_provider_mzshare.settings import Settings


def test_defaults_live_under_the_home_folder() -> None:
    settings = Settings.from_environment({"MZSHARE_HOME": "/data/mz"})
    assert settings.catalog_url == "sqlite:////data/mz/catalog.db"
    assert settings.warehouse == "/data/mz/warehouse"
    assert settings.jobs == Path("/data/mz/jobs")
    assert settings.master == "local[*]"
    assert (settings.lease_seconds, settings.heartbeat_seconds) == (15.0, 3.0)
    assert settings.catalog_is_embedded


def test_home_is_in_the_users_folder_and_an_empty_variable_counts_as_unset() -> None:
    settings = Settings.from_environment({"MZSHARE_HOME": ""})
    assert settings.home == Path.home() / ".mzshare"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d"),
        ("postgres://u:p@h/d", "postgresql+psycopg://u:p@h/d"),
        ("postgresql+psycopg://u:p@h/d", "postgresql+psycopg://u:p@h/d"),
        ("sqlite:////var/lib/c.db", "sqlite:////var/lib/c.db"),
    ],
)
def test_catalog_urls_are_brought_to_one_form(given: str, kept: str) -> None:
    assert Settings.from_environment({"MZSHARE_CATALOG": given}).catalog_url == kept


ODD = 'sp ace ünï 漢 it\'s "x" 100% ? : ; & $(x) `y` * {z} ~ = + @ !'


def test_folders_may_have_names_of_almost_any_characters() -> None:
    settings = Settings.from_environment({"MZSHARE_HOME": f"/data/{ODD}", "MZSHARE_JARS": f"/jars/{ODD}"})
    assert settings.home == Path("/data") / ODD
    assert settings.jars == Path("/jars") / ODD
    assert settings.warehouse == f"/data/{ODD}/warehouse"
    assert settings.catalog_url == f"sqlite:////data/{ODD}/catalog.db"


@pytest.mark.parametrize("bad", [",", "#", "\\", "\n", "\t", "😀"])
@pytest.mark.parametrize("name", ["MZSHARE_HOME", "MZSHARE_JARS"])
def test_what_spark_cannot_take_in_a_path_is_refused_by_name(name: str, bad: str) -> None:
    with pytest.raises(BadSetting, match="which Spark cannot use") as refused:
        Settings.from_environment({name: f"/data/a{bad}b"})
    assert refused.value.name == name
    assert repr(bad) in refused.value.line


@pytest.mark.parametrize("bad", ["%20", "[", "]", "<", ">", "|", "^", "\\", "\n"])
def test_what_delta_cannot_take_in_a_path_is_refused_by_name(bad: str) -> None:
    with pytest.raises(BadSetting, match="which delta-rs cannot use") as refused:
        Settings.from_environment({"MZSHARE_WAREHOUSE": f"/data/a{bad}b"})
    assert repr(bad) in refused.value.line
    if bad not in "\\\n":
        with pytest.raises(BadSetting, match=r"MZSHARE_HOME cannot be .*, or a MZSHARE_WAREHOUSE elsewhere"):
            Settings.from_environment({"MZSHARE_HOME": f"/data/a{bad}b"})
        elsewhere = {"MZSHARE_HOME": f"/data/a{bad}b", "MZSHARE_WAREHOUSE": "/wh"}
        assert Settings.from_environment(elsewhere).home == Path(f"/data/a{bad}b")


@pytest.mark.parametrize(("text", "mask"), [("", 0o077), ("077", 0o077), ("027", 0o027), ("0022", 0o022), ("000", 0)])
def test_what_others_may_do_is_the_users_to_say(text: str, mask: int) -> None:
    assert Settings.from_environment({"MZSHARE_UMASK": text}).umask == mask


def test_a_relative_catalog_file_does_not_depend_on_the_folder_of_later_processes() -> None:
    url = Settings.from_environment({"MZSHARE_CATALOG": "sqlite:///c.db"}).catalog_url
    assert url == f"sqlite:///{Path.cwd() / 'c.db'}"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MZSHARE_CATALOG", "mysql://u:hunter2@h/d"),
        ("MZSHARE_CATALOG", "hunter2"),
        ("MZSHARE_CATALOG", "sqlite://"),
        ("MZSHARE_CATALOG", "sqlite:///:memory:"),
        ("MZSHARE_WAREHOUSE", "ftp://u:hunter2@h/d"),
        ("MZSHARE_HOME", "s3://bucket/home"),
        ("MZSHARE_MASTER", "yarn"),
        ("MZSHARE_MASTER", "local[0]"),
        ("MZSHARE_MASTER", "spark://user@host:7077"),
        ("MZSHARE_BACKFILL_MASTER", "yarn"),
        ("MZSHARE_UMASK", "777"),
        ("MZSHARE_UMASK", "77"),
        ("MZSHARE_UMASK", "0x7"),
        ("MZSHARE_LEASE_SECONDS", "soon"),
        ("MZSHARE_LEASE_SECONDS", "nan"),
        ("MZSHARE_HEARTBEAT_SECONDS", "14"),
        ("MZSHARE_MAX_BACKFILLS", "0"),
        ("MZSHARE_MAX_BACKFILLS", "-1"),
        ("MZSHARE_MAX_BACKFILLS", "many"),
        ("MZSHARE_MAX_BACKFILLS", "10000"),
        ("MZSHARE_KEY_INDEX_MB", "-1"),
        ("MZSHARE_KEY_INDEX_MB", "1.5"),
        ("MZSHARE_KEY_INDEX_MB", "2g"),
        ("MZSHARE_SPARK_CONF", "[]"),
        ("MZSHARE_SPARK_CONF", '{"spark.driver.extraJavaOptions": "-javaagent:x"}'),
        ("MZSHARE_SPARK_CONF", '{"spark.jars": "x.jar"}'),
    ],
)
def test_a_bad_value_is_refused_by_name_without_showing_a_password(variable: str, value: str) -> None:
    with pytest.raises(BadSetting) as caught:
        Settings.from_environment({variable: value})
    assert caught.value.line.startswith(variable)
    assert "hunter2" not in caught.value.line
    assert "\n" not in caught.value.line


@pytest.mark.parametrize(("lease", "heartbeat"), [("2", 0.4), ("15", 3.0), ("600", 3.0)])
def test_a_heartbeat_that_is_not_given_fits_the_lease(lease: str, heartbeat: float) -> None:
    settings = Settings.from_environment({"MZSHARE_LEASE_SECONDS": lease})
    assert (settings.lease_seconds, settings.heartbeat_seconds) == (float(lease), heartbeat)


def test_a_heartbeat_that_is_given_must_fit_the_lease() -> None:
    env = {"MZSHARE_LEASE_SECONDS": "2", "MZSHARE_HEARTBEAT_SECONDS": "1.5"}
    with pytest.raises(BadSetting, match=r"MZSHARE_HEARTBEAT_SECONDS cannot be '1.5'.*half the lease of 2 s"):
        Settings.from_environment(env)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,3]", "spark://a:7077", "spark://a:7077,b:7077"])
def test_masters_that_are_accepted(master: str) -> None:
    assert Settings.from_environment({"MZSHARE_MASTER": master}).master == master


def test_how_many_backfills_may_run_is_left_to_the_machine_unless_it_is_said() -> None:
    assert Settings.from_environment({}).max_backfills is None
    assert Settings.from_environment({"MZSHARE_MAX_BACKFILLS": "12"}).max_backfills == 12


def test_the_memory_of_indexes_is_left_to_the_machine_unless_it_is_said() -> None:
    assert Settings.from_environment({}).key_index_mb is None
    assert Settings.from_environment({"MZSHARE_KEY_INDEX_MB": "0"}).key_index_mb == 0


def test_warehouse_may_be_an_object_store_or_a_file_uri() -> None:
    assert Settings.from_environment({"MZSHARE_WAREHOUSE": "s3://bucket/wh/"}).warehouse == "s3://bucket/wh"
    assert Settings.from_environment({"MZSHARE_WAREHOUSE": "file:///srv/wh"}).warehouse == "/srv/wh"


def test_spark_settings_become_text() -> None:
    env = {"MZSHARE_SPARK_CONF": '{"spark.driver.memory": "2g", "spark.ui.enabled": false, "spark.cores.max": 2}'}
    conf = Settings.from_environment(env).spark_conf
    assert conf == {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.cores.max": "2"}


def test_the_catalogs_password_is_not_shown() -> None:
    assert "hunter2" not in repr(Settings.from_environment({"MZSHARE_CATALOG": "postgresql://u:hunter2@h/d"}))
