from __future__ import annotations

from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import Problem
from wattline.spec import Pipeline, Priority, parse_document

HEAD = "pipeline: tiny-lm\nmodel: tiny-lm\nowner: nlp\nproject: nlp\n"
DIGEST = "sha256:" + "0a" * 32
GOLDEN = f"""\
pipeline: tiny-lm
model: tiny-lm
owner: nlp
project: nlp
intended_use: example of the golden path
image: ghcr.io/acme/train@{DIGEST}
data:
  - {{name: corpus, path: data/corpus.txt, sha256: {"0a" * 32}, schema: data/corpus.schema.yaml}}
params: params.yaml
phases:
  prepare: {{run: python prepare.py, profile: {{network: heavy, cpus: 1}}}}
  train:
    after: [prepare]
    run: python train.py
    class: high-density-training
    priority: normal
    deadline: 2026-12-01T08:00Z
    mode: canonical
    resources: {{gpus: 8, gpu: [H100, A100]}}
    constraints:
      peak_power: 6.5kW
      thermal: high
      locality: rack
      bandwidth: {{sync: 40Gbps, ingest: 2Gbps, checkpoint: 1Gbps}}
      residency: [eu]
      max_duration: 6h
      burst: true
      on_isolation: continue
    checkpoint: {{every: auto, replicate_to: [frankfurt], keep: 3}}
    under_pressure:
      - {{cap_power: 70%}}
      - {{shrink_batch: 50%, when: power_headroom < 15%}}
      - {{pause: 2h, when: power_headroom < 5%}}
      - {{migrate: any}}
    signals: {{checkpoint: SIGUSR1, finish: SIGTERM, saved_to: out/}}
    restart: {{max: 5}}
  evaluate: {{after: [train], run: python evaluate.py}}
gates:
  - accuracy >= 0.92
  - latency_p95_ms <= 40
  - fairness_gap <= 0.05
release: {{name: tiny-lm, to: staging, approval: required}}
"""


def a_pipeline(text: str) -> Pipeline:
    return parse_document(text.encode(), Pipeline, file="wattline.yaml")


def test_the_documented_pipeline_is_read_in_base_units() -> None:
    pipeline = a_pipeline(GOLDEN)
    train = pipeline.phases["train"]
    assert pipeline.order() == ("prepare", "train", "evaluate")
    assert train.class_ == "high-density-training"
    assert train.priority is Priority.NORMAL
    assert train.constraints.peak_power == 6500.0
    assert train.constraints.max_duration == 21600.0
    assert train.constraints.bandwidth.sync == 40e9
    assert train.deadline is not None
    assert train.deadline.isoformat() == "2026-12-01T08:00:00+00:00"
    assert [rung.rung().kind for rung in train.under_pressure or ()] == [
        "cap_power",
        "shrink_batch",
        "pause",
        "migrate",
    ]
    assert train.resources.gpu == ("H100", "A100")
    assert pipeline.data[0].schema_ == "data/corpus.schema.yaml"


def test_a_single_gpu_model_needs_no_list_and_a_checkpoint_time_is_seconds() -> None:
    pipeline = a_pipeline(
        HEAD + "phases: {a: {run: x, resources: {gpu: A100, gpus: 1}, checkpoint: {every: 5min}}}\n"
    )
    phase = pipeline.phases["a"]
    assert phase.resources.gpu == ("A100",)
    assert phase.checkpoint is not None
    assert not isinstance(phase.checkpoint.every, str)
    assert phase.checkpoint.every.seconds == 300.0


