"""Where did this artifact come from, in words that any SLSA reader understands?"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.errors import UnavailableError, UsageError
from wattline.release import RunFacts, Source, build_manifest, read_manifest

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
REUSED = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def parsed(facts: RunFacts) -> Any:
    return json.loads(build_manifest(facts))


def descriptors(document: Any) -> list[Any]:
    """Everything in a statement that has a digest, wherever it stands."""
    if isinstance(document, dict):
        inside = [found for value in document.values() for found in descriptors(value)]
        return [document, *inside] if "digest" in document else inside
    return [found for value in document for found in descriptors(value)] if isinstance(document, list) else []


def test_the_statement_has_what_in_toto_and_slsa_require(facts: RunFacts) -> None:
    statement = parsed(facts)
    assert set(statement) == {"_type", "subject", "predicateType", "predicate"}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert set(statement["predicate"]) == {"buildDefinition", "runDetails"}
    definition, details = statement["predicate"]["buildDefinition"], statement["predicate"]["runDetails"]
    assert set(definition) == {
        "buildType",
        "externalParameters",
        "internalParameters",
        "resolvedDependencies",
    }
    assert definition["buildType"] == "https://wattline.dev/run/v1"
    assert re.match(r"https://", details["builder"]["id"])
    assert details["builder"]["version"] == {"wattline": "0.1.0"}
    standard = {name for name in details if not name.startswith("wattline_")}
    assert standard == {"builder", "metadata", "byproducts"}
    metadata = details["metadata"]
    assert metadata["invocationId"] == "run-7"
    assert metadata["startedOn"] == "2023-11-14T22:13:20.000Z"
    assert RFC3339.fullmatch(metadata["finishedOn"])


def test_every_resource_has_a_name_and_a_digest_in_lower_case_hexadecimal(facts: RunFacts) -> None:
    found = descriptors(parsed(facts))
    assert len(found) > 10
    for descriptor in found:
        assert set(descriptor) <= {"name", "uri", "digest", "annotations"}
        assert descriptor["name"]
        assert descriptor["digest"]
        for algorithm, value in descriptor["digest"].items():
            assert algorithm in {"sha256", "gitCommit", "blake3"}
            assert re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", value)


def test_each_fact_has_its_place(facts: RunFacts) -> None:
    statement = parsed(facts)
    definition, details = statement["predicate"]["buildDefinition"], statement["predicate"]["runDetails"]
    assert [subject["name"] for subject in statement["subject"]] == ["card.md", "model.bin"]
    asked, brought = definition["externalParameters"], definition["internalParameters"]
    assert (asked["intendedUse"], asked["owner"]) == ("a test", "nlp")
    assert asked["params"]["name"] == "params.yaml"
    assert asked["release"] == {"name": "tiny-lm", "to": "staging", "approval": "none"}
    assert brought["facility"]["annotations"] == {"emulated": True}
    assert brought["decisions"] == {"first_seq": 4, "last_seq": 19, "count": 6, "head": "b" * 64}
    dependencies = {one["name"]: one for one in definition["resolvedDependencies"]}
    assert set(dependencies) == {"source", "image", "data/corpus", "checkpoint"}
    assert dependencies["image"]["digest"] == {"sha256": "a" * 64}
    assert dependencies["data/corpus"]["uri"] == "data/corpus.txt"
    assert dependencies["checkpoint"]["annotations"] == {"step": 240, "epoch": 2}
    byproducts = {one["name"] for one in details["byproducts"]}
    assert byproducts == {"logs/train.log", "outputs/train", "metrics", "gates"}
    assert details["wattline_metrics"] == {"accuracy": 0.93, "loss": 1.5}
    assert details["wattline_gates"][0]["outcome"] == "pass"
    assert details["metadata"]["wattline_usage"] == {"cost_usd": 1.25, "energy_kwh": 0.5, "carbon_kg": None}
    assert details["wattline_phases"][0]["attempts"][0]["started_on"] == "2023-11-14T22:13:20.250Z"


@pytest.mark.parametrize(("dirty", "named"), [(False, True), (True, False)])
def test_a_commit_names_the_source_only_if_nothing_was_changed_after_it(
    facts: RunFacts, dirty: bool, named: bool
) -> None:
    source = Source(digest=facts.source.digest, commit="c" * 40, dirty=dirty)
    statement = parsed(dataclasses.replace(facts, source=source))
    (first, *_) = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert first["annotations"] == {"commit": "c" * 40, "dirty": dirty}
    assert ("gitCommit" in first["digest"]) == named


def test_the_bytes_are_canonical(facts: RunFacts) -> None:
    data = build_manifest(facts)
    text = json.dumps(json.loads(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert data == text.encode() + b"\n"


@REUSED
@given(
    metrics=st.dictionaries(st.text(max_size=8), st.floats() | st.integers(-1000, 1000), max_size=6),
    intended_use=st.text(max_size=50),
    cost_usd=st.none() | st.floats(0, 1e6),
)
def test_equal_facts_give_equal_bytes_and_read_back(
    facts: RunFacts, metrics: Mapping[str, float], intended_use: str, cost_usd: float | None
) -> None:
    one = dataclasses.replace(facts, metrics=metrics, intended_use=intended_use, cost_usd=cost_usd)
    shuffled = {name: float(metrics[name]) + 0.0 for name in reversed(list(metrics))}
    other = dataclasses.replace(one, metrics=shuffled, artifacts=tuple(reversed(facts.artifacts)))
    data = build_manifest(one)
    assert data == build_manifest(other)
    details = read_manifest(data).predicate.run_details
    assert details.metadata.usage.cost_usd == cost_usd
    for name, value in metrics.items():
        assert details.metrics[name] == (value if math.isfinite(value) else None)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "run-8"},
        {"ended_at": 1_700_000_101.0},
        {"metrics": {"accuracy": 0.94}},
        {"image": None},
        {"params": None},
        {"checkpoint": None},
        {"decisions": None},
        {"release": None},
        {"artifacts": ()},
    ],
)
def test_another_fact_gives_another_manifest(facts: RunFacts, change: dict[str, Any]) -> None:
    changed = build_manifest(dataclasses.replace(facts, **change))
    assert changed != build_manifest(facts)
    read_manifest(changed)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"_type":"https://in-toto.io/Statement/v1"', b'"_type":"https://in-toto.io/Statement/v0.1"'),
        (b"https://slsa.dev/provenance/v1", b"https://slsa.dev/provenance/v2"),
        (b'"name":"model.bin"', b'"name":"../model.bin"'),
        (b'"name":"model.bin"', b'"name":"card.md"'),
        (b'"size_bytes":7', b'"size_bytes":-7'),
        (b'"approval":"none"', b'"approval":"maybe"'),
        (b'"approval":"none"', b'"approval":"none","approval":"none"'),
        (b'"outcome":"pass"', b'"outcome":"great"'),
        (b"2023-11-14T22:13:20.000Z", b"yesterday"),
        (b'"run-7"', b'"' + b"x" * 5000 + b'"'),
        (b'"run-7"', b'"run-7","more":1'),
        (b"\n", b""),
        (b"{", b"["),
    ],
)
def test_what_is_not_one_of_our_manifests_is_refused(facts: RunFacts, before: bytes, after: bytes) -> None:
    data = build_manifest(facts)
    assert before in data
    with pytest.raises(UnavailableError, match="manifest"):
        read_manifest(data.replace(before, after))


def test_facts_that_could_not_be_read_back_are_not_written(facts: RunFacts) -> None:
    with pytest.raises(UnavailableError, match="manifest"):
        build_manifest(
            dataclasses.replace(facts, source=Source(digest="sha256:short", commit=None, dirty=None))
        )
    with pytest.raises(UsageError, match="UTF-8"):
        build_manifest(dataclasses.replace(facts, run_id="\ud800"))
    with pytest.raises(UsageError, match="seconds since 1970"):
        build_manifest(dataclasses.replace(facts, ended_at=math.nan))
