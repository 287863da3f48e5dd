"""A closed set: what is not in it is not asked, and nothing runs."""

import pytest

from wattline.errors import UsageError
from wattline.observing.asking import ReadOnly
from wattline.telemetry.asking import Asker


@pytest.mark.parametrize(
    "command",
    [
        ("scontrol", "update", "nodename=n1", "state=down"),
        ("scontrol", "-o", "update", "jobid=1"),
        ("scontrol", "-o"),
        ("sacctmgr", "show", "user"),
        ("sbatch", "job.sh"),
        ("scancel", "1"),
        ("sh", "-c", "scontrol show node"),
        (),
    ],
)
def test_a_command_that_is_not_known_to_only_read_is_refused(command: tuple[str, ...]) -> None:
    ask = ReadOnly(slurm=True)
    with pytest.raises(UsageError, match="not among the commands that only read"):
        ask.slurm(*command)
    assert ask.asked == []


@pytest.mark.parametrize("endpoint", ["/api/v1/admin/tsdb/delete_series", "/-/reload", "/api/v1/write", ""])
def test_an_endpoint_that_is_not_known_to_only_read_is_refused(endpoint: str) -> None:
    ask = ReadOnly(prometheus=Asker("http://127.0.0.1:9", timeout_seconds=1))
    with pytest.raises(UsageError, match="not among the endpoints that only read"):
        ask.prometheus(endpoint, {}, most_bytes=10)
    assert ask.asked == []
