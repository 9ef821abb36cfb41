"""The pinned jar list: complete, checked byte for byte, and fetched without trusting anybody."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.java import feature_version, java_program
from airflow_provider_mzshare.errors import JarProblem, MissingProgram


def test_every_entry_is_whole() -> None:
    for jar in jars.pinned():
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256), jar
        assert jar.size > 0
        assert jar.file == f"{jar.module}-{jar.revision}.jar"


def test_no_file_comes_twice_and_no_host_is_named() -> None:
    names = [jar.file for jar in jars.pinned()]
    assert len(names) == len(set(names))
    text = Path(jars.__file__).with_name("jars.json").read_text()
    assert "://" not in text


def test_groups_hold_what_apps_need() -> None:
    spark = {jar.coordinate for jar in jars.pinned(["spark"])}
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0" in spark
    assert "io.delta:delta-spark_4.0_2.13:4.1.0" in spark
    kafka = {jar.coordinate for jar in jars.pinned(["kafka"])}
    assert {"org.apache.kafka:kafka_2.13:4.1.1", "org.apache.kafka:kafka-tools:4.1.1"} <= kafka
    with pytest.raises(JarProblem, match="no jar group 'flink'"):
        jars.pinned(["flink"])


def test_missing_and_changed_files_are_told_apart(tmp_path: Path, one_pinned: jars.Jar) -> None:
    with pytest.raises(JarProblem, match=r"small-1\.jar is missing") as caught:
        jars.verify(["spark"], tmp_path)
    assert caught.value.line.endswith("Try: mzshare jars")
    (tmp_path / one_pinned.file).write_bytes(b"jaX")
    with pytest.raises(JarProblem, match="is not the pinned file"):
        jars.verify(["spark"], tmp_path)
    assert jars.missing(["spark"], tmp_path) == [one_pinned]
    (tmp_path / one_pinned.file).write_bytes(b"jar")
    jars.verify(["spark"], tmp_path)
    assert jars.spark_jars(tmp_path) == [tmp_path / one_pinned.file]
    assert jars.classpath("spark", tmp_path) == str(tmp_path / one_pinned.file)


@pytest.mark.parametrize(
    ("fetched", "message"),
    [("jar", None), ("not", "sha256 is not the pinned one"), (None, "could not be fetched: module not found: a#small")],
)
def test_only_the_pinned_bytes_are_kept(
    tmp_path: Path, one_pinned: jars.Jar, monkeypatch: pytest.MonkeyPatch, fetched: str | None, message: str | None
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java_that_fetches(tmp_path, fetched)))
    target, seen = tmp_path / "jars", []
    (tmp_path / "jars" / ".fetch-old").mkdir(parents=True)
    if message is None:
        assert jars.fetch(["spark"], target, lambda *step: seen.append(step)) == [one_pinned]
        assert seen == [(3, 3, "small-1.jar")]
        assert jars.fetch(["spark"], target) == []
    else:
        with pytest.raises(JarProblem, match=message):
            jars.fetch(["spark"], target)
    assert {path.name for path in target.iterdir()} == {".lock"} | ({"small-1.jar"} if message is None else set())


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JarProblem, match="cannot be written"):
        jars.fetch(["spark"], tmp_path / "file" / "jars")


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"MZSHARE_JARS": "/some/where", "XDG_CACHE_HOME": "/cache"}, "/some/where"),
        ({"XDG_CACHE_HOME": "/cache"}, "/cache/mzshare/jars"),
        ({}, str(Path.home() / ".cache/mzshare/jars")),
    ],
)
def test_where_jars_are_kept(env: dict[str, str], folder: str) -> None:
    assert str(jars.default_folder(env)) == folder


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_401"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "21.0.2" 2024-01-16', 21),
    ],
)
def test_java_versions_are_understood(said: str, version: int) -> None:
    assert feature_version(said) == version


@pytest.mark.parametrize(
    ("answer", "message"),
    [('openjdk version "11.0.2"', "is Java 11, but"), ('openjdk version "25"', "is Java 25, but"), ("?", "understand")],
)
def test_a_java_that_does_not_fit_is_refused(tmp_path: Path, answer: str, message: str) -> None:
    _program(tmp_path / "bin" / "java", f"echo '{answer}' >&2")
    with pytest.raises(MissingProgram, match=message) as caught:
        java_program({"JAVA_HOME": str(tmp_path)})
    assert "openjdk-17" in caught.value.hint


def test_no_java_is_reported_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingProgram, match="was not found"):
        java_program({"PATH": str(tmp_path)})
    with pytest.raises(MissingProgram, match="cannot be run"):
        java_program({"JAVA_HOME": str(tmp_path)})


@pytest.fixture
def one_pinned(monkeypatch: pytest.MonkeyPatch) -> jars.Jar:
    """A list with one small jar in the group spark, whose bytes are ``jar``."""
    sha256 = hashlib.sha256(b"jar").hexdigest()
    jar = jars.Jar("a", "small", "1", "small-1.jar", sha256, 3)
    monkeypatch.setattr(jars, "_list", lambda: {"spark": (jar,)})
    return jar


def _java_that_fetches(folder: Path, content: str | None) -> Path:
    """A Java 17 whose Ivy puts ``content`` where the real one would, or finds nothing."""
    home = folder / "java"
    found = f'printf {content} > "$cache/small-1.jar"; echo "[SUCCESSFUL ] a#small;1!small.jar (1ms)"'
    script = f"""
        if [ "$1" = -version ]; then echo 'openjdk version "17.0.1"' >&2; exit; fi
        cache="${{1#*=}}/cache"; mkdir -p "$cache"
        {found if content else 'echo "module not found: a#small;1"; exit 1'}
    """
    _program(home / "bin" / "java", script)
    return home


def _program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    os.chmod(path, path.stat().st_mode | stat.S_IXUSR)
