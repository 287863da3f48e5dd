"""A session: one process's view of a state folder, and the right to write to it while it has it."""

from __future__ import annotations

import getpass
import os
import sys
import time
import uuid
from pathlib import Path

import msgspec

from wattline import __version__
from wattline.control import Documents, StepRecord, refold
from wattline.decoding import decode_json
from wattline.errors import UnavailableError
from wattline.facility import Facility
from wattline.live import Home
from wattline.plane.excepting import trouble_of
from wattline.release import KeptGoods, Shelf
from wattline.spec import (
    FacilityDocument,
    Policy,
    build_facility,
    find_facility,
    find_policy,
    parse_document,
    read_facility,
    read_policy,
)
from wattline.spec.quantities import check_name
from wattline.state import (
    Adopted,
    Asked,
    Event,
    ExceptionAnswered,
    ExceptionAsked,
    Noticed,
    Released,
    RunSubmitted,
    SiteAsked,
    State,
    dump_state,
    job_id,
    load_state,
)
from wattline.store import ObjectStore, Store, open_store
from wattline.store.steps import read_steps

LEASE_SECONDS = 60.0
_MESSAGES_AT_ONCE = 1000
# What another process may hand to the writer.
Message = RunSubmitted | Asked | Released | ExceptionAsked | ExceptionAnswered | SiteAsked
_NEEDED = frozenset({"pipeline", "bundle", "folder"})
_MOST_AHEAD_SECONDS = 60.0
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Message).decode


