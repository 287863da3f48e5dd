"""Everything around running work is killed at random; a short form of `python -m bench.siege`."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.siege import besiege, tell

from postgres import PostgresServer
from slurm_cluster import ON_SLURM, SlurmCluster

pytestmark = [*ON_SLURM, pytest.mark.needs("initdb")]
_SEED = 190  # its first six strikes fall on each kind of victim once


def test_no_job_is_lost_run_twice_or_left_unpaid_whoever_is_killed(
    slurm: SlurmCluster, postgres: PostgresServer, tmp_path: Path
) -> None:
    siege = besiege(tmp_path, slurm, postgres, seconds=12.0, seed=_SEED)
    tell(siege)
    assert siege.broken == {}
    assert siege.house.kills.total() >= 3
    assert len(siege.load.acknowledged) >= 5
    slurm.resume_all()
