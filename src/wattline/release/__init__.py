"""From a run to a release and back: source bundles, outputs, gates, manifests, lineage, and the shelf."""

from wattline.release.bundle import Bundle, bundle_source, list_source, materialise_bundle, read_bundle
from wattline.release.conclude import (
    is_ready,
    judge_run,
    promote_run,
    release_run,
    require_replicas,
    total_usage,
)
from wattline.release.facts import (
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
)
from wattline.release.gates import GateOutcome, GateResult, judge_gates
from wattline.release.goods import KeptGoods, describe_source
from wattline.release.history import Act, Move, Release
from wattline.release.index import Tree, TreeFile, TreeLink
from wattline.release.lineage import JournalCheck, Lineage, Link, LinkOutcome, trace_lineage
from wattline.release.manifest import build_manifest
from wattline.release.metrics import read_metrics
from wattline.release.outputs import Outputs, capture_outputs, materialise_outputs, read_outputs
from wattline.release.shelf import Placed, Shelf
from wattline.release.statement import Statement, load_manifest, read_manifest

__all__ = [
    "Act",
    "Artifact",
    "Attempt",
    "Bundle",
    "CheckpointUsed",
    "DataUsed",
    "DecisionRange",
    "FacilityUsed",
    "GateOutcome",
    "GateResult",
    "JournalCheck",
    "KeptGoods",
    "Lineage",
    "Link",
    "LinkOutcome",
    "Move",
    "Outputs",
    "ParamsUsed",
    "PhaseRun",
    "Pinned",
    "Placed",
    "Release",
    "ReleaseAsked",
    "RunFacts",
    "Shelf",
    "Source",
    "Statement",
    "Tree",
    "TreeFile",
    "TreeLink",
    "build_manifest",
    "bundle_source",
    "capture_outputs",
    "describe_source",
    "is_ready",
    "judge_gates",
    "judge_run",
    "list_source",
    "load_manifest",
    "materialise_bundle",
    "materialise_outputs",
    "promote_run",
    "read_bundle",
    "read_manifest",
    "read_metrics",
    "read_outputs",
    "release_run",
    "require_replicas",
    "total_usage",
    "trace_lineage",
]
