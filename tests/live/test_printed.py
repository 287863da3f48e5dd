"""What attempts print at a site is read where people ask: whole, once, and also after a break."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wattline.checkpoint import Rate
from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.live.printed import MOST_LOG_BYTES, MOST_PIECE_BYTES, Printed, read_log, write_log
from wattline.live.uplink import Uplink

ATTEMPT = "r1/train/1"


class Hub(Uplink):
    """A control plane that may be away, or know nothing of an attempt."""

    def __init__(self, folder: Path) -> None:
        super().__init__("http://127.0.0.1:9")
        self.folder = folder
        self.trouble: Exception | None = None
        self.told_bytes = 0

    def tell_log(self, site: str, attempt: str, offset: int, piece: bytes) -> int:
        if self.trouble is not None:
            raise self.trouble
        self.told_bytes += len(piece)
        return write_log(self.kept(attempt), offset, piece)

    def kept(self, attempt: str = ATTEMPT) -> Path:
        return self.folder / "hub" / attempt / "output.log"


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "output.log"
    path.write_bytes(b"step 1\n")
    return path


def wait_for(path: Path, content: bytes) -> None:
    give_up_at = time.monotonic() + 30
    while not path.exists() or path.read_bytes() != content:
        assert time.monotonic() < give_up_at, path
        time.sleep(0.02)


def test_what_is_printed_arrives_as_it_comes_and_once(hub: Hub, log: Path) -> None:
    printed = Printed("zurich", hub, lambda: None)
    printed.look([(ATTEMPT, log)])
    wait_for(hub.kept(), b"step 1\n")
    more = b"x" * (3 * MOST_PIECE_BYTES) + b"\n"
    with log.open("ab") as file:
        file.write(more)
    printed.finish(ATTEMPT, log)
    assert hub.kept().read_bytes() == b"step 1\n" + more
    assert hub.told_bytes == len(b"step 1\n" + more)
    printed.close()


def test_what_could_not_be_told_as_it_ended_is_told_by_the_next_process(hub: Hub, log: Path) -> None:
    first = Printed("zurich", hub, lambda: None)
    hub.trouble = UnavailableError("away")
    first.finish(ATTEMPT, log)
    first.close()
    assert not hub.kept().exists()
    hub.trouble = None
    write_log(hub.kept(), 0, b"step")  # what an earlier process had told
    later = Printed("zurich", hub, lambda: None)
    later.remember([(ATTEMPT, log)])
    later.look([])
    wait_for(hub.kept(), b"step 1\n")
    assert hub.told_bytes == len(b" 1\n")
    later.close()


def test_who_leaves_does_not_wait_for_a_long_output(hub: Hub, log: Path) -> None:
    log.write_bytes(b"x" * (100 * MOST_PIECE_BYTES))
    printed = Printed("zurich", hub, lambda: Rate(MOST_PIECE_BYTES))  # a piece a second
    printed.look([(ATTEMPT, log)])
    give_up_at = time.monotonic() + 30
    while not hub.told_bytes:
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
    printed.close()
    with printed._lock:  # the sender has let go of it
        assert hub.told_bytes < 50 * MOST_PIECE_BYTES


def test_one_that_is_refused_or_cannot_be_read_keeps_nobody_from_the_rest(
    hub: Hub, log: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(log)
    printed = Printed("zurich", hub, lambda: None)
    hub.trouble = RefusedError("not known")
    printed.finish("r1/train/7", log)
    hub.trouble = None
    printed.look([("r1/train/2", link), ("r1/train/7", log), (ATTEMPT, log)])
    wait_for(hub.kept(), b"step 1\n")
    assert hub.kept("r1/train/2").read_bytes() == b""
    assert not hub.kept("r1/train/7").exists()
    printed.close()


def test_attempts_that_are_over_are_not_remembered(hub: Hub, log: Path) -> None:
    printed = Printed("zurich", hub, lambda: None)
    hub.trouble = RefusedError("not known")
    printed.finish("r1/train/7", log)
    hub.trouble = None
    printed.finish(ATTEMPT, log)
    printed.look([("r1/train/2", log)])
    wait_for(hub.kept("r1/train/2"), b"step 1\n")
    with printed._lock:
        assert printed._sent.keys() == {"r1/train/2"}
        assert not printed._refused
    printed.finish(ATTEMPT, log)  # said again, it is told no second time
    assert hub.kept().read_bytes() == b"step 1\n"
    assert hub.told_bytes == 2 * len(b"step 1\n")
    printed.close()


def test_a_piece_goes_where_it_belongs_or_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "1" / "output.log"
    assert write_log(path, 0, b"abc") == 3
    assert write_log(path, 0, b"abc") == 3  # told twice
    assert write_log(path, 9, b"xyz") == 3  # what is between is missing
    assert write_log(path, 3, b"def") == 6
    assert read_log(path, 2, 3) == b"cde"
    with pytest.raises(UsageError, match="at most"):
        write_log(path, MOST_LOG_BYTES, b"x")


def test_a_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "output.log").symlink_to(tmp_path / "secret")
    with pytest.raises(UnavailableError, match="cannot be read"):
        read_log(tmp_path / "output.log", 0, 10)
    with pytest.raises(UnavailableError, match="cannot be written"):
        write_log(tmp_path / "output.log", 0, b"x")
    assert (tmp_path / "secret").read_text() == "secret"