@pytest.mark.parametrize(
    ("phase", "column", "field", "message", "allowed", "nearest"),
    [
        ("constraints: {peak_power: -5kW}", 38, "constraints.peak_power", "lies between 0", None, None),
        ("constraints: {peak_power: .nan}", 38, "constraints.peak_power", "finite number", None, None),
        ("constraints: {peak_power: 1e30kW}", 38, "constraints.peak_power", "lies between 0", None, None),
        (
            "constraints: {peak_power: 6.5}",
            38,
            "constraints.peak_power",
            "needs a unit, such as 6.5kW",
            None,
            None,
        ),
        ("constraints: {thermall: high}", 26, "constraints.thermall", "unknown field", "thermal", "thermal"),
        ("clas: x", 12, "clas", "unknown field", "class", "class"),
        ("class_: x", 12, "class_", "unknown field", "class", "class"),
        ("constraints: {locality: raks}", 36, "constraints.locality", "not one of", "nvlink, node", "rack"),
        ("constraints: {burst: yes}", 33, "constraints.burst", "either true or false", None, None),
        ("mode: aproximate", 18, "mode", "not one of", "canonical, approximate", "approximate"),
        ("resources: {gpus: true}", 30, "resources.gpus", "a whole number", None, None),
        ("resources: {gpus: 1.5}", 30, "resources.gpus", "a whole number", None, None),
        ("resources: {gpus: -1}", 30, "resources.gpus", "too small", "at least 0", None),
        ("after: prepare", 19, "after", "this is a list", None, None),
        ("restart: 5", 21, "restart", "a mapping of fields", None, None),
        ("class: 5", 19, "class", "this is text; put it in quotes", None, None),
        ("profile: {cpus: lots}", 28, "profile.cpus", "this is a number", None, None),
        ("profile: {cpus: .inf}", 28, "profile.cpus", "finite number", None, None),
        ("checkpoint: {every: soon}", 32, "checkpoint.every", "written as 6h, or auto", None, None),
        ("checkpoint: {every: 0s}", 32, "checkpoint.every", "at least 1 s apart", None, None),
        ("checkpoint: {keep: 0}", 31, "checkpoint.keep", "too small", "at least 1", None),
        ("deadline: 5", 22, "deadline", "2026-12-01T08:00Z", None, None),
        ("deadline: tomorrow", 22, "deadline", "2026-12-01T08:00Z", None, None),
        ("deadline: 2026-12-01T08:00", 22, "deadline", "says its zone", None, None),
        ("signals: {checkpoint: SIGKILL}", 34, "signals.checkpoint", "SIGUSR1", None, None),
        ("signals: {saved_to: ../out}", 32, "signals.saved_to", "the folder of its document", None, None),
        (
            "under_pressure: [{cap_powr: 70%}]",
            30,
            "under_pressure[0].cap_powr",
            "unknown",
            "stop",
            "cap_power",
        ),
        (
            "under_pressure: [{cap_power: 170%}]",
            41,
            "under_pressure[0].cap_power",
            "between 0 and 1",
            None,
            None,
        ),
        ("under_pressure: [{pause: 0s}]", 37, "under_pressure[0].pause", "of zero is no rung", None, None),
        ("under_pressure: [{}]", 29, "under_pressure[0]", "exactly one of cap_power", None, None),
        ("under_pressure: [{stop: false}]", 36, "under_pressure[0].stop", "not one of", "true", None),
        (
            "under_pressure: [{stop: true, when: power_hedroom < 5%}]",
            48,
            "under_pressure[0].when",
            "unknown name 'power_hedroom'",
            "power_headroom, cooling_headroom",
            "power_headroom",
        ),
    ],
)
def test_a_wrong_field_is_told_with_its_place_and_what_would_be_right(
    faults_in: Callable[..., tuple[Problem, ...]],
    phase: str,
    column: int,
    field: str,
    message: str,
    allowed: str | None,
    nearest: str | None,
) -> None:
    (problem,) = faults_in(f"{HEAD}phases:\n  a: {{run: x,\n           {phase}}}\n", Pipeline)
    assert (problem.line, problem.column) == (7, column)
    assert problem.field == f"phases.a.{field}"
    assert message in problem.message
    assert (allowed or "") in (problem.allowed or "")
    assert problem.nearest == nearest


def test_phases_that_wait_for_each_other_are_told_as_a_circle(
    faults_in: Callable[..., tuple[Problem, ...]],
) -> None:
    text = HEAD + (
        "phases:\n  d: {run: x, after: [a]}\n  a: {run: x, after: [c]}\n"
        "  b: {run: x, after: [a]}\n  c: {run: x, after: [b]}\n"
    )
    (problem,) = faults_in(text, Pipeline)
    assert (problem.line, problem.column, problem.field) == (7, 22, "phases.a.after")
    assert "a → c → b → a" in problem.message


def test_a_phase_may_not_wait_for_itself(faults_in: Callable[..., tuple[Problem, ...]]) -> None:
    (problem,) = faults_in(HEAD + "phases: {a: {run: x, after: [a]}}\n", Pipeline)
    assert "a → a" in problem.message


