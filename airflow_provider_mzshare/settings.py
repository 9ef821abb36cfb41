"""Where things are and how apps run, read from ``MZSHARE_*`` variables when asked for; never imports airflow."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_mzshare.errors import BadSetting
from airflow_provider_mzshare.folders import PRIVATE
from airflow_provider_mzshare.paths import bad_for_spark, bad_for_tables

OBJECT_STORES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
CATALOG_KINDS = ("sqlite", "postgresql+psycopg")

_MASTER = re.compile(r"local(\[(\*|[1-9][0-9]*)(,[1-9][0-9]*)?\])?|spark://[^\s/,@]+:[0-9]+(,[^\s/,@]+:[0-9]+)*")
_SPARK_KEYS = re.compile(
    r"spark\.(driver|executor)\.(memory|memoryOverhead|cores|maxResultSize)"
    r"|spark\.driver\.(host|port|bindAddress)|spark\.blockManager\.port"
    r"|spark\.cores\.max|spark\.default\.parallelism|spark\.local\.dir|spark\.python\.worker\.memory"
    r"|spark\.sql\.(shuffle\.partitions|session\.timeZone|execution\.arrow\.maxRecordsPerBatch)"
    r"|spark\.ui\.(enabled|port)|spark\.eventLog\.(enabled|dir|compress)|spark\.(task\.maxFailures|network\.timeout)"
)
"""What a user may tell Spark. Nothing here loads code, opens files of the driver or redirects a connection."""


@dataclass(frozen=True)
class Settings:
    """One reading of the environment. ``catalog_url`` may hold a password, so it is never shown."""

    home: Path
    catalog_url: str = field(repr=False)
    warehouse: str
    master: str = "local[*]"
    backfill_master: str | None = None
    """The master of backfills. None: half of a local ``master``, or the same cluster (``compute.masters``)."""
    launcher: str = "process"
    """How new apps are run (``compute.launchers``). Jobs that exist keep the one that started them."""
    jars: Path | None = None
    """None: the default cache of ``compute.jars``."""
    lease_seconds: float = 15.0
    heartbeat_seconds: float = 3.0
    max_backfills: int | None = None
    """How many may have an app at once. None: as many as this machine has room for (``compute.machine``)."""
    key_index_mb: int | None = None
    """The MiB of memory that an app's indexes of keys may take. None: a part of its machine's (``compute.machine``)."""
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    umask: int = PRIVATE
    """The umask of files and folders that are made: what other users may not do with them."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        env = {k: v for k, v in (os.environ if environ is None else environ).items() if v}
        home = _spark_path(env, "MZSHARE_HOME", "~/.mzshare")
        lease = _seconds(env, "MZSHARE_LEASE_SECONDS", 15.0)
        heartbeat = _seconds(env, "MZSHARE_HEARTBEAT_SECONDS", min(3.0, lease / 5))
        if heartbeat * 2 > lease:
            raise BadSetting("MZSHARE_HEARTBEAT_SECONDS", f"{heartbeat:g}", f"at most half the lease of {lease:g} s")
        return cls(
            home=home,
            catalog_url=_catalog(env, home),
            warehouse=_warehouse(env, home),
            master=_master(env, "MZSHARE_MASTER") or "local[*]",
            backfill_master=_master(env, "MZSHARE_BACKFILL_MASTER"),
            launcher=env.get("MZSHARE_LAUNCHER", "process"),
            jars=_spark_path(env, "MZSHARE_JARS", "") if "MZSHARE_JARS" in env else None,
            lease_seconds=lease,
            heartbeat_seconds=heartbeat,
            max_backfills=_count(env, "MZSHARE_MAX_BACKFILLS"),
            key_index_mb=_megabytes(env, "MZSHARE_KEY_INDEX_MB"),
            spark_conf=check_spark_conf(_spark_conf(env)),
            umask=_umask(env),
        )

    @property
    def jobs(self) -> Path:
        return self.home / "jobs"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def catalog_is_embedded(self) -> bool:
        """A file of this machine: made on first use. A server's catalog is only made when asked for."""
        return self.catalog_url.startswith("sqlite")


