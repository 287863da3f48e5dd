"""What is released, and how is it taken back in one step?"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.release import GateResult, Placed, ReleaseAsked, RunFacts, Shelf, build_manifest
from wattline.store import ObjectStore

# The children below do nothing but write files, so they need no lock that a thread may have held.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

LINE = ("tiny-lm", "staging")


@pytest.fixture
def shelf(tmp_path: Path, objects: ObjectStore) -> Shelf:
    return Shelf(tmp_path / "releases", objects)


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    return tmp_path / "releases" / "tiny-lm" / "staging"


@pytest.fixture
def runs(facts: RunFacts, objects: ObjectStore) -> list[str]:
    """Four runs of the same model, by the digests of their manifests."""
    return [
        objects.put_bytes(build_manifest(dataclasses.replace(facts, run_id=f"run-{number}")))
        for number in range(4)
    ]


def promote(shelf: Shelf, facts: RunFacts, digest: str, **more: Any) -> Placed:
    return shelf.promote(*LINE, digest, facts.artifacts, by="ada", at=1.0, **more)


def check_whole(channel: Path) -> str | None:
    """Whatever the link leads to is complete; gives its folder's name."""
    link = channel / "current"
    if not link.is_symlink():
        return None
    assert (link / "artifacts" / "model.bin").read_bytes() == b"weights"
    for name in ("manifest.json", "metrics.json", "gates.json", "release.json"):
        json.loads((link / name).read_bytes())
    return link.readlink().name


