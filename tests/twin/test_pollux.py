from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from shared_data import shared_data
from wattline.errors import UnavailableError
from wattline.twin.pollux import Profiles


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    return Profiles(shared_data("jobs/pollux-throughput-profiles"))


# From the artifact's own simulator: whole trainings on packed nodes of four, without its whole-second epochs.
@pytest.mark.parametrize(
    ("application", "batch_size", "gpus", "seconds"),
    [
        ("bert", 384, 6, 3092.66),
        ("cifar10", 2048, 6, 897.30),
        ("deepspeech2", 320, 8, 3517.63),
        ("imagenet", 3200, 24, 31805.31),
        ("ncf", 32768, 1, 45.93535),
        ("yolov3", 64, 4, 14100.02),
    ],
)
def test_a_training_takes_as_long_as_in_the_artifact(
    profiles: Profiles, application: str, batch_size: int, gpus: int, seconds: float
) -> None:
    found = profiles.undisturbed_seconds(application, batch_size, gpus)
    assert found == pytest.approx(seconds, rel=1e-5)


def test_the_rate_is_the_part_of_the_training_done_in_a_second(profiles: Profiles) -> None:
    seconds = profiles.undisturbed_seconds("cifar10", 2048, 6)
    assert profiles.rate("cifar10", 2048, (4, 2)) * seconds == pytest.approx(1.0)


def test_the_same_gpus_on_other_nodes_go_at_another_speed(profiles: Profiles) -> None:
    packed, spread = profiles.rate("cifar10", 2048, (4, 4)), profiles.rate("cifar10", 2048, (2, 2, 2, 2))
    # As measured: four GPUs of one node got in each other's way more than the network did.
    assert 1 / packed == pytest.approx(868.99, rel=1e-5)
    assert 1 / spread == pytest.approx(741.29, rel=1e-5)


def test_nodes_may_be_counted_from_any_of_them(profiles: Profiles) -> None:
    assert profiles.rate("bert", 384, (4, 2)) == profiles.rate("bert", 384, (2, 4))
    assert profiles.rate("bert", 384, (1, 4, 2)) == profiles.rate("bert", 384, (4, 2, 1))


# The artifact lays tetrahedra between what was measured; here it is read along nodes, then GPUs.
@pytest.mark.parametrize(
    ("application", "batch_size", "placement", "seconds"),
    [
        ("bert", 384, (4, 4, 2, 1, 1), 1635.0),
        ("cifar10", 4096, (2, 2, 4, 4, 4), 491.7),
        ("deepspeech2", 640, (3, 3, 3, 2, 1), 2505.8),
        ("imagenet", 3200, (4, 4, 4, 3, 3, 3, 3), 32035.0),
    ],
)
def test_placements_that_were_not_measured_come_close_to_the_artifact(
    profiles: Profiles, application: str, batch_size: int, placement: tuple[int, ...], seconds: float
) -> None:
    assert 1 / profiles.rate(application, batch_size, placement) == pytest.approx(seconds, rel=0.06)


def test_a_bigger_node_counts_as_several_of_those_measured(profiles: Profiles) -> None:
    assert profiles.rate("bert", 384, (8,)) == profiles.rate("bert", 384, (4, 4))


def test_more_nodes_than_were_measured_go_as_the_most_that_were(profiles: Profiles) -> None:
    assert profiles.rate("imagenet", 6400, (1,) * 20) > 0


@pytest.mark.parametrize("batch_size", [1, 10**6])
def test_a_batch_size_out_of_range_is_named(profiles: Profiles, batch_size: int) -> None:
    with pytest.raises(UnavailableError, match=f"bert: batch size {batch_size} on 4 GPUs"):
        profiles.rate("bert", batch_size, (4,))


def test_a_job_on_no_gpus_has_no_rate(profiles: Profiles) -> None:
    with pytest.raises(UnavailableError, match="on 0 GPUs"):
        profiles.rate("bert", 384, ())


def test_an_unknown_application_is_named_with_those_known(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="'gpt'") as caught:
        Profiles(tmp_path).rate("gpt", 1, (1,))
    assert "yolov3" in str(caught.value)


def test_a_missing_or_broken_profile_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no validation"):
        Profiles(tmp_path).rate("bert", 384, (1,))
    folder = tmp_path / "bert"
    folder.mkdir()
    curve = folder / "validation-12.csv.gz"
    curve.write_bytes(b"not gzip")
    with pytest.raises(UnavailableError, match=r"validation-12\.csv\.gz"):
        Profiles(tmp_path).rate("bert", 384, (1,))
    curve.write_bytes(gzip.compress(b"progress,grad_sqr,grad_var\n1.0,many,1.0\n"))
    with pytest.raises(UnavailableError, match="'many'"):
        Profiles(tmp_path).rate("bert", 384, (1,))
    curve.write_bytes(gzip.compress(b"progress,iteration,metric,grad_sqr,grad_var\n1.0,1,0.5,1.0,1.0\n"))
    with pytest.raises(UnavailableError, match="1 epochs, 2 are needed"):
        Profiles(tmp_path).rate("bert", 384, (1,))
