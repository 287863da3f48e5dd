"""What can the store refuse, lose or find broken?"""

from __future__ import annotations

from wattline.errors import RefusedError, UnavailableError


class StoreRefusedError(RefusedError):
    """What was offered breaks a rule of the store; nothing of it was written."""


class LeaseLostError(UnavailableError):
    """This process is not, or no longer, the one writer; nothing was written."""


class DatabaseAwayError(UnavailableError):
    """The database's server cannot be reached, or was lost before it answered; it may come back."""


class JournalAlteredError(UnavailableError):
    """The journal is not what was appended; `seq` is the first record that cannot be trusted."""

    def __init__(self, seq: int, what: str) -> None:
        super().__init__(
            f"journal record {seq}: {what}",
            hint="restore the store from a backup; the records before this one are intact",
        )
        self.seq = seq
