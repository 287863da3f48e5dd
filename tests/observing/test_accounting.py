"""Rows of sacct, the odd ones included: counted, named, and never a reason to stop."""

import pytest

from wattline.errors import DocumentError, UnavailableError
from wattline.observing.accounting import Accounts, Spell

NAMES = "JobIDRaw|JobID|State|Reason|Submit|Eligible|Start|End|NodeList|AllocTRES|ReqTRES"


def spells_of(*rows: str) -> list[Spell]:
    accounts = Accounts()
    accounts.read([NAMES, *rows], "sacct")
    assert not accounts.flaws
    return list(accounts.spells.values())


def test_a_job_that_runs_one_that_waits_and_one_of_an_array_are_read() -> None:
    runs, waits, array = spells_of(
        "1|1|RUNNING|None|1000|1010|1100|Unknown|n[1-2]|gres/gpu=16|gres/gpu=16",
        "2|2|PENDING|Licenses|1000|1000|Unknown|Unknown|None assigned||gres/gpu=4",
        "9|7_[1-4,9%2]|PENDING|Resources|1000|1000|Unknown|Unknown|||gres/gpu:h100=2",
    )
    assert (runs.hosts, runs.eligible_at, runs.started_at, runs.ended_at) == (("n1", "n2"), 1010, 1100, None)
    assert (waits.started_at, waits.reason, waits.all_gpus) == (None, "Licenses", 4)
    assert (array.tasks, array.all_gpus) == (5, 10)


def test_a_row_that_comes_twice_counts_once_and_a_requeue_counts_twice() -> None:
    row = "1|1|REQUEUED|None|1000|1000|1100|1200|n1|gres/gpu=8|gres/gpu=8"
    again = "1|1|COMPLETED|None|1200|1320|1400|1500|n1|gres/gpu=8|gres/gpu=8"
    assert [spell.state for spell in spells_of(row, row, again)] == ["REQUEUED", "COMPLETED"]


def test_what_is_no_job_with_gpus_is_counted_and_left_out() -> None:
    accounts = Accounts()
    accounts.read(
        [
            NAMES,
            "1|1.batch|COMPLETED||1000|1000|1100|1200|n1|gres/gpu=8|",
            "2|2|COMPLETED||1000|1000|1100|1200|n1|cpu=4|cpu=4",
            "3|3|COMPLETED||1000|1000|1100|1050|n1|gres/gpu=8|",
            "4|4|COMPLETED||1000|1000|900|1050|n1|gres/gpu=8|",
            "5|5|COMPLETED||soon|1000|900|1050|n1|gres/gpu=8|",
            "6|6|COMPLETED||1000|1000|1100|1200|n[a-b]|gres/gpu=8|",
            "7|7|COMPLETED||1000|1000|1100|1200|n1|gres/gpu=many|",
            "8|8|too few columns",
            "",
        ],
        "sacct",
    )
    assert not accounts.spells
    assert accounts.without_gpus == 1
    assert sum(accounts.flaws.values()) == 6
    assert accounts.flaws["it ended before it started"] == 1
    assert accounts.flaws["it started before it was submitted"] == 1


def test_times_without_a_zone_are_said_to_be() -> None:
    accounts = Accounts()
    accounts.read([NAMES, "1|1|COMPLETED||2026-03-01T00:00:00|||||gres/gpu=1|"], "file")
    assert not accounts.says_zone


def test_a_file_that_is_no_accounting_says_how_to_save_one() -> None:
    with pytest.raises(UnavailableError, match="SLURM_TIME_FORMAT"):
        Accounts().read([], "empty.txt")
    with pytest.raises(DocumentError, match="State: this column is missing"):
        Accounts().read(["JobID|Submit|Start|End|AllocTRES"], "other.txt")
