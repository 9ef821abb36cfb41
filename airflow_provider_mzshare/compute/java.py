"""Find a Java that Spark and Kafka can run on; it must not install anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from airflow_provider_mzshare.errors import MissingProgram

OLDEST, NEWEST = 17, 23  # Java 24 took away the security manager calls that Spark 4.0 still makes.
HOW_TO_GET = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME to a Java 17 or 21"


def java_program(env: Mapping[str, str] = os.environ) -> Path:
    """Return the ``java`` of JAVA_HOME, else the one on the PATH, once its version is known to fit."""
    home = env.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java", path=env.get("PATH"))
    if found is None:
        raise MissingProgram("Java was not found", hint=HOW_TO_GET)
    version = _version_text(found)
    feature = feature_version(version)
    if not OLDEST <= feature <= NEWEST:
        raise MissingProgram(f"{found} is Java {feature}, but Java 17 or 21 is needed", hint=HOW_TO_GET)
    return Path(found)


def feature_version(text: str) -> int:
    """Return 17 for what ``java -version`` of Java 17 prints, 8 for Java 8's ``1.8.0``."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if match is None:
        raise MissingProgram(f"mzshare does not understand the answer of java -version: {text[:80]!r}", hint=HOW_TO_GET)
    return int(match.group(1))


def _version_text(program: str) -> str:
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingProgram(f"{program} cannot be run: {error}", hint=HOW_TO_GET) from error
    return ran.stderr + ran.stdout
