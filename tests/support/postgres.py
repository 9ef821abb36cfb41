"""A real Postgres on a loopback port, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess, free_ports
from airflow_provider_mzshare.errors import MissingProgram

OWNER = "mzshare"

BLOCK = """
CREATE FUNCTION block() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_lock_shared(7); PERFORM pg_advisory_unlock_shared(7); RETURN NULL; END $$;
CREATE TRIGGER block BEFORE INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION block()"""
"""From then on, who inserts into ``orders`` waits for whoever has the advisory lock 7."""

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_connections": "200",
    "fsync": "off",  # The data live as long as the test session.
    "shared_buffers": "64MB",
}


def program(name: str) -> str:
    """Return the path of one of Postgres' programs; Debian keeps them off the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    found = str(debian[-1]) if debian else shutil.which(name)
    if found is None:
        raise MissingProgram(f"Postgres' {name} was not found", hint="apt-get install postgresql")
    return found


class Postgres:
    """A server with its own data folder; ``url`` and ``create_database`` are what tests use.

    :param settings: of the server, besides or instead of ``SETTINGS``.
    """

    def __init__(self, **settings: str) -> None:
        self._settings = {**SETTINGS, **settings}
        # Postgres refuses to run as root. Its own account cannot enter pytest's folders: hence one of its own in /tmp.
        self._user = _account() if os.geteuid() == 0 else ""
        self.folder = Path(tempfile.mkdtemp(prefix="mzshare-postgres-"))
        self.port = free_ports(1)[0]
        self._process: ServerProcess | None = None

    def start(self) -> Postgres:
        data = self.folder / "data"
        if not data.exists():
            self._initialize(data)
        options = [word for key, value in self._settings.items() for word in ("-c", f"{key}={value}")]
        self._process = ServerProcess(
            "Postgres",
            [program("postgres"), "-D", str(data), "-p", str(self.port), *options],
            log=self.folder / "postgres.log",
            ending=signal.SIGINT,
            user=self._user,
        )
        self._process.wait_until(self._answers, 30)
        return self

    def stop(self) -> None:
        """Orderly end, clients or not; start() continues with the same data and port."""
        if self._process:
            self._process.stop()
        self._process = None

    def crash(self) -> None:
        """As if the machine had stopped: all its processes end at once. start() continues with what was on the disk."""
        if self._process:
            self._process.kill()
            # Where nobody reaps what is orphaned, its number still counts as a process that runs.
            (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        self._process = None

    def configure(self, **settings: str) -> None:
        """Change settings of the server, and start it again."""
        self.stop()
        self._settings |= settings
        self.start()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """Return a SQLAlchemy URL for psycopg 3."""
        return f"postgresql+psycopg://{OWNER}@{LOOPBACK}:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        return psycopg.connect(host=LOOPBACK, port=self.port, user=OWNER, dbname=database, autocommit=True)

    def create_database(self, template: str = "template1", *, name: str = "") -> str:
        """Return the name of a new database, which is empty or a copy."""
        name = name or f"db_{uuid4().hex[:12]}"
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        return name

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """The URL of one that goes with the block."""
        name = self.create_database(template)
        try:
            yield self.url(name)
        finally:
            self.drop_database(name)

    def drop_database(self, name: str) -> None:
        """Drop it, with whoever is still connected."""
        with self.connect() as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())

    def _initialize(self, data: Path) -> None:
        if self._user:
            account = pwd.getpwnam(self._user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        command = [program("initdb"), "-D", str(data), "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        as_user = {"user": self._user, "group": account.pw_gid, "extra_groups": []} if self._user else {}
        ran = subprocess.run(  # type: ignore[call-overload]
            command, capture_output=True, text=True, timeout=120, check=False, cwd=self.folder, **as_user
        )
        assert ran.returncode == 0, ran.stderr

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


def _account() -> str:
    """Return an account that is not root's, Postgres' own by preference."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)