def check_spark_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Refuse every key that is not on the allow-list, by name."""
    for key in conf:
        if not _SPARK_KEYS.fullmatch(key):
            raise BadSetting("MZSHARE_SPARK_CONF", key, "memory, cores, parallelism, ports and event log keys of Spark")
    return dict(conf)


def is_local(warehouse: str) -> bool:
    return "://" not in warehouse


def _path(env: Mapping[str, str], name: str, default: str) -> Path:
    text = env.get(name, default)
    if "://" in text or "\0" in text:
        raise BadSetting(name, text, "a folder of this machine")
    return Path(os.path.abspath(Path(text).expanduser()))


def _spark_path(env: Mapping[str, str], name: str, default: str) -> Path:
    path = _path(env, name, default)
    if bad := bad_for_spark(str(path)):
        raise BadSetting(name, str(path), f"a folder whose path has no {bad!r}, which Spark cannot use")
    return path


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.1 <= value <= 3_600:
        raise BadSetting(name, text, "seconds, from 0.1 to 3600")
    return value


def _count(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name)
    if text is None:
        return None
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise BadSetting(name, text, "a number from 1 to 9999")
    return int(text)


def _megabytes(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name)
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,7}", text):
        raise BadSetting(name, text, "MiB, a number from 0 to 9999999")
    return int(text)


def _umask(env: Mapping[str, str]) -> int:
    text = env.get("MZSHARE_UMASK", f"{PRIVATE:03o}")
    if not re.fullmatch(r"0?0[0-7]{2}", text):
        raise BadSetting(
            "MZSHARE_UMASK", text, "three octal digits that let the owner do everything, such as 077 or 027"
        )
    return int(text, 8)


def _catalog(env: Mapping[str, str], home: Path) -> str:
    url = env.get("MZSHARE_CATALOG")
    if url is None:
        return f"sqlite:///{home / 'catalog.db'}"
    scheme, separator, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        scheme = "postgresql+psycopg"
    if not separator or scheme not in CATALOG_KINDS or not rest:
        # Only the scheme is shown: the rest may hold a password.
        shown = f"{scheme}://…" if separator else "a text without ://"
        raise BadSetting("MZSHARE_CATALOG", shown, "sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE")
    if scheme == "sqlite":
        file = rest.removeprefix("/")
        if not rest.startswith("/") or not file or file == ":memory:":
            raise BadSetting("MZSHARE_CATALOG", url, "sqlite:///FILE, because several processes use it")
        return f"sqlite:///{Path(file).expanduser().absolute()}"
    return f"{scheme}://{rest}"


def _warehouse(env: Mapping[str, str], home: Path) -> str:
    text = env.get("MZSHARE_WAREHOUSE", str(home / "warehouse"))
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _tables(env, str(_path(env, "MZSHARE_WAREHOUSE", text)))
    if scheme == "file" and rest.startswith("/"):
        return _tables(env, str(Path(rest)))
    if scheme not in OBJECT_STORES or not rest:
        raise BadSetting("MZSHARE_WAREHOUSE", f"{scheme}://…", f"a folder, or a URI of {', '.join(OBJECT_STORES)}")
    return text.rstrip("/")


def _tables(env: Mapping[str, str], path: str) -> str:
    if bad := bad_for_tables(path):
        name = "MZSHARE_WAREHOUSE" if "MZSHARE_WAREHOUSE" in env else "MZSHARE_HOME"
        wanted = f"a folder whose path has no {bad!r}, which delta-rs cannot use"
        instead = ", or a MZSHARE_WAREHOUSE elsewhere" if name == "MZSHARE_HOME" else ""
        raise BadSetting(name, path, wanted + instead)
    return path


def _master(env: Mapping[str, str], variable: str) -> str | None:
    text = env.get(variable)
    if text is not None and not _MASTER.fullmatch(text):
        raise BadSetting(variable, text, "local[*], local[N] or spark://HOST:PORT")
    return text


def _spark_conf(env: Mapping[str, str]) -> dict[str, str]:
    text = env.get("MZSHARE_SPARK_CONF", "{}")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(v, (str, int, float)) for v in value.values()):
        raise BadSetting("MZSHARE_SPARK_CONF", text, 'a JSON object, such as {"spark.driver.memory": "2g"}')
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
