"""Who runs some sites has their checkpoints at home; those of a site with an agent come over its receiver."""

from pathlib import Path

import msgspec
import pytest

from wattline.checkpoint import LocalStore, StorageError, copy_checkpoint, list_checkpoints, save
from wattline.checkpoint.receiver import Receiver
from wattline.live import Home, find_lacking
from wattline.live.site_stores import RECEIVER_TOKEN, SiteStores
from wattline.state import Job, JobRequest, JobState
from wattline.state.job import Saved

TOKEN = "shared-by-all-sites"


def test_a_site_with_an_agent_is_asked_over_its_receiver_and_never_looked_for_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECEIVER_TOKEN, TOKEN)
    home, there = Home(tmp_path / "server"), tmp_path / "agent"
    there.mkdir()
    stores = SiteStores(home, lambda site: site != "oslo")
    save(LocalStore(there / "r1" / "train"), {"weights": [1]}, step=7, epoch=1)
    with pytest.raises(StorageError, match="nobody hands over what lies at oslo: an agent there"):
        stores("oslo", "r1", "train")
    with Receiver(there, TOKEN) as receiver:
        stores.receivers = {"oslo": receiver.url}
        copy_checkpoint(stores("oslo", "r1", "train"), stores("zurich", "r1", "train"))
    arrived = LocalStore(home.checkpoints("zurich", "r1", "train"))
    assert [entry.step for entry in list_checkpoints(arrived)] == [7]


def test_what_arrived_at_a_site_with_an_agent_counts_as_it_was_told(tmp_path: Path) -> None:
    saved = Saved(step=7, site="zurich", at=1.0)
    request = JobRequest(job="r1/train", run="r1", replicate_to=("oslo",))
    job = Job(request=request, state=JobState.RUNNING, submitted_at=0.0, since=0.0, saved=saved)
    assert find_lacking(Home(tmp_path), job, {"oslo"}) == "oslo lacks step 7 of r1/train"
    job = msgspec.structs.replace(job, copies=(("oslo", 7),))
    assert find_lacking(Home(tmp_path), job, {"oslo"}) == ""
