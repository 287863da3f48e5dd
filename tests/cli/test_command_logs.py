from __future__ import annotations

import os
import pty
import subprocess
import threading
import time
from pathlib import Path

import pytest

from cli.looking import COMMAND, Wattline, Writing
from wattline.state import AttemptEnded, Ending


def test_into_a_pipe_a_log_goes_as_it_is(ran: str, wattline: Wattline) -> None:
    shown = wattline("logs", "train")
    assert shown.code == 0
    assert shown.out == "\x1b[31mtrained\x1b[0m\r100 %\n"


def test_a_run_shows_all_its_phases_under_titles(ran: str, wattline: Wattline) -> None:
    shown = wattline("logs", ran)
    assert shown.out.startswith(f"==> {ran}/prepare, attempt 1 <==\nready\n==> {ran}/train, attempt 1 <==\n")


def test_on_a_terminal_a_log_cannot_give_orders(ran: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([*COMMAND, "logs", "train"], stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # how Linux says that nobody holds the other end any more
            pass
        process.wait(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert shown.replace(b"\r\n", b"\n") == b"\\x1b[31mtrained\\x1b[0m\n100 %\n"


def test_json_names_the_attempt_and_holds_the_text(ran: str, wattline: Wattline) -> None:
    (log,) = wattline("logs", "prepare", "--output", "json").json["logs"]
    assert (log["job"], log["attempt"], log["text"]) == (f"{ran}/prepare", 1, "ready\n")


def test_an_attempt_that_never_was_is_told(ran: str, wattline: Wattline) -> None:
    shown = wattline("logs", "train", "--attempt", "7")
    assert shown.code == 2
    assert "has no attempt 7" in shown.err
    assert "it has 1 to 1" in shown.err


@pytest.mark.usefixtures("ran")
def test_what_cannot_be_asked_together_is_refused(wattline: Wattline) -> None:
    assert wattline("logs", "--attempt", "1").code == 2
    assert wattline("logs", "train", "--follow", "--output", "json").code == 2


def test_what_a_script_put_in_place_of_its_log_is_not_followed(
    ran: str, home: Path, wattline: Wattline
) -> None:
    log = home / "runs" / ran / "train" / "1" / "output.log"
    log.unlink()
    log.symlink_to("/etc/passwd")
    assert wattline("logs", "train").code == 3
    log.unlink()
    os.mkfifo(log)
    assert wattline("logs", "train").code == 3


def test_a_job_that_has_not_started_has_no_log_yet(writing: Writing, wattline: Wattline) -> None:
    writing.submit("run")
    shown = wattline("logs", "train")
    assert shown.code == 3
    assert "not started" in shown.err


@pytest.mark.usefixtures("ran")
def test_following_what_has_ended_ends_at_once(wattline: Wattline) -> None:
    assert wattline("logs", "train", "--follow").out.count("trained") == 1


def test_following_shows_what_comes_until_the_job_has_ended(
    writing: Writing, home: Path, wattline: Wattline
) -> None:
    writing.submit("run")
    writing.decide()
    log = home / "runs" / "run" / "train" / "1" / "output.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\n")
    writing.session.close()
    conducting = threading.Event()

    def conduct() -> None:
        """Another process, as far as the store can tell; its connections are its own."""
        later = Writing.__new__(Writing)
        later.reopen(home)
        conducting.set()
        time.sleep(0.5)
        with log.open("a") as file:
            file.write("two\n")
        later.step(AttemptEnded(at=later.now, job="run/train", attempt=1, ending=Ending.SUCCEEDED))
        time.sleep(1.0)
        later.session.close()

    thread = threading.Thread(target=conduct)
    thread.start()
    assert conducting.wait(timeout=30)
    shown = wattline("logs", "train", "--follow")
    thread.join()
    assert (shown.code, shown.out) == (0, "one\ntwo\n")
