"""An installed wheel, and its programs run where the checkout cannot be seen."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WheelEnv:
    """An environment with the locked packages and our wheel; ``run`` starts its programs outside the checkout."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def environment(self, **more: str) -> dict[str, str]:
        """Return variables that name nothing of the checkout or its .venv."""
        kept = {name: os.environ[name] for name in ("LANG", "TZ", "JAVA_HOME") if name in os.environ}
        path = os.pathsep.join([str(self.python.parent), "/usr/local/bin", "/usr/bin", "/bin"])
        return {**kept, "HOME": str(self.folder), "PATH": path, **more}

    def run(self, command: Sequence[str | Path], timeout: float = 120, **more: str) -> str:
        """Run one of its programs and return what it printed; fail with its errors."""
        program = self.python.with_name(str(command[0]))
        ran = subprocess.run(
            [program, *command[1:]],
            cwd=self.folder,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout
