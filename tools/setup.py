"""Make a checkout ready: .venv from the lock file, jars, Java, Postgres. Standard library only, safe to run again."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".installed"


def main() -> int:
    """Do what is missing; return 1 with one clear line when something cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    choices, about = ("no", "wanted", "required"), "what to do without it: nothing, try and note it, or fail"
    parser.add_argument("--postgres", choices=choices, default="wanted", help=about)
    options = parser.parse_args()
    try:
        make_environment()
        need_java()
        if options.postgres != "no":
            need_postgres(required=options.postgres == "required")
        run([str(VENV / "bin" / "mzshare"), "jars"])
    except Missing as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        print(f"setup: failed with code {failed.returncode}: {' '.join(map(str, failed.cmd))[:200]}", file=sys.stderr)
        return 1
    return 0


class Missing(Exception):
    """Something the machine lacks; the text says what and how to get it."""


def make_environment() -> None:
    """Bring .venv to the lock file; nothing is done when it already is there."""
    if sys.version_info < (3, 10):  # noqa: UP036  an older Python may well run this very file
        raise Missing("Python 3.10 or newer is needed; run make PYTHON=/path/to/python3.11 …")
    if not works([str(PYTHON), "-c", ""]):
        if importlib.util.find_spec("ensurepip") is None:
            need_package("python3-venv", "Python's venv module is incomplete")
        say("making .venv")
        run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    if STAMP.exists() and STAMP.read_text() == fingerprint():
        return
    uv = VENV / "bin" / "uv"
    if f"uv {uv_pin()[1]}" not in output_of([str(uv), "--version"]):
        say("fetching uv")
        pinned = VENV / "uv.txt"
        pinned.write_text(uv_pin()[0])
        pip = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run([*pip, "--no-deps", "--require-hashes", "-r", str(pinned)])
    say("installing the locked packages")
    target = ["--python", str(PYTHON)]
    run([str(uv), "pip", "sync", *target, "--require-hashes", str(LOCK)])
    run([str(uv), "pip", "install", "-q", *target, "--no-deps", "--no-build-isolation", "-e", str(ROOT)])
    STAMP.write_text(fingerprint())


def fingerprint() -> str:
    """Change with whatever an installed environment depends on."""
    content = LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()
    return hashlib.sha256(content).hexdigest()


def uv_pin() -> tuple[str, str]:
    """Return uv's entry of the lock file, with its hashes, and its version."""
    found = re.search(r"^uv==(\S+) \\\n(?:    --hash=\S+(?: \\)?\n)+", LOCK.read_text(), re.MULTILINE)
    if found is None:
        raise Missing("requirements.lock pins no uv; run make lock")
    return found[0], found[1]


def need_java() -> None:
    """Accept what the package accepts; as root on Debian, install it."""
    check = "from airflow_provider_mzshare.compute.java import java_program; java_program()"
    if not works([str(PYTHON), "-c", check]):
        need_package("openjdk-17-jre-headless", "Java 17 or 21 was not found (JAVA_HOME, or java on the PATH)")


def need_postgres(*, required: bool) -> None:
    """Postgres is for the tests only: a note is enough for anything else."""
    if shutil.which("postgres") or any(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        return
    try:
        need_package("postgresql", "Postgres was not found")
    except Missing as problem:
        if required:
            raise
        say(f"{problem} (only make test needs it)")


def need_package(package: str, problem: str) -> None:
    """Install a Debian package where that is possible, else say what to do."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(f"{problem}; get it with: sudo apt-get install {package}, or your system's package of that kind")
    say(f"{problem}: installing {package}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=quiet, check=False)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    if subprocess.run(install, env=quiet, stdout=subprocess.DEVNULL, check=False).returncode:
        raise Missing(f"{problem}, and apt-get could not install {package}")


def works(command: list[str]) -> bool:
    """Return whether the command can be run and ends well."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def output_of(command: list[str]) -> str:
    """Return its stdout, empty when it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def run(command: list[str]) -> None:
    """Run in the checkout, output shown; raise when it fails."""
    subprocess.run(command, cwd=ROOT, check=True)


def say(text: str) -> None:
    """Print at once: what follows may take a while."""
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
