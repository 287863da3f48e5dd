"""Who runs some sites has their checkpoints at home; those of a site with an agent come over its receiver."""

import socket
from pathlib import Path

import msgspec
import pytest

from wattline.checkpoint import LocalStore, StorageError, copy_checkpoint, list_checkpoints, save
from wattline.checkpoint.receiver import Receiver
from wattline.errors import UsageError
from wattline.live import Home, find_lacking
from wattline.live.site_stores import RECEIVER_TOKEN, SiteStores, make_receiver, receiver_of
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


def test_a_server_hands_over_what_lies_at_each_of_its_sites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECEIVER_TOKEN, TOKEN)
    server, agent = Home(tmp_path / "server"), Home(tmp_path / "agent")
    save(LocalStore(server.checkpoints("zurich", "r1", "train")), {"weights": [1]}, step=7, epoch=1)
    stores = SiteStores(agent, lambda site: site == "oslo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with make_receiver(f"127.0.0.1:{port}", server.root / "sites") as receiver:
        stores.receivers = {site: receiver_of(receiver.url, site) for site in ("zurich", "bern")}
        copy_checkpoint(stores("zurich", "r1", "train"), stores("oslo", "r1", "train"))
        copy_checkpoint(stores("oslo", "r1", "train"), stores("bern", "r1", "train"))
    for home, site in ((agent, "oslo"), (server, "bern")):
        assert [
            entry.step for entry in list_checkpoints(LocalStore(home.checkpoints(site, "r1", "train")))
        ] == [7]


@pytest.mark.parametrize(
    ("receive", "token", "why"),
    [
        ("10.0.0.5:8470", "", "needs a token"),
        ("10.0.0.5", TOKEN, "is no HOST:PORT"),
        (":8470", TOKEN, "is no HOST:PORT"),
        ("0.0.0.0:8470", TOKEN, "there it means themselves"),
        ("[::]:8470", TOKEN, "there it means themselves"),
        ("127.0.0.1:8470", "short", "too short"),
    ],
)
def test_an_address_that_others_could_not_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receive: str, token: str, why: str
) -> None:
    monkeypatch.setenv(RECEIVER_TOKEN, token)
    with pytest.raises(UsageError, match=why):
        make_receiver(receive, tmp_path)


def test_what_arrived_at_a_site_with_an_agent_counts_as_it_was_told(tmp_path: Path) -> None:
    saved = Saved(step=7, site="zurich", at=1.0)
    request = JobRequest(job="r1/train", run="r1", replicate_to=("oslo",))
    job = Job(request=request, state=JobState.RUNNING, submitted_at=0.0, since=0.0, saved=saved)
    assert find_lacking(Home(tmp_path), job, {"oslo"}) == "oslo lacks step 7 of r1/train"
    job = msgspec.structs.replace(job, copies=(("oslo", 7),))
    assert find_lacking(Home(tmp_path), job, {"oslo"}) == ""


def test_an_agent_asks_the_server_that_ran_its_site_before_until_it_has_something_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECEIVER_TOKEN, TOKEN)
    home = Home(tmp_path / "agent")
    stores = SiteStores(home, lambda site: site == "oslo")
    assert isinstance(stores("oslo", "r1", "train"), LocalStore)
    stores.receivers = {"oslo": "http://127.0.0.1:1/oslo/checkpoints"}
    assert not isinstance(stores("oslo", "r1", "train"), LocalStore)
    save(LocalStore(home.checkpoints("oslo", "r1", "train")), {"weights": [1]}, step=7, epoch=1)
    assert isinstance(stores("oslo", "r1", "train"), LocalStore)