def test_a_release_stands_complete_in_its_folder(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    placed = promote(shelf, facts, runs[0], note="first", approved_by="grace")
    assert (placed.number, placed.previous) == (1, None)
    assert placed.path == channel / f"1-{runs[0][7:19]}"
    assert check_whole(channel) == placed.path.name
    assert (placed.path / "artifacts" / "card.md").read_text() == "# tiny-lm\n"
    assert json.loads((placed.path / "metrics.json").read_text()) == {"accuracy": 0.93, "loss": 1.5}
    release = json.loads((placed.path / "release.json").read_text())
    assert release["act"] == {"by": "ada", "at": 1.0, "note": "first", "approved_by": "grace"}
    current = shelf.current(*LINE)
    assert current is not None
    assert (current.manifest, shelf.path(current)) == (runs[0], placed.path)


def test_the_release_before_stays_complete(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    first = promote(shelf, facts, runs[0])
    second = promote(shelf, facts, runs[1])
    assert (second.number, second.previous) == (2, 1)
    assert (first.path / "artifacts" / "model.bin").read_bytes() == b"weights"
    assert check_whole(channel) == second.path.name


def test_promoting_what_is_current_changes_nothing(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    promote(shelf, facts, runs[0])
    first = promote(shelf, facts, runs[1])
    before = sorted(channel.rglob("*"))
    assert promote(shelf, facts, runs[1], note="again") == first
    assert sorted(channel.rglob("*")) == before
    assert len(shelf.history(*LINE)) == 2


def test_rolling_back_twice_goes_one_further_back_and_then_there_is_nothing(
    shelf: Shelf, facts: RunFacts, runs: list[str]
) -> None:
    for digest in runs[:3]:
        promote(shelf, facts, digest)
    back = [shelf.rollback(*LINE, by="ada", at=2.0, note="bad") for _ in range(2)]
    assert [(placed.number, placed.previous) for placed in back] == [(2, 3), (1, 2)]
    with pytest.raises(RefusedError, match="no release before 1") as refused:
        shelf.rollback(*LINE, by="ada", at=2.0)
    assert refused.value.hint == "it has 1, 2, 3"
    moves = [(move.kind, move.number, move.previous) for move in shelf.history(*LINE)]
    assert moves == [
        ("promote", 1, None), ("promote", 2, 1), ("promote", 3, 2), ("rollback", 2, 3), ("rollback", 1, 2),
    ]  # fmt: skip


def test_a_release_after_a_rollback_goes_back_to_what_it_replaced(
    shelf: Shelf, facts: RunFacts, runs: list[str]
) -> None:
    for digest in runs[:3]:
        promote(shelf, facts, digest)
    shelf.rollback(*LINE, by="ada", at=2.0, to=1)
    assert promote(shelf, facts, runs[3]).number == 4
    assert shelf.rollback(*LINE, by="ada", at=3.0).number == 1


def test_a_rollback_to_a_number_may_go_anywhere_that_exists(
    shelf: Shelf, facts: RunFacts, runs: list[str]
) -> None:
    for digest in runs[:3]:
        promote(shelf, facts, digest)
    assert shelf.rollback(*LINE, by="ada", at=2.0, to=1).number == 1
    assert shelf.rollback(*LINE, by="ada", at=2.0, to=3).number == 3
    assert shelf.rollback(*LINE, by="ada", at=2.0, to=3).number == 3
    assert len(shelf.history(*LINE)) == 5
    with pytest.raises(RefusedError, match="no release 9"):
        shelf.rollback(*LINE, by="ada", at=2.0, to=9)


def test_a_run_that_was_taken_back_can_be_promoted_again(
    shelf: Shelf, facts: RunFacts, runs: list[str]
) -> None:
    promote(shelf, facts, runs[0])
    promote(shelf, facts, runs[1])
    shelf.rollback(*LINE, by="ada", at=2.0)
    again = promote(shelf, facts, runs[1])
    assert (again.number, again.previous, again.manifest) == (3, 1, runs[1])


def test_nothing_released_means_nothing_current(shelf: Shelf) -> None:
    assert shelf.current(*LINE) is None
    assert shelf.history(*LINE) == ()
    with pytest.raises(RefusedError, match="never released"):
        shelf.rollback(*LINE, by="ada", at=1.0)


def test_approval_that_the_pipeline_requires_cannot_be_left_out(
    shelf: Shelf, facts: RunFacts, objects: ObjectStore
) -> None:
    asked = ReleaseAsked(name="tiny-lm", to="staging", approval="required")
    digest = objects.put_bytes(build_manifest(dataclasses.replace(facts, release=asked)))
    with pytest.raises(RefusedError, match="needs approval"):
        promote(shelf, facts, digest)
    assert shelf.current(*LINE) is None
    promote(shelf, facts, digest, approved_by="grace")
    current = shelf.current(*LINE)
    assert current is not None
    assert current.act.approved_by == "grace"


@pytest.mark.parametrize("outcome", ["fail", "unknown"])
def test_a_run_that_did_not_pass_its_gates_is_not_released(
    shelf: Shelf, facts: RunFacts, objects: ObjectStore, outcome: Any
) -> None:
    gate = GateResult(
        gate="accuracy > 1", outcome=outcome, values={"accuracy": 0.9}, message="accuracy = 0.9"
    )
    digest = objects.put_bytes(build_manifest(dataclasses.replace(facts, gates=(gate,))))
    with pytest.raises(RefusedError, match="accuracy > 1"):
        promote(shelf, facts, digest)


@pytest.mark.parametrize("ending", ["failed", "stopped", None])
def test_a_run_with_a_phase_that_did_not_succeed_is_not_released(
    shelf: Shelf, facts: RunFacts, objects: ObjectStore, ending: str | None
) -> None:
    (phase,) = facts.phases
    attempts = (*phase.attempts, dataclasses.replace(phase.attempts[0], outcome=ending)) if ending else ()
    phases = (phase, dataclasses.replace(phase, name="evaluate", attempts=attempts))
    digest = objects.put_bytes(build_manifest(dataclasses.replace(facts, phases=phases, gates=())))
    with pytest.raises(RefusedError, match=f"evaluate ended as {ending or 'not_started'}"):
        promote(shelf, facts, digest)


def test_only_what_the_manifest_speaks_of_is_released(
    shelf: Shelf, facts: RunFacts, objects: ObjectStore, runs: list[str]
) -> None:
    other = objects.put_bytes(b"other")
    smuggled = dataclasses.replace(facts.artifacts[0], sha256=other.hex)
    with pytest.raises(RefusedError, match="not in the manifest"):
        shelf.promote(*LINE, runs[0], [smuggled], by="ada", at=1.0)
    with pytest.raises(RefusedError, match="no artifacts"):
        shelf.promote(*LINE, runs[0], [], by="ada", at=1.0)


@pytest.mark.parametrize("name", ["../up", "", "a/b", ".hidden", "a\nb"])
def test_names_are_plain(shelf: Shelf, facts: RunFacts, runs: list[str], name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        shelf.promote(name, "staging", runs[0], facts.artifacts, by="ada", at=1.0)
    with pytest.raises(UsageError):
        shelf.current("tiny-lm", name)
    assert not (tmp_path / "releases").exists()


@pytest.mark.parametrize(
    "who", [{"by": ""}, {"by": "ada\x1b[2J"}, {"note": "x" * 2001}, {"at": float("nan")}]
)
def test_who_when_and_why_are_checked(
    shelf: Shelf, facts: RunFacts, runs: list[str], who: dict[str, Any]
) -> None:
    said: dict[str, Any] = {"by": "ada", "at": 1.0} | who
    with pytest.raises(UsageError):
        shelf.promote(*LINE, runs[0], facts.artifacts, **said)


def test_a_rollback_mends_what_was_altered_in_the_archive(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    first = promote(shelf, facts, runs[0])
    promote(shelf, facts, runs[1])
    (first.path / "artifacts" / "model.bin").write_bytes(b"tampered")
    shelf.rollback(*LINE, by="ada", at=2.0)
    assert check_whole(channel) == first.path.name


def test_a_rollback_never_leads_to_what_cannot_be_mended(
    shelf: Shelf, facts: RunFacts, runs: list[str], objects: ObjectStore, channel: Path
) -> None:
    first = promote(shelf, facts, runs[0])
    second = promote(shelf, facts, runs[1])
    (first.path / "artifacts" / "model.bin").write_bytes(b"tampered")
    for artifact in facts.artifacts:
        objects.path(f"sha256:{artifact.sha256}").unlink()
    with pytest.raises(UnavailableError):
        shelf.rollback(*LINE, by="ada", at=2.0)
    (first.path / "manifest.json").write_bytes(b"{}\n")
    with pytest.raises(UnavailableError, match="altered"):
        shelf.rollback(*LINE, by="ada", at=2.0)
    assert check_whole(channel) == second.path.name


def test_the_way_back_does_not_depend_on_the_current_release(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    first = promote(shelf, facts, runs[0])
    second = promote(shelf, facts, runs[1])
    (second.path / "release.json").write_bytes(b"garbage")
    assert shelf.rollback(*LINE, by="ada", at=2.0).number == 1
    assert check_whole(channel) == first.path.name


def test_a_release_goes_back_without_its_objects(
    shelf: Shelf, facts: RunFacts, runs: list[str], objects: ObjectStore, channel: Path
) -> None:
    first = promote(shelf, facts, runs[0])
    promote(shelf, facts, runs[1])
    for artifact in facts.artifacts:
        objects.path(f"sha256:{artifact.sha256}").unlink()
    shelf.rollback(*LINE, by="ada", at=2.0)
    assert check_whole(channel) == first.path.name


def die_at_event(number: int) -> None:
    """End this process, as kill -9 would, just before its n-th request to change the file system."""
    changes = {
        "open",
        "os.mkdir",
        "os.rename",
        "os.remove",
        "os.rmdir",
        "os.symlink",
        "os.truncate",
        "os.chmod",
    }
    seen = 0

    def watch(event: str, _: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in changes:
            seen += 1
            if seen == number:
                os._exit(9)

    sys.addaudithook(watch)


def killed_at(number: int, act: Any) -> bool:
    """Do something in a child that dies at its n-th change; False when it came to its end before."""
    child = os.fork()
    if child == 0:
        try:
            die_at_event(number)
            act()
        except BaseException:  # noqa: BLE001 (a child of a test must not go on as a second test run)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in {0, 9}
    return code == 9


def test_a_promotion_killed_anywhere_leaves_the_old_or_the_new_and_can_be_repeated(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it matters to a power cut, not to a killed process
    old = promote(shelf, facts, runs[0])
    number, outcomes = 0, set()
    while True:
        number += 1
        died = killed_at(number, lambda: promote(shelf, facts, runs[1]))
        here = check_whole(channel)
        outcomes.add(here)
        moves = [(move.kind, move.number) for move in shelf.history(*LINE)]
        assert moves[-1] == ("promote", 1 if here == old.path.name else 2)
        placed = promote(shelf, facts, runs[1])
        assert (placed.number, placed.previous) == (2, 1)
        assert check_whole(channel) == placed.path.name
        assert [(move.kind, move.number) for move in shelf.history(*LINE)] == [("promote", 1), ("promote", 2)]
        leftovers = {path.name for path in channel.iterdir()} - {old.path.name, placed.path.name}
        assert leftovers == {"current", "history.jsonl", ".lock"}
        if not died:
            break
        forget(channel, placed.path.name, old.path.name)
    assert outcomes == {old.path.name, placed.path.name}
    assert number > 20


def forget(channel: Path, new: str, old: str) -> None:
    """Make the channel what it was before the second promotion."""
    (channel / "current").unlink()
    (channel / "current").symlink_to(old)
    lines = (channel / "history.jsonl").read_bytes().splitlines(keepends=True)
    (channel / "history.jsonl").write_bytes(lines[0])
    for path in sorted((channel / new).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (channel / new).rmdir()


def test_a_rollback_killed_anywhere_has_happened_or_not(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    placed = [promote(shelf, facts, digest).path.name for digest in runs[:2]]
    number = 0
    while killed_at(number := number + 1, lambda: shelf.rollback(*LINE, by="ada", at=2.0, to=1)):
        here = check_whole(channel)
        last = shelf.history(*LINE)[-1]
        assert (last.kind, last.folder) == ("rollback" if here == placed[0] else last.kind, here)
        shelf.rollback(*LINE, by="ada", at=2.0, to=1)
        assert check_whole(channel) == placed[0]
        shelf.rollback(*LINE, by="ada", at=3.0, to=2)
    assert check_whole(channel) == placed[0]
    assert number > 5


def test_a_disk_that_refuses_leaves_the_old_release_current(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = promote(shelf, facts, runs[0])
    calls = 0
    real_fsync = os.fsync

    def refuse_at(number: int) -> None:
        def fsync(descriptor: int) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                raise OSError(28, "No space left on device")
            real_fsync(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)

    for number in range(1, 8):
        calls = 0
        refuse_at(number)
        with pytest.raises(UnavailableError, match="No space left"):
            promote(shelf, facts, runs[1])
        assert check_whole(channel) == old.path.name
        assert len(shelf.history(*LINE)) == 1
    monkeypatch.undo()
    assert promote(shelf, facts, runs[1]).number == 2


def test_promoters_at_the_same_time_take_turns(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    with ThreadPoolExecutor(4) as pool:
        placed = list(pool.map(lambda digest: promote(shelf, facts, digest), runs))
    assert sorted(one.number for one in placed) == [1, 2, 3, 4]
    moves = shelf.history(*LINE)
    assert [move.previous for move in moves] == [None, 1, 2, 3]
    assert check_whole(channel) == moves[-1].folder


def test_processes_promoting_the_same_run_make_one_release(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                promote(shelf, facts, runs[0])
            except BaseException:  # noqa: BLE001 (see above)
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert len(shelf.history(*LINE)) == 1
    assert check_whole(channel) == f"1-{runs[0][7:19]}"


def test_a_link_set_by_hand_is_believed_and_no_release_is_lost(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    placed = [promote(shelf, facts, digest) for digest in runs[:3]]
    (channel / "current").unlink()
    (channel / "current").symlink_to(placed[0].path.name)
    assert promote(shelf, facts, runs[3]).previous == 1
    assert all(one.path.is_dir() for one in placed)


def test_a_link_that_leads_to_no_release_is_named(
    shelf: Shelf, facts: RunFacts, runs: list[str], channel: Path
) -> None:
    promote(shelf, facts, runs[0])
    (channel / "current").unlink()
    (channel / "current").symlink_to("/etc")
    with pytest.raises(UnavailableError, match="no release of this channel"):
        shelf.current(*LINE)


def test_channels_are_apart(shelf: Shelf, facts: RunFacts, runs: list[str]) -> None:
    promote(shelf, facts, runs[0])
    shelf.promote("tiny-lm", "production", runs[1], facts.artifacts, by="ada", at=1.0)
    staging, production = shelf.current(*LINE), shelf.current("tiny-lm", "production")
    assert staging is not None
    assert production is not None
    assert (staging.manifest, production.manifest) == (runs[0], runs[1])
