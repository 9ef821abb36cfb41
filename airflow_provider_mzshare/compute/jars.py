"""Fetch and check the pinned jars of jars.json; a file that is not byte for byte the pinned one is never used."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from xml.sax.saxutils import quoteattr

from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.errors import JarProblem

GROUPS = ("spark", "kafka")
FETCH_HINT = "mzshare jars"

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, name)`` after each file: bytes so far, bytes in all, the file's name."""


@dataclass(frozen=True)
class Jar:
    """One pinned file. :param classifier: which file of the module it is, if not the main one."""

    organisation: str
    module: str
    revision: str
    file: str
    sha256: str
    size: int
    classifier: str = ""

    @property
    def coordinate(self) -> str:
        return f"{self.organisation}:{self.module}:{self.revision}"


def default_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return where jars are kept: ``MZSHARE_JARS``, else the user's cache."""
    if chosen := env.get("MZSHARE_JARS"):
        return Path(chosen).expanduser().absolute()
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mzshare" / "jars"


def pinned(groups: Iterable[str] = GROUPS) -> tuple[Jar, ...]:
    """Return the jars of these groups, in the order of the list, none twice."""
    listed = _list()
    if unknown := [group for group in groups if group not in listed]:
        raise JarProblem(f"there is no jar group {unknown[0]!r}", hint=f"one of {', '.join(listed)}")
    return tuple(dict.fromkeys(jar for group in groups for jar in listed[group]))


def missing(groups: Iterable[str], target: Path) -> list[Jar]:
    """Return the jars that are not there, or are there with other bytes than the pinned ones."""
    return _missing(pinned(groups), target)


def _missing(jars: Iterable[Jar], target: Path) -> list[Jar]:
    return [jar for jar in jars if not _is_pinned_file(jar, target / jar.file)]


def verify(groups: Iterable[str], target: Path) -> None:
    """Raise JarProblem unless every jar is there and is the pinned one."""
    _verify(pinned(groups), target)


def _verify(jars: Iterable[Jar], target: Path) -> None:
    absent = _missing(jars, target)
    if not absent:
        return
    first = absent[0]
    fault = "is not the pinned file" if (target / first.file).exists() else "is missing"
    more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
    raise JarProblem(f"jar {first.file} {fault} in {target}{more}", hint=FETCH_HINT)


def spark_jars(target: Path) -> list[Path]:
    """Return the verified jars that a Spark session needs (``spark.jars``)."""
    return _verified("spark", target)


def classpath(group: str, target: Path) -> str:
    """Return the verified jars of a group as a Java class path."""
    return os.pathsep.join(str(path) for path in _verified(group, target))


def fetch(groups: Iterable[str], target: Path, progress: Progress = lambda done, total, name: None) -> list[Jar]:
    """Bring ``target`` up to the list and return what was fetched; runs at the same time wait for each other."""
    return bring(pinned(groups), target, progress)


def bring(jars: Sequence[Jar], target: Path, progress: Progress = lambda done, total, name: None) -> list[Jar]:
    """The same for any jars that somebody has pinned."""
    with _only_one(target):
        wanted = _missing(jars, target)
        if wanted:
            _download(wanted, target, progress)
    _verify(jars, target)
    return wanted


def _verified(group: str, target: Path) -> list[Path]:
    verify([group], target)
    return [target / jar.file for jar in pinned([group])]


@cache
def _list() -> dict[str, tuple[Jar, ...]]:
    text = files(__package__).joinpath("jars.json").read_text(encoding="utf-8")
    return {group: tuple(Jar(**entry) for entry in entries) for group, entries in json.loads(text).items()}


def _is_pinned_file(jar: Jar, path: Path) -> bool:
    try:
        if path.stat().st_size != jar.size:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
    except OSError:
        return False


