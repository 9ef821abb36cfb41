"""The environment of a detached app, built from an allow-list; nothing else of the caller's reaches it."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

JOB_MARK = "MZSHARE_JOB_ID"
"""Every process of a run has its job id in this variable: so the run's processes are found again."""

_ALLOWED = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|JAVA_HOME|PYSPARK_PYTHON"
    r"|SPARK_LOCAL_(IP|HOSTNAME|DIRS)|SSL_CERT_(FILE|DIR)|(AWS|AZURE|GOOGLE)_[A-Z0-9_]+|MZSHARE_[A-Z0-9_]+"
)
_SECRET = re.compile(r"MZSHARE_(CATALOG|.*(PASSWORD|SECRET|TOKEN|CREDENTIAL).*)")
"""Variables of object stores are passed, because their clients read nothing else. Our own secrets are not passed."""


def app_environment(environ: Mapping[str, str], job_id: str) -> dict[str, str]:
    env = {k: v for k, v in environ.items() if _ALLOWED.fullmatch(k) and not _SECRET.fullmatch(k)}
    env.setdefault("PYSPARK_PYTHON", sys.executable)
    env["PYTHONUNBUFFERED"] = "1"
    env[JOB_MARK] = job_id
    if (root := checkout_root()) is not None:
        env["PYTHONPATH"] = str(root)
    return env


def package_root() -> Path:
    return Path(__file__).resolve().parents[2]


def checkout_root() -> Path | None:
    """The folder to add to the path, if the package is not installed where the interpreter finds it."""
    parent = package_root().parent
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    return None if parent in installed else parent
