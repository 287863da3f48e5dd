"""What a provider's watcher writes becomes events, once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from building import Hall, a_cloud, a_link, a_site, a_world
from wattline.live.clouds import CloudFiles
from wattline.live.home import Home
from wattline.state import Event, Measured, NodeGivenBack, NodeReclaimed, Noticed
from wattline.state.market import gpu_hour_usd


class Watched:
    """A hall with a region, and the file that somebody writes about it."""

    def __init__(self, folder: Path) -> None:
        self.hall: Hall = a_world(
            a_site(), a_cloud(), links=[a_link(("zurich", "cloud"), usd_per_gigabyte=0.0)]
        )
        self.path = folder / "clouds" / "cloud.json"
        self.path.parent.mkdir()
        self.home = Home(folder)
        self.files = CloudFiles(self.home, self.hall.state)
        self.written = 0

    def write(self, said: object) -> None:
        self.path.write_text(said if isinstance(said, str) else json.dumps(said))
        self.written += 1
        os.utime(self.path, (self.written, self.written))

    def hear(self) -> list[Event]:
        self.hall.wait(5)
        events = self.files.poll(self.hall.at)
        self.hall.fold(*events)
        return events


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_price_is_told_when_it_changes(watched: Watched) -> None:
    assert watched.hear() == []
    watched.write({"usd_per_gpu_hour": 2.31})
    (told,) = watched.hear()
    assert isinstance(told, Measured)
    assert told.readings == (("cloud", "usd_per_gpu_hour", 2.31),)
    assert gpu_hour_usd(watched.hall.state.readings, watched.hall.state.plant, "cloud") == 2.31
    watched.write({"usd_per_gpu_hour": 2.31})
    assert watched.hear() == []


def test_a_machine_is_taken_back_once_and_given_back_when_it_is_no_longer_named(watched: Watched) -> None:
    watched.write({"reclaimed": {"cloud/r1-n2": 90, "cloud/unknown": 5}})
    (taken,) = watched.hear()
    assert isinstance(taken, NodeReclaimed)
    assert (taken.node, taken.notice_seconds) == ("cloud/r1-n2", 90.0)
    again = CloudFiles(watched.home, watched.hall.state)  # a control process that came back
    assert again.poll(watched.hall.at) == []
    watched.write({"reclaimed": {}})
    (back,) = watched.hear()
    assert isinstance(back, NodeGivenBack)


@pytest.mark.parametrize("said", ["{", "[]", '{"usd_per_gpu_hour": -1}', '{"reclaimed": 3}', '"x"'])
def test_a_file_that_is_wrong_is_told_once_and_what_was_told_before_holds(
    watched: Watched, said: str
) -> None:
    watched.write({"usd_per_gpu_hour": 2.0})
    watched.hear()
    watched.write(said)
    (told,) = watched.hear()
    assert isinstance(told, Noticed)
    assert watched.hear() == []
    assert gpu_hour_usd(watched.hall.state.readings, watched.hall.state.plant, "cloud") == 2.0


def test_a_job_pays_the_mean_of_the_prices_while_it_ran(watched: Watched) -> None:
    begun = watched.hall.at
    assert watched.files.mean_usd("cloud", begun, begun + 10) == 3.0
    watched.write({"usd_per_gpu_hour": 2.0})
    watched.hear()  # after 5 s: as far as anybody knows it cost as much before
    watched.write({"usd_per_gpu_hour": 4.0})
    watched.hear()  # after 10 s
    assert watched.files.mean_usd("cloud", begun, begun + 20) == pytest.approx(3.0)
    assert watched.files.mean_usd("cloud", begun + 12, begun + 20) == pytest.approx(4.0)
