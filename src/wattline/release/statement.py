"""What does a manifest look like? An in-toto Statement v1 with SLSA provenance v1, read and written alike.

Field names and their places are those of https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1.
What they have no place for stands in fields that begin with `wattline_`, as SLSA asks of extensions.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from wattline.errors import UnavailableError
from wattline.release.canonical import decode_canonical
from wattline.release.index import Sha256, Size, check_path
from wattline.release.reading import read_object
from wattline.store import ObjectStore

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "https://wattline.dev/run/v1"
BUILDER_ID: Final = "https://wattline.dev/builder/v1"

LONGEST_TEXT = 4096
MOST_MANIFEST_BYTES = 64 * 2**20

Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
TreeDigest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
Instant = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Commit = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
Blake3 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Camel(Struct, frozen=True, kw_only=True, rename="camel"):
    """Fields as SLSA spells them."""


class Extension(Struct, frozen=True, kw_only=True):
    """Our own fields, spelled as in the rest of Wattline."""


class DigestSet(Camel, frozen=True, kw_only=True, omit_defaults=True):
    """The hashes of one thing, by algorithm."""

    sha256: Sha256 | None = None
    git_commit: Commit | None = None
    blake3: Blake3 | None = None


class Descriptor(Camel, frozen=True, kw_only=True, omit_defaults=True):
    """in-toto's ResourceDescriptor: what something is called, and the hash of its bytes."""

    name: Text
    digest: DigestSet
    uri: Text | None = None
    annotations: dict[Text, Text | int | bool | None] = {}


class ReleaseRequest(Extension, frozen=True, kw_only=True):
    name: Text
    to: Text
    approval: Literal["required", "none"]


class ExternalParameters(Camel, frozen=True, kw_only=True):
    """What the team asked for."""

    pipeline: Descriptor
    model: Text
    owner: Text
    project: Text
    intended_use: Text
    params: Descriptor | None
    release: ReleaseRequest | None


class Decisions(Extension, frozen=True, kw_only=True):
    first_seq: Count
    last_seq: Count
    count: Count
    head: Sha256


class InternalParameters(Camel, frozen=True, kw_only=True):
    """What the platform brought: under which policy, in which hall, by which decisions."""

    policy: Descriptor
    facility: Descriptor
    decisions: Decisions | None


class BuildDefinition(Camel, frozen=True, kw_only=True):
    build_type: Literal["https://wattline.dev/run/v1"]
    external_parameters: ExternalParameters
    internal_parameters: InternalParameters
    resolved_dependencies: tuple[Descriptor, ...]


class Builder(Camel, frozen=True, kw_only=True):
    id: Text
    version: dict[Text, Text]


class Usage(Extension, frozen=True, kw_only=True):
    cost_usd: float | None
    energy_kwh: float | None
    carbon_kg: float | None


class Metadata(Camel, frozen=True, kw_only=True):
    invocation_id: Text
    started_on: Instant
    finished_on: Instant
    usage: Usage = field(name="wattline_usage")


class AttemptRecord(Extension, frozen=True, kw_only=True):
    attempt: Count
    epoch: Count
    site: Text
    nodes: tuple[Text, ...]
    outcome: Text
    started_on: Instant
    finished_on: Instant | None


class PhaseRecord(Extension, frozen=True, kw_only=True, omit_defaults=True):
    name: Text
    attempts: tuple[AttemptRecord, ...]
    outputs: TreeDigest | None
    mode: Literal["canonical", "approximate"] = "canonical"
    aside: bool = False  # nothing that would be released rests on it


class GateRecord(Extension, frozen=True, kw_only=True):
    gate: Text
    outcome: Literal["pass", "fail", "unknown"]
    values: dict[Text, float | None]
    message: Text


class RunDetails(Camel, frozen=True, kw_only=True):
    builder: Builder
    metadata: Metadata
    byproducts: tuple[Descriptor, ...]
    phases: tuple[PhaseRecord, ...] = field(name="wattline_phases")
    gates: tuple[GateRecord, ...] = field(name="wattline_gates")
    metrics: dict[Text, float | None] = field(name="wattline_metrics")


class Provenance(Camel, frozen=True, kw_only=True):
    build_definition: BuildDefinition
    run_details: RunDetails


class SubjectNotes(Extension, frozen=True, kw_only=True):
    size_bytes: Size


class Sha256Only(Struct, frozen=True, kw_only=True):
    sha256: Sha256


class Subject(Camel, frozen=True, kw_only=True):
    """An artifact; its name is its path."""

    name: Text
    digest: Sha256Only
    annotations: SubjectNotes


class Statement(Camel, frozen=True, kw_only=True):
    type: Literal["https://in-toto.io/Statement/v1"] = field(name="_type")
    subject: tuple[Subject, ...]
    predicate_type: Literal["https://slsa.dev/provenance/v1"]
    predicate: Provenance


def read_manifest(data: bytes) -> Statement:
    """Read a manifest that anybody may have written; raises UnavailableError when it is not one of ours."""
    statement = decode_canonical(data, Statement, what="manifest", most_bytes=MOST_MANIFEST_BYTES)
    names = [subject.name for subject in statement.subject]
    try:
        for name in names:
            check_path(name)
    except ValueError as error:
        raise UnavailableError(f"manifest: a subject is refused: {error}") from error
    if len(set(names)) != len(names):
        raise UnavailableError("manifest: a subject is there twice")
    return statement


def load_manifest(digest: str, objects: ObjectStore) -> Statement:
    return read_manifest(read_object(digest, objects, most_bytes=MOST_MANIFEST_BYTES))
