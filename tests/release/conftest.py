from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from wattline.checkpoint import LocalStore, save
from wattline.release import (
    Artifact,
    Attempt,
    CheckpointUsed,
    DataUsed,
    DecisionRange,
    FacilityUsed,
    ParamsUsed,
    PhaseRun,
    Pinned,
    ReleaseAsked,
    RunFacts,
    Source,
    build_manifest,
    bundle_source,
    capture_outputs,
    judge_gates,
)
from wattline.store import ObjectStore


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A team's folder, without Git."""
    return write_source(tmp_path / "team")


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunFacts]:
    """A run as it was kept, made once; each test that alters it gets a copy."""
    root = tmp_path_factory.mktemp("kept")
    return root, keep_run(root, ObjectStore(root / "objects"))


@pytest.fixture
def facts(tmp_path: Path, kept: tuple[Path, RunFacts]) -> RunFacts:
    """A run whose every hash stands for bytes that are really kept, among `objects` and `checkpoints`."""
    root, facts = kept
    for name in ("objects", "checkpoints"):
        shutil.copytree(root / name, tmp_path / name)
    return facts


@pytest.fixture
def checkpoints(tmp_path: Path, facts: RunFacts) -> Path:
    assert facts.checkpoint
    return tmp_path / "checkpoints"


@pytest.fixture
def manifest(facts: RunFacts, objects: ObjectStore) -> str:
    return objects.put_bytes(build_manifest(facts))


def write_source(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "wattline.yaml").write_text("pipeline: tiny-lm\n")
    (folder / "params.yaml").write_text("rate: 0.1\n")
    (folder / "train.py").write_text("print('training')\n")
    (folder / "data" / "corpus.txt").write_text("once upon a time\n")
    return folder


def keep_run(root: Path, objects: ObjectStore) -> RunFacts:
    (root / "results").mkdir()
    (root / "results" / "model.bin").write_bytes(b"weights")
    (root / "results" / "card.md").write_text("# tiny-lm\n")
    bundle = bundle_source(write_source(root / "team"), objects, exclude=["data/corpus.txt"])
    outputs = capture_outputs(root / "results", objects)
    digests = {file.path: file.sha256 for file in bundle.files}
    checkpoint = save(LocalStore(root / "checkpoints"), {"w": np.arange(9)}, step=240, epoch=2)
    metrics = {"accuracy": 0.93, "loss": 1.5}
    return RunFacts(
        run_id="run-7",
        pipeline=Pinned(name="tiny-lm", sha256=digests["wattline.yaml"]),
        model="tiny-lm",
        owner="nlp",
        project="nlp",
        intended_use="a test",
        source=Source(digest=bundle.digest, commit=None, dirty=None),
        image="ghcr.io/acme/train@sha256:" + "a" * 64,
        data=(
            DataUsed(
                name="corpus",
                path="data/corpus.txt",
                sha256=hashlib.sha256(b"once upon a time\n").hexdigest(),
            ),
        ),
        params=ParamsUsed(path="params.yaml", sha256=digests["params.yaml"]),
        policy=Pinned(name="default", sha256=objects.put_bytes(b"policy: default\n")),
        facility=FacilityUsed(name="lab", sha256=objects.put_bytes(b"sites: {}\n"), emulated=True),
        decisions=DecisionRange(first_seq=4, last_seq=19, count=6, head="b" * 64),
        phases=(
            PhaseRun(
                name="train",
                attempts=(
                    Attempt(
                        attempt=1,
                        epoch=2,
                        site="lab",
                        nodes=("n1", "n2"),
                        outcome="succeeded",
                        started_at=1_700_000_000.25,
                        ended_at=1_700_000_060.0,
                    ),
                ),
                outputs=outputs.digest,
            ),
        ),
        checkpoint=CheckpointUsed(digest=checkpoint.digest, step=240, epoch=2),
        artifacts=tuple(
            Artifact(path=file.path, sha256=file.sha256, size_bytes=file.size_bytes) for file in outputs.files
        ),
        logs=(Pinned(name="train.log", sha256=objects.put_bytes(b"step 1\n")),),
        gates=judge_gates(["accuracy >= 0.92"], metrics),
        metrics=metrics,
        release=ReleaseAsked(name="tiny-lm", to="staging", approval="none"),
        cost_usd=1.25,
        energy_kwh=0.5,
        carbon_kg=None,
        started_at=1_700_000_000.0,
        ended_at=1_700_000_100.0,
        wattline_version="0.1.0",
    )
