"""Accounting is asked for in pieces, smaller ones where a day is too much; what is missing is said."""

import pytest

from wattline.errors import UnavailableError
from wattline.observing.asking import ReadOnly
from wattline.observing.reading import read_accounting, read_cluster
from wattline.observing.remarks import Remarks
from wattline.observing.window import window_before
from wattline.twin.traces.flaws import time_of

NAMES = "JobIDRaw|JobID|State|Submit|Start|End|NodeList|AllocTRES|ReqTRES"
WINDOW = window_before(1_800_000_000.0, 2 * 86400.0)


class Busy(ReadOnly):
    """A cluster where so many seconds are the most that sacct can tell at once."""

    def __init__(self, most_seconds: float, why: str) -> None:
        super().__init__(slurm=True)
        self.most_seconds, self.why = most_seconds, why
        self.pieces: list[tuple[float, float]] = []

    def slurm(self, *command: str) -> str:
        if command[0] == "scontrol" and command[-1] != "node":
            raise UnavailableError(self.why)
        if command[0] != "sacct":
            return "NodeName=n1 CPUTot=8 Gres=gpu:8 State=IDLE"
        begins, ends = (time_of("a piece", command[command.index(flag) + 1]) for flag in ("-S", "-E"))
        if ends - begins > self.most_seconds:
            raise UnavailableError(self.why)
        self.pieces.append((begins, ends))
        return f"{NAMES}\n7|7|RUNNING|{begins:.0f}|{begins:.0f}|Unknown|n1|gres/gpu=8|gres/gpu=8\n"


@pytest.mark.parametrize("why", ["Slurm: sacct printed more than 64 MiB", "no answer within 120 s"])
def test_a_day_that_is_too_much_is_asked_for_in_smaller_pieces(why: str) -> None:
    busy, remarks = Busy(6 * 3600.0, why), Remarks()
    accounts = read_accounting(busy, WINDOW, remarks, lambda _: None)
    assert accounts is not None
    assert accounts.covered == 1.0
    assert (busy.pieces[0][0], busy.pieces[-1][1]) == (WINDOW.begins_at, WINDOW.ends_at)
    assert all(one[1] == other[0] for one, other in zip(busy.pieces, busy.pieces[1:], strict=False))
    assert not remarks


@pytest.mark.parametrize(
    "why", ["slurmctld does not answer: Connection refused", "sacct printed more than 64 MiB"]
)
def test_what_cannot_be_had_in_any_piece_is_said_to_be_missing(why: str) -> None:
    remarks = Remarks()
    assert read_accounting(Busy(0.0, why), WINDOW, remarks, lambda _: None) is None
    (remark,) = remarks
    assert remark.startswith("accounting from ")
    assert "slurmctld" not in remark


def test_a_question_without_an_answer_leaves_the_others() -> None:
    remarks = Remarks()
    cluster = read_cluster(Busy(0.0, "Slurm: scontrol: not now"), remarks)
    assert cluster.machines["n1"].gpus == 8
    assert len(remarks) == 4
