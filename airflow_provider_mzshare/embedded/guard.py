"""Run one command and end it when the pipe on stdin closes, so that no server outlives a killed parent.

Started by path with a bare interpreter, therefore standard library only and no import of the package.
Usage: guard.py SIGNAL USER COMMAND …, where USER is ``-`` for the present one.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 10.0


def main(argv: list[str]) -> int:
    """Return the command's exit code; TERM and INT are for the command alone (it is in our group)."""
    ending, user, command = int(argv[0]), argv[1], argv[2:]
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, lambda number, frame: None)
    account = {} if user == "-" else {"user": user, "group": _group_of(user), "extra_groups": []}
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **account)  # type: ignore[call-overload]
    threading.Thread(target=_end_with_parent, args=(child, ending), daemon=True).start()
    code: int = child.wait()
    return code if code >= 0 else 128 - code


def _end_with_parent(child: subprocess.Popen[bytes], ending: int) -> None:
    while os.read(0, 1):
        pass
    child.send_signal(ending)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(0, signal.SIGKILL)


def _group_of(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
