"""What Slurm prints, and what it says."""

from __future__ import annotations

import pytest

from wattline.engines.slurm.listing import DOUBTED, expand_hosts, read_nodes, read_queue
from wattline.errors import UnavailableError


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()),
        ("(null)", ()),
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[1-2,7],gpu4", ("n1", "n2", "n7", "gpu4")),
        ("gpu[08-11]", ("gpu08", "gpu09", "gpu10", "gpu11")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("a[1-2]-ib,b", ("a1-ib", "a2-ib", "b")),
    ],
)
def test_a_list_of_hosts_is_written_out(text: str, hosts: tuple[str, ...]) -> None:
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize("text", ["n[1-999999999]", "n[a-b]", "n[1-60000],m[1-60000]"])
def test_a_list_that_is_no_list_or_has_no_end_is_refused(text: str) -> None:
    with pytest.raises(UnavailableError):
        expand_hosts(text)


def test_gpus_of_a_job_are_counted_once_also_where_their_kind_is_told() -> None:
    text = """\
7|RUNNING|ada|n[1-2]|2|cpu=2,node=2,gres/gpu=4,gres/gpu:a100=4|None|train|
8|RUNNING|bob|n3|1|cpu=1,gres/gpu:a100=2,gres/gpu:h100=1|None|a|b|
9|PENDING|bob||1||Resources|x|
rubbish
10|RUNNING|too|few|
"""
    queue = read_queue(text)
    assert sorted(queue) == ["7", "8", "9"]
    assert (queue["7"].gpus, queue["7"].gpus_each, queue["7"].hosts) == (4, 2, ("n1", "n2"))
    assert queue["8"].name == "a|b"
    assert (queue["8"].gpus, queue["9"].gpus, queue["9"].gpus_each) == (3, 0, 0)


def test_a_number_that_is_listed_twice_is_believed_in_neither_case() -> None:
    """A name with a line break in it speaks for another job."""
    queue = read_queue("7|RUNNING|ada|n1|1|gres/gpu=1|None|train|\n7|NODE_FAIL|ada|n1|1||None|train|")
    assert queue["7"].state == DOUBTED


def test_an_uneven_spread_counts_as_the_most_it_could_be() -> None:
    queue = read_queue("7|RUNNING|ada|n[1-2]|2|gres/gpu=3|None|train|")
    assert queue["7"].gpus_each == 2


@pytest.mark.parametrize(
    ("state", "is_up"),
    [
        ("idle", True),
        ("mixed", True),
        ("allocated", True),
        ("idle*", False),
        ("down", False),
        ("down*", False),
        ("drained", False),
        ("draining", False),
        ("maint", False),
    ],
)
def test_a_node_takes_work_unless_it_is_away_or_drained(state: str, is_up: bool) -> None:
    nodes = read_nodes(f"n1|{state}|gpu:a100:8(S:0-1),gpu:1|64|")
    assert (nodes["n1"].is_up, nodes["n1"].gpus, nodes["n1"].cpus) == (is_up, 9, 64)
