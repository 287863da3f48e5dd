"""Is everything a release rests on still what it was?"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint.damage import packs
from wattline.checkpoint import LocalStore, save
from wattline.release import Lineage, Link, RunFacts, build_manifest, trace_lineage
from wattline.store import ObjectStore


def find(lineage: Lineage, kind: str) -> Link:
    return next(link for link in lineage.links if link.kind == kind)


def kept_files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "objects" / "sha256").rglob("*") if path.is_file())


def alter(path: Path, position: int, mask: int = 0xFF) -> bytes:
    """Flip bits of one byte and give back what the file was."""
    before = path.read_bytes()
    data = bytearray(before)
    data[position % len(data)] ^= mask
    path.chmod(0o644)
    path.write_bytes(data)
    return before


def test_an_untouched_run_is_intact_from_its_documents_to_its_artifacts(
    manifest: str, objects: ObjectStore, folder: Path, checkpoints: Path
) -> None:
    asked = []

    def journal_check(first: int, last: int, head: str) -> str | None:
        asked.append((first, last, head))
        return None

    lineage = trace_lineage(
        manifest, objects, folder=folder, checkpoints=checkpoints, journal_check=journal_check
    )
    assert lineage.intact
    assert asked == [(4, 19, "b" * 64)]
    outcomes = {(link.kind, link.name): link.outcome for link in lineage.links}
    assert outcomes.pop(("image", "image")) == "not kept"
    assert set(outcomes.values()) == {"verified"}
    assert {kind for kind, _ in outcomes} == {
        "manifest", "pipeline", "params", "policy", "facility", "decisions", "source", "data", "checkpoint",
        "logs", "outputs", "metrics", "gates", "artifact",
    }  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 1000), position=st.integers(0, 100_000), mask=st.integers(1, 255))
def test_any_altered_byte_of_any_object_is_found(
    manifest: str, objects: ObjectStore, tmp_path: Path, which: int, position: int, mask: int
) -> None:
    files = kept_files(tmp_path)
    path = files[which % len(files)]
    before = alter(path, position, mask)
    lineage = trace_lineage(manifest, objects)
    path.write_bytes(before)
    assert not lineage.intact
    assert any(link.outcome == "altered" for link in lineage.links)
    assert trace_lineage(manifest, objects).intact


def test_any_missing_object_is_found(manifest: str, objects: ObjectStore, tmp_path: Path) -> None:
    for path in kept_files(tmp_path):
        path.rename(tmp_path / "aside")
        lineage = trace_lineage(manifest, objects)
        assert not lineage.intact
        assert {link.outcome for link in lineage.links} & {"missing"}
        (tmp_path / "aside").rename(path)


def test_a_broken_file_of_the_source_is_named(manifest: str, objects: ObjectStore, facts: RunFacts) -> None:
    assert facts.params is not None
    alter(objects.path(f"sha256:{facts.params.sha256}"), 0)
    lineage = trace_lineage(manifest, objects)
    broken = [(link.kind, link.name) for link in lineage.links if link.outcome == "altered"]
    assert broken == [("params", "params.yaml"), ("source", "source"), ("source", "source/params.yaml")]


def test_data_is_read_where_it_lay_if_it_is_still_there(
    manifest: str, objects: ObjectStore, folder: Path
) -> None:
    assert find(trace_lineage(manifest, objects), "data").outcome == "not kept"
    assert find(trace_lineage(manifest, objects, folder=folder), "data").outcome == "verified"
    corpus = folder / "data" / "corpus.txt"
    corpus.write_text("another story")
    assert find(trace_lineage(manifest, objects, folder=folder), "data").outcome == "altered"
    corpus.unlink()
    gone = trace_lineage(manifest, objects, folder=folder)
    assert find(gone, "data").outcome == "not kept"
    assert gone.intact


def test_data_is_not_read_outside_the_folder(
    facts: RunFacts, objects: ObjectStore, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("once upon a time\n")
    data = (dataclasses.replace(facts.data[0], path="../outside"),)
    digest = objects.put_bytes(build_manifest(dataclasses.replace(facts, data=data)))
    assert find(trace_lineage(digest, objects, folder=folder), "data").outcome == "altered"


def test_the_checkpoint_is_read_if_it_is_still_there(
    manifest: str, objects: ObjectStore, checkpoints: Path
) -> None:
    assert find(trace_lineage(manifest, objects), "checkpoint").outcome == "not kept"
    store = LocalStore(checkpoints)
    (pack,) = packs(store, "step-00000240.e2")
    before = alter(pack, 3)
    assert find(trace_lineage(manifest, objects, checkpoints=checkpoints), "checkpoint").outcome == "altered"
    pack.write_bytes(before)
    assert find(trace_lineage(manifest, objects, checkpoints=checkpoints), "checkpoint").outcome == "verified"
    store.delete("checkpoints/step-00000240.e2")
    assert find(trace_lineage(manifest, objects, checkpoints=checkpoints), "checkpoint").outcome == "not kept"
    save(store, {"w": "another run's"}, step=240, epoch=2)
    assert find(trace_lineage(manifest, objects, checkpoints=checkpoints), "checkpoint").outcome == "altered"


def test_what_the_journal_says_is_passed_on(manifest: str, objects: ObjectStore) -> None:
    lineage = trace_lineage(manifest, objects, journal_check=lambda *_: "record 7 was altered")
    assert not lineage.intact
    assert find(lineage, "decisions").note == "record 7 was altered"


@pytest.mark.parametrize("data", [b"{}\n", b"garbage", b""])
def test_an_object_that_is_no_manifest_has_no_lineage(objects: ObjectStore, data: bytes) -> None:
    lineage = trace_lineage(objects.put_bytes(data), objects)
    assert [(link.kind, link.outcome) for link in lineage.links] == [("manifest", "altered")]
    assert not lineage.intact


def test_a_report_that_does_not_fit_its_hash_is_found(facts: RunFacts, objects: ObjectStore) -> None:
    forged = build_manifest(facts).replace(b'"accuracy":0.93,"loss"', b'"accuracy":0.99,"loss"')
    lineage = trace_lineage(objects.put_bytes(forged), objects)
    assert find(lineage, "metrics").outcome == "altered"
    assert find(lineage, "gates").outcome == "verified"
