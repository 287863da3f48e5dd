"""Where things are kept on this machine: one folder holds all of a control plane's state."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from wattline.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class Home:
    """The layout of a state folder."""

    root: Path

    @staticmethod
    def find(environment: dict[str, str] | os._Environ[str] = os.environ) -> Home:
        """WATTLINE_HOME, or where the desktop standard puts state."""
        named = environment.get("WATTLINE_HOME")
        if named:
            return Home(Path(named).expanduser().absolute())
        state = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        return Home(Path(state) / "wattline")

    def ensure(self) -> Home:
        """Make the folder, readable by its owner alone: logs and sources are nobody else's business."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UnavailableError(
                f"state folder {self.root}: cannot be made: {error.strerror or error}",
                hint="set WATTLINE_HOME to a folder you may write to",
            ) from error
        return self

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def releases(self) -> Path:
        return self.root / "releases"

    def attempt(self, run: str, phase: str, attempt: int) -> Path:
        return self.root / "runs" / run / phase / str(attempt)

    def checkpoints(self, site: str, run: str, phase: str) -> Path:
        return self.root / "sites" / site / "checkpoints" / run / phase