class Session:
    """State, documents and objects of one home."""

    def __init__(self, home: Home, database: str | None = None) -> None:
        self.home = home.ensure()
        self.objects = ObjectStore(home.objects)
        self.goods = KeptGoods(self.objects)
        self.shelf = Shelf(home.releases, self.objects)
        self.store: Store = open_store(database or home.root)
        self.state: State | None = None
        self._seq = 0
        self._answered: list[str] = []
        self.refresh()

    def refresh(self) -> list[StepRecord]:
        """Fold what was journaled since last asked, and return it."""
        if self.state is None:
            self._load_snapshot()
        seen: list[StepRecord] = []

        def watch() -> list[tuple[int, StepRecord]]:
            steps = list(read_steps(self.store.journal, self._seq))
            seen.extend(record for _, record in steps)
            if steps:
                self._seq = steps[-1][0]
            return steps

        self.state = refold(self.state, watch(), self.documents)
        return seen

    @property
    def documents(self) -> Documents:
        return Documents(facility=self.facility_of, policy=self.policy_of)

    def facility_of(self, digest: str) -> Facility:
        document = parse_document(self._text(digest), FacilityDocument, file="facility.yaml")
        return build_facility(document, source=digest)

    def policy_of(self, digest: str) -> Policy:
        return parse_document(self._text(digest), Policy, file="policy.yaml")

    def policy(self) -> Policy:
        """The policy in force; the shipped default where none was adopted yet."""
        if self.state is None:
            return parse_document(find_policy("default").read_bytes(), Policy, file="policy.yaml")
        return self.policy_of(self.state.adopted["policy_sha256"])

    def keep_facility(self, name_or_path: str | Path) -> str:
        """Keep a facility document and name it by its digest."""
        read_facility(name_or_path)  # faults are told with the file's own name and lines
        return str(self.objects.put_file(find_facility(name_or_path)))

    def keep_policy(self, name_or_path: str | Path) -> str:
        read_policy(name_or_path)
        return str(self.objects.put_file(find_policy(name_or_path)))

    def adopt(self, facility_digest: str, policy_digest: str, at: float) -> Adopted:
        """Put both documents in force, and build the state on the facility if it is another."""
        facility = self.facility_of(facility_digest)
        if self.state is None:
            self.state = State(facility)
        elif self.state.adopted.get("facility_sha256") != facility_digest:
            self.state.rebase(facility)
        return Adopted(
            at=at,
            facility=facility.name,
            facility_sha256=facility_digest,
            policy=self.policy_of(policy_digest).policy,
            policy_sha256=policy_digest,
            code=__version__,
        )

    def become_writer(self, program: str = "wattline run", *, own_is_over: bool = False) -> bool:
        """Take the writer lease if it is free, or if an earlier one of this process is over."""
        holder = f"{user()} ({program})"
        if self.store.lease.try_acquire(holder, LEASE_SECONDS, own_is_over=own_is_over) is None:
            return False
        self.refresh()
        return True

    def tell(self, event: Message) -> str:
        """Hand an event to whoever is the writer; returns the message's id."""
        message_id = uuid.uuid4().hex
        self.store.inbox.put(message_id, "event", _encode(event))
        return message_id

    def requests(self) -> list[Event]:
        """What other processes have handed over; answered by the step that takes it in."""
        messages = self.store.inbox.take(_MESSAGES_AT_ONCE)
        self._answered = [message.id for message in messages]
        found: list[Event] = []
        for message in messages:
            event = _read_message(message.payload)
            trouble = "cannot be read" if event is None else _trouble(event, time.time())
            if isinstance(event, ExceptionAsked | ExceptionAnswered) and not trouble:
                trouble = trouble_of(event, self.state, self.policy())
            if event is not None and not trouble:
                found.append(event)
            else:
                say = f"a message was passed over: it {trouble}"
                found.append(Noticed(at=time.time(), subject=message.id, say=say))
        return found

    def answered(self) -> list[str]:
        """The messages of the step that is being journaled."""
        answered, self._answered = self._answered, []
        return answered

    def save_snapshot(self) -> None:
        """Let the next reader start here."""
        seq = self.store.journal.last_seq()
        if self.state is not None and seq:
            self.store.journal.save_snapshot(seq, self.state.digest(), dump_state(self.state))

    def close(self) -> None:
        self.store.close()

    def _load_snapshot(self) -> None:
        """Start at the newest snapshot that can be used; at the first record, where none can."""
        before: int | None = None
        while (snapshot := self.store.journal.latest_snapshot(before)) is not None:
            try:
                adopted = decode_json(snapshot.payload, dict)["adopted"]
                self.state = load_state(self.facility_of(adopted["facility_sha256"]), snapshot.payload)
            except (UnavailableError, msgspec.MsgspecError, LookupError, TypeError) as error:
                before = snapshot.seq
                sys.stderr.write(f"wattline: snapshot at record {before} is passed over: {error}\n")
            else:
                self._seq = snapshot.seq
                return

    def document_text(self, digest: str) -> str:
        """A document as it was kept."""
        return self._text(digest).decode()

    def _text(self, digest: str) -> bytes:
        with self.objects.open(digest) as file:
            return file.read()


def _read_message(payload: bytes) -> Message | None:
    """A message of another version that cannot be read is answered by being passed over."""
    try:
        message: Message = _decode(payload)
    except msgspec.MsgspecError:
        return None
    return message


def _trouble(event: Message, now: float) -> str:
    """What is wrong with what another process handed over; names become paths, and time never goes back."""
    if event.at > now + _MOST_AHEAD_SECONDS:
        return f"is from the future, {event.at - now:.0f} s ahead"
    if not isinstance(event, RunSubmitted):
        return ""
    missing = _NEEDED - event.documents.keys()
    if missing:
        return f"lacks {', '.join(sorted(missing))}"
    try:
        for name in (event.run, event.project, *(request.phase for request in event.jobs)):
            check_name(name)
    except ValueError as error:
        return str(error)
    strange = [
        request.job
        for request in event.jobs
        if request.run != event.run or request.job != job_id(event.run, request.phase)
    ]
    return f"names jobs of another run: {strange[:3]}" if strange or not event.jobs else ""


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def open_session(home: Home | None = None, *, must_exist: bool = False) -> Session:
    """Open the state folder that the environment names."""
    home = home or Home.find()
    if must_exist and not home.root.is_dir():
        raise UnavailableError(
            f"there is no state in {home.root}",
            hint="`wattline run` makes it; WATTLINE_HOME names another folder",
        )
    return Session(home, os.environ.get("WATTLINE_DATABASE"))