def test_a_phase_that_waits_for_nobody_known_is_told_who_it_may_mean(
    faults_in: Callable[..., tuple[Problem, ...]],
) -> None:
    text = HEAD + "phases:\n  train: {run: x}\n  evaluate: {run: x, after: [trian]}\n"
    (problem,) = faults_in(text, Pipeline)
    assert (problem.line, problem.column, problem.field) == (7, 30, "phases.evaluate.after[0]")
    assert problem.value == "'trian'"
    assert problem.allowed == "train, evaluate"
    assert problem.nearest == "train"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../x", "a name is"),
        ("a/b", "a name is"),
        ("..", "a name is"),
        ("-rf", "a name is"),
        ("a b", "a name is"),
        ("a" * 65, "a name is"),
        ("é", "a name is"),
        ("a\u200eb", "control or direction character (U+200E)"),
    ],
)
def test_a_name_with_tricks_is_refused_wherever_names_stand(
    faults_in: Callable[..., tuple[Problem, ...]], name: str, message: str
) -> None:
    (as_key,) = faults_in(f'{HEAD}phases:\n  "{name}": {{run: x}}\n', Pipeline)
    assert (as_key.line, as_key.column) == (6, 3)
    assert message in as_key.message
    (as_value,) = faults_in(
        HEAD.replace("owner: nlp", f'owner: "{name}"') + "phases: {a: {run: x}}\n", Pipeline
    )
    assert (as_value.line, as_value.column, as_value.field) == (3, 8, "owner")
    assert message in as_value.message


def test_all_faults_of_a_file_are_told_in_its_order(faults_in: Callable[..., tuple[Problem, ...]]) -> None:
    text = (
        "pipeline: 2024\nmodle: x\nowner: nlp\nproject: nlp\nimage: repo/train:latest\n"
        "phases: {a: {}}\ngates: [accuracy >=, 1 > 2, a > 40KW]\ndata: [{name: a, path: /etc/passwd}]\n"
    )
    problems = faults_in(text, Pipeline)
    assert [(each.line, each.field) for each in problems] == [
        (1, "model"),
        (1, "pipeline"),
        (2, "modle"),
        (5, "image"),
        (6, "phases.a.run"),
        (7, "gates[0]"),
        (7, "gates[1]"),
        (7, "gates[2]"),
        (8, "data[0].path"),
    ]
    by_field = {each.field: each for each in problems}
    assert by_field["modle"].nearest == "model"
    assert "digest" in by_field["image"].message
    assert by_field["phases.a.run"].message == "this field is required"
    assert by_field["gates[2]"].nearest == "kW"


def test_two_data_entries_of_one_name_are_refused(faults_in: Callable[..., tuple[Problem, ...]]) -> None:
    text = HEAD + "phases: {a: {run: x}}\ndata:\n  - {name: a, path: x}\n  - {name: a, path: y}\n"
    (problem,) = faults_in(text, Pipeline)
    assert (problem.line, problem.column, problem.field) == (8, 12, "data[1].name")


def test_only_fifty_faults_get_words(faults_in: Callable[..., tuple[Problem, ...]]) -> None:
    problems = faults_in(HEAD + "".join(f"unknown{n}: 1\n" for n in range(300)), Pipeline)
    assert len(problems) == 51
    assert problems[-1].message == "and 251 more problems after this one"


def can_be_ordered(after: dict[str, list[str]]) -> bool:
    try:
        TopologicalSorter(after).prepare()
    except CycleError:
        return False
    return True


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3), min_size=1)
)
def test_phases_are_ordered_after_what_they_wait_for_or_refused(after: dict[str, list[str]]) -> None:
    known = {name: [earlier for earlier in names if earlier in after] for name, names in after.items()}
    phases = {name: {"run": "x", "after": names} for name, names in known.items()}
    document = {"pipeline": "p", "model": "m", "owner": "o", "project": "r", "phases": phases}
    if not can_be_ordered(known):
        with pytest.raises(ValueError, match="wait for each other"):
            Pipeline.model_validate(document)
        return
    order = Pipeline.model_validate(document).order()
    assert sorted(order) == sorted(known)
    assert all(order.index(earlier) < order.index(name) for name in known for earlier in known[name])
