"""Which Slurm a site's document may be served by, and what happens while it is away."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from building import a_facility, a_site
from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.engines.choosing import slurm_engine_of
from wattline.engines.slurm import SlurmClient
from wattline.errors import UnavailableError

pytestmark = ON_SLURM


def test_a_slurm_that_is_away_stops_a_first_start_but_not_whoever_takes_over(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    """Nobody listens at the port of this one."""
    text = Path(slurm.environment["SLURM_CONF"]).read_text()
    lines = ["SlurmctldPort=1" if "SlurmctldPort" in line else line for line in text.splitlines()]
    (tmp_path / "slurm.conf").write_text("\n".join([*lines, "MessageTimeout=2"]) + "\n")
    shutil.copy(slurm.folder / "gres.conf", tmp_path)
    client = SlurmClient(slurm.environment | {"SLURM_CONF": str(tmp_path / "slurm.conf")})
    site = a_facility(a_site("hall")).sites[0]
    with pytest.raises(UnavailableError, match="slurmctld does not answer"):
        slurm_engine_of(site, "besieged", client)
    engine = slurm_engine_of(site, "besieged", client, was_checked=True)
    assert engine.name == "slurm"
    engine.close()
