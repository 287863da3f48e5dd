"""Goods: what a run was submitted with and what its phases leave, by digest."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from wattline.live import RunSource
from wattline.release.bundle import materialise_bundle
from wattline.release.outputs import capture_outputs
from wattline.spec import Pipeline, parse_document
from wattline.store import ObjectStore

_DATA = "data:"


class KeptGoods:
    """The live world's files, kept in the object store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._pipeline = lru_cache(maxsize=256)(self._read_pipeline)

    def unpack(self, digest: str, folder: Path) -> None:
        materialise_bundle(digest, self._objects, folder)

    def pack(self, folder: Path) -> str:
        return str(capture_outputs(folder, self._objects).digest)

    def show(self, attempt: str, folder: Path) -> None:
        """It is read where it was written."""

    def source(self, documents: dict[str, str]) -> RunSource:
        return RunSource(
            pipeline=self._pipeline(documents["pipeline"]),
            bundle=documents["bundle"],
            folder=Path(documents["folder"]),
            data_sha256={
                name.removeprefix(_DATA): sha256
                for name, sha256 in documents.items()
                if name.startswith(_DATA)
            },
        )

    def _read_pipeline(self, digest: str) -> Pipeline:
        with self._objects.open(digest) as file:
            return parse_document(file.read(), Pipeline, file="wattline.yaml")


def describe_source(
    pipeline_digest: str, bundle_digest: str, folder: Path, data_sha256: dict[str, str], **more: str
) -> dict[str, str]:
    """What a submission says of its source; the counterpart of `KeptGoods.source`."""
    return {
        "pipeline": pipeline_digest,
        "bundle": bundle_digest,
        "folder": str(folder),
        **{f"{_DATA}{path}": sha256 for path, sha256 in data_sha256.items()},
        **more,
    }