@contextmanager
def _only_one(target: Path) -> Iterator[None]:
    try:
        target.mkdir(parents=True, exist_ok=True)
        lock = (target / ".lock").open("w")
    except OSError as error:
        raise JarProblem(f"the jar folder {target} cannot be written: {error}", hint="set MZSHARE_JARS") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Under the lock nobody else is fetching: what an interrupted run left can go.
        for left_over in target.glob(".fetch-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield


def _download(wanted: Sequence[Jar], target: Path, progress: Progress) -> None:
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=target))
    try:
        (work / "ivy.xml").write_text(_ivy_module(wanted), encoding="utf-8")
        (work / "settings.xml").write_text(_ivy_settings(work), encoding="utf-8")
        last_words = _run_ivy(work, wanted, progress)
        faults = [fault for jar in wanted if (fault := _move_into_place(jar, work, target, last_words))]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if faults:
        raise faults[0]


def _move_into_place(jar: Jar, work: Path, target: Path, last_words: str) -> JarProblem | None:
    fetched = work / "cache" / jar.file
    if not fetched.exists():
        return JarProblem(
            f"{jar.coordinate} could not be fetched: {last_words}",
            hint=f"check the network and run mzshare jars again, or copy {jar.file} to {target}",
        )
    if not _is_pinned_file(jar, fetched):
        return JarProblem(
            f"{jar.coordinate} was fetched, but its sha256 is not the pinned one",
            hint="find out who changed the file before you go on; mzshare has not kept it",
        )
    fetched.replace(target / jar.file)
    return None


def _run_ivy(work: Path, wanted: Sequence[Jar], progress: Progress) -> str:
    """Run Ivy, report each file as it arrives, and return what Ivy said about failures."""
    # A private user folder: a ~/.m2 or ~/.ivy2 that holds poms without jars makes Ivy fail.
    command = [str(java_program()), f"-Divy.default.ivy.user.dir={work}", "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    command += ["-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"), "-confs", "default"]
    by_name = {f"{jar.organisation}#{jar.module};{jar.revision}": jar for jar in wanted}
    done, total, tail = 0, sum(jar.size for jar in wanted), deque[str](maxlen=200)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            tail.append(line)
            arrived = re.search(r"\[SUCCESSFUL ] (\S+)!", line)
            if arrived and (jar := by_name.pop(arrived[1], None)):
                done += jar.size
                progress(done, total, jar.file)
    problems = [line.strip() for line in tail if re.search(r"exception|timed out|not found|FAILED|Error", line)]
    return "; ".join(dict.fromkeys(problems[:2])) or f"Ivy ended with exit code {ivy.returncode}"


def _ivy_jar() -> Path:
    # find_spec, because importing pyspark costs a second and would load it where it is not wanted.
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = sorted(jar for place in places for jar in Path(place, "jars").glob("ivy-*.jar"))
    if not found:
        raise JarProblem("the installed pyspark has no Ivy", hint="pip install --force-reinstall pyspark==4.0.4")
    return found[-1]


def _ivy_module(wanted: Sequence[Jar]) -> str:
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.module)} rev={quoteattr(jar.revision)}"
        f' transitive="false">{_ivy_artifact(jar)}</dependency>'
        for jar in wanted
    )
    # Manager "all": both versions of kafka-clients, Spark's and the broker's, are wanted.
    return (
        '<ivy-module version="2.0" xmlns:extra="http://ant.apache.org/ivy/extra">'
        '<info organisation="mzshare" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f'<dependencies>{dependencies}<conflict org="*" module="*" manager="all"/></dependencies></ivy-module>'
    )


def _ivy_artifact(jar: Jar) -> str:
    if not jar.classifier:
        return ""
    return f'<artifact name={quoteattr(jar.module)} type="jar" extra:classifier={quoteattr(jar.classifier)}/>'


def _ivy_settings(work: Path) -> str:
    # Ivy's own public resolver, without poms (the list is complete), and a flat cache to pick files from.
    return f"""<ivysettings>
      <settings defaultResolver="public"/>
      <timeout-constraints>
        <timeout-constraint name="net" connectionTimeout="15000" readTimeout="60000"/>
      </timeout-constraints>
      <caches defaultCacheDir={quoteattr(str(work / "cache"))}
              artifactPattern="[artifact]-[revision](-[classifier]).[ext]"/>
      <resolvers>
        <ibiblio name="public" m2compatible="true" usepoms="false" timeoutConstraint="net"/>
      </resolvers>
    </ivysettings>"""
