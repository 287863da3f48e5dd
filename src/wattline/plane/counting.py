"""What do all steps of the journal come to: how SLOs stand, and what was used in weeks that are over?

What was counted is kept beside the journal with the record it belongs to, so that the next report only reads
what is new. The file is derived: without it, or where it is of another version, policy or history, all is
counted again.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wattline.control import Objectives, StepRecord, observe
from wattline.control.objectives_memory import Memory
from wattline.control.past_weeks import PastWeeks, Used
from wattline.decoding import decode_json
from wattline.errors import UnavailableError
from wattline.plane.session import Session
from wattline.plane.writing import write_atomically
from wattline.spec.slo import Slo
from wattline.state import State, dump_state, load_state
from wattline.store.steps import read_steps

FILE_NAME = "counted.json"
_VERSION = 1
# Fewer new steps are counted again sooner than they are written down.
_WORTH_KEEPING_STEPS = 500


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    seq: int
    record_sha256: str  # the hash of that record in the journal's chain
    slos_sha256: str
    objectives: Memory
    weeks: list[Used]
    state: msgspec.Raw  # after that record


@dataclass(slots=True)
class Counted:
    objectives: Objectives
    weeks: PastWeeks
    state: State | None
    seq: int = 0

    def note(self, state: State, record: StepRecord) -> None:
        self.objectives.note(state, record)
        self.weeks.note(state, record)


def count(session: Session, slos: Sequence[Slo]) -> Counted:
    """Go on from what was kept, to the end of the journal."""
    path, counted = session.home.root / FILE_NAME, None
    if path.is_file():
        counted = _load(session, path, slos)
    counted = counted or Counted(Objectives(slos), PastWeeks(), None)
    before = counted.seq

    def steps() -> Iterator[tuple[int, StepRecord]]:
        for seq, record in read_steps(session.store.journal, counted.seq):
            counted.seq = seq
            yield seq, record

    counted.state = observe(counted.state, steps(), session.documents, counted.note)
    if counted.seq - before >= _WORTH_KEEPING_STEPS:
        _keep(session, path, slos, counted)
    return counted


def _load(session: Session, path: Path, slos: Sequence[Slo]) -> Counted | None:
    try:
        kept = decode_json(path.read_bytes(), Kept)
        adopted = decode_json(bytes(kept.state), dict)["adopted"]
        known = kept.version == _VERSION and kept.slos_sha256 == _digest(slos)
        if not known or kept.record_sha256 != _hash_of(session, kept.seq):
            return None
        state = load_state(session.facility_of(adopted["facility_sha256"]), bytes(kept.state))
    except (UnavailableError, msgspec.MsgspecError, LookupError, TypeError):
        return None  # of another version: counting again gives the same
    return Counted(Objectives(slos, kept.objectives), PastWeeks(kept.weeks), state, kept.seq)


def _keep(session: Session, path: Path, slos: Sequence[Slo], counted: Counted) -> None:
    if counted.state is None:
        return
    kept = Kept(
        version=_VERSION,
        seq=counted.seq,
        record_sha256=_hash_of(session, counted.seq),
        slos_sha256=_digest(slos),
        objectives=counted.objectives.memory(),
        weeks=counted.weeks.memory(),
        state=msgspec.Raw(dump_state(counted.state)),
    )
    try:
        write_atomically(path, msgspec.json.encode(kept))
    except UnavailableError as error:  # the report is right without it
        sys.stderr.write(f"wattline: what was counted is not kept: {error}\n")


def _hash_of(session: Session, seq: int) -> str:
    return next((record.hash.hex() for record in session.store.journal.read(seq - 1, limit=1)), "")


def _digest(slos: Sequence[Slo]) -> str:
    return hashlib.sha256("\n".join(slo.model_dump_json() for slo in slos).encode()).hexdigest()
