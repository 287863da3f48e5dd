"""What does a checkpoint say it holds, and has that been altered?"""

from __future__ import annotations

import json

import pytest
from blake3 import blake3

from wattline.checkpoint import CheckpointError, NewerSchemaError
from wattline.checkpoint.chunks import Chunk, Pack, Table
from wattline.checkpoint.manifest import Manifest, read_manifest, write_manifest

PACK = Pack("packs/a", 100, "a" * 64)
MANIFEST = Manifest(
    step=3,
    epoch=2,
    saved_at=1.5,
    parent="b" * 64,
    lineage={"run": "r1"},
    metrics={"loss": 0.5},
    table=Table(
        {PACK.name: PACK},
        {
            "c" * 64: Chunk(PACK.name, 0, 60, 80, 4, "raw", None),
            "d" * 64: Chunk(PACK.name, 60, 40, 80, 4, "delta-planes", "c" * 64),
        },
    ),
    tree={"dict": {}},
)
NO_TABLE: dict[str, object] = {"packs": [], "chunks": {}}


def sealed(**fields: object) -> bytes:
    body = json.dumps(fields, separators=(",", ":"))[:-1].encode()
    return body + b',"blake3":"' + blake3(body).hexdigest().encode() + b'"}\n'


def test_a_manifest_is_plain_json_that_comes_back_equal() -> None:
    raw, digest = write_manifest(MANIFEST)
    assert json.loads(raw)["blake3"] == digest
    assert read_manifest(raw) == (MANIFEST, digest)


def test_every_altered_byte_and_every_truncation_shows() -> None:
    raw, _ = write_manifest(MANIFEST)
    for position in range(len(raw)):
        for mask in (0x01, 0x20, 0x80):
            altered = bytearray(raw)
            altered[position] ^= mask
            with pytest.raises(CheckpointError, match="torn or altered"):
                read_manifest(bytes(altered))
        with pytest.raises(CheckpointError, match="torn or altered"):
            read_manifest(raw[:position])


def test_space_that_json_would_ignore_shows_as_well() -> None:
    raw, _ = write_manifest(MANIFEST)
    with pytest.raises(CheckpointError, match="torn or altered"):
        read_manifest(raw + b"\n")


def test_a_newer_schema_is_told_apart_from_damage() -> None:
    with pytest.raises(
        NewerSchemaError, match=r"schema 7 and this version of wattline reads up to 2"
    ) as caught:
        read_manifest(sealed(schema=7, tensors=[]))
    assert caught.value.hint is not None
    assert "install" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 0},
        {"schema": 1},
        {"schema": "2"},
        {"step": -1},
        {"step": 1.5},
        {"epoch": None},
        {"saved_at": float("nan")},
        {"saved_at": None},
        {"parent": 3},
        {"lineage": {"run": 1}},
        {"lineage": []},
        {"metrics": {"loss": "low"}},
        {"metrics": {"loss": True}},
        {"metrics": None},
    ],
    ids=str,
)
def test_a_sealed_manifest_is_still_not_believed(change: dict[str, object]) -> None:
    good = {
        "schema": 2,
        "step": 1,
        "epoch": 0,
        "saved_at": 0.0,
        "parent": None,
        "lineage": {},
        "metrics": {},
        "table": NO_TABLE,
        "tree": None,
    }
    read_manifest(sealed(**good))
    with pytest.raises(CheckpointError, match="manifest"):
        read_manifest(sealed(**{**good, **change}))


def test_nesting_that_would_exhaust_the_parser_is_refused() -> None:
    body = b'{"schema":2,"tree":' + b"[" * 200_000 + b"]" * 200_000
    with pytest.raises(CheckpointError, match="not JSON"):
        read_manifest(body + b',"blake3":"' + blake3(body).hexdigest().encode() + b'"}\n')
