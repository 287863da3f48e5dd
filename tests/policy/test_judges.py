"""Each judge turns exactly at its limit: one watt, one byte, one GPU-hour more is another answer."""

from __future__ import annotations

from typing import Any

import pytest

from building import MONDAY, Hall, a_device, a_job, a_link, a_policy, a_site, a_world, kinds
from wattline.policy.placing.judging import judge_request
from wattline.spec import Locality, Policy, Thermal
from wattline.state import Ending, JobRequest, Outcome, Usage, Verdict

START, WAIT, REFUSE = "start", "wait", "refuse"


def outcome_of(hall: Hall, request: JobRequest) -> str:
    """What becomes of one more job in this hall."""
    hall.submit(request)
    for kind, job in kinds(hall.decide()):
        if job == request.job:
            return kind
    return WAIT


def against(hall: Hall, request: JobRequest) -> list[str]:
    """The rules that keep a request from starting."""
    choice = judge_request(hall.snapshot(), hall.policy, request, None)
    return [verdict.rule for verdict in choice.verdicts if not verdict.allows]


def verdict_on(hall: Hall, request: JobRequest, rule: str) -> Verdict:
    choice = judge_request(hall.snapshot(), hall.policy, request, None)
    return next(verdict for verdict in choice.verdicts if verdict.rule == rule)


@pytest.mark.parametrize(
    ("peak_watts", "rule", "expected"),
    [
        (1000.0, "power.rack", START),
        (1001.0, "power.rack", WAIT),
        (2600.0, "power.rack", WAIT),
        (2601.0, "power.rack", REFUSE),
    ],
)
def test_a_rack_holds_its_cap_and_not_a_watt_more(peak_watts: float, rule: str, expected: str) -> None:
    hall = a_world(a_site(rack_cap_watts=2600.0))
    hall.run(a_job("r0/train", gpus=8, peak_watts=1600.0))
    request = a_job(gpus=8, peak_watts=peak_watts)
    assert against(hall, request) == ([] if expected == START else [rule])
    assert outcome_of(hall, request) == expected


@pytest.mark.parametrize(
    ("redundant", "peak_watts", "expected"),
    [(True, 2000.0, START), (True, 2001.0, REFUSE), (False, 4000.0, START), (False, 4002.0, REFUSE)],
)
def test_redundant_feeds_must_each_carry_all_of_it_alone(
    redundant: bool, peak_watts: float, expected: str
) -> None:
    hall = a_world(a_site(gpus=16, feeds_watts=(2000.0, 2000.0), redundant=redundant))
    request = a_job(gpus=16, peak_watts=peak_watts)
    assert set(against(hall, request)) <= {"power.supply"}
    assert outcome_of(hall, request) == expected


@pytest.mark.parametrize(("peak_watts", "expected"), [(900.0, START), (901.0, REFUSE)])
def test_what_the_policy_keeps_free_is_not_given_out(peak_watts: float, expected: str) -> None:
    policy = a_policy(thresholds={"power_margin": "10%"})
    assert outcome_of(
        a_world(a_site(rack_cap_watts=1000.0), policy=policy), a_job(gpus=8, peak_watts=peak_watts)
    ) == (expected)


@pytest.mark.parametrize(
    ("flow_fraction", "peak_watts", "expected"),
    [
        (1.0, 3000.0, START),
        (1.0, 3001.0, REFUSE),
        (0.5, 1723.0, START),
        (0.5, 1724.0, WAIT),
        (0.0, 1.0, WAIT),
    ],
)
def test_a_loop_carries_what_its_flow_leaves(flow_fraction: float, peak_watts: float, expected: str) -> None:
    """At half the flow 0.5^0.8 of 3 kW: 1723 W."""
    hall = a_world(a_site(loop_watts=3000.0, approach_kelvin=1.0))
    hall.read("zurich/loop", "flow_fraction", flow_fraction)
    request = a_job(gpus=8, peak_watts=peak_watts)
    if expected != START:
        assert "cooling.loop" in against(hall, request)
    assert outcome_of(hall, request) == expected


@pytest.mark.parametrize(
    ("supply_celsius", "thermal", "expected"),
    [
        (42.9, Thermal.NORMAL, START),  # 42.9 + 400 W × 0.1 K/W = 82.9, below 85 - 2
        (43.1, Thermal.NORMAL, REFUSE),
        (39.9, Thermal.HIGH, START),  # … and a hot, long job stays 5 K below
        (40.1, Thermal.HIGH, REFUSE),
        (44.9, Thermal.LOW, START),
        (45.1, Thermal.LOW, REFUSE),
    ],
)
def test_gpus_that_would_throttle_are_not_started(
    supply_celsius: float, thermal: Thermal, expected: str
) -> None:
    hall = a_world(a_site(supply_celsius=supply_celsius, approach_kelvin=1e-3))
    request = a_job(thermal=thermal)
    assert against(hall, request) == ([] if expected == START else ["heat.throttle"])
    assert outcome_of(hall, request) == expected


def test_a_predicted_throttle_says_after_how_many_minutes() -> None:
    hall = a_world(a_site(loop_watts=40_000.0, approach_kelvin=10.0))
    hall.read("zurich/loop", "supply_celsius", 48.0)
    verdict = verdict_on(hall, a_job(), "heat.throttle")
    assert verdict.outcome is Outcome.WAIT
    assert 0 < verdict.numbers["throttles_after_minutes"] < 20
    assert verdict.numbers["predicted_celsius"] > verdict.numbers["limit_celsius"]


@pytest.mark.parametrize(("minutes", "expected"), [(0.5, START), (60.0, WAIT)])
def test_a_cool_job_that_ends_before_it_would_throttle_may_start(minutes: float, expected: str) -> None:
    hall = a_world(a_site(loop_watts=40_000.0))
    hall.read("zurich/loop", "supply_celsius", 48.0)
    request = a_job(thermal=Thermal.LOW, max_duration_seconds=60 * minutes)
    assert outcome_of(hall, request) == expected


@pytest.mark.parametrize(("gigabits", "expected"), [(1.0, START), (1.01, REFUSE)])
def test_replicas_travel_in_the_links_share_for_checkpoints(gigabits: float, expected: str) -> None:
    sites = a_site("zurich"), a_site("oslo", gpus=0)
    hall = a_world(*sites, links=[a_link(("zurich", "oslo"), checkpoint_bits_per_second=1e9)])
    request = a_job(checkpoints=True, checkpoint_bits_per_second=gigabits * 1e9, replicate_to=("oslo",))
    assert against(hall, request) == ([] if expected == START else ["network.link"])
    assert outcome_of(hall, request) == expected


def test_a_link_is_shared_by_all_that_replicate_over_it() -> None:
    hall = a_world(a_site("zurich"), a_site("oslo", gpus=0), links=[a_link(("zurich", "oslo"))])
    asks: dict[str, Any] = {"checkpoints": True, "checkpoint_bits_per_second": 6e8, "replicate_to": ("oslo",)}
    hall.run(a_job("r0/train", **asks))
    verdict = verdict_on(hall, a_job(**asks), "network.link")
    assert verdict.outcome is Outcome.WAIT
    assert verdict.numbers["short_by_bits_per_second"] == 2e8


@pytest.mark.parametrize(("bits", "expected"), [(8e9, START), (8e9 + 8, REFUSE)])
def test_storage_takes_checkpoints_up_to_its_throughput(bits: float, expected: str) -> None:
    hall = a_world(a_site(storage_bytes_per_second=1e9))
    request = a_job(checkpoints=True, checkpoint_bits_per_second=bits)
    assert against(hall, request) == ([] if expected == START else ["storage.throughput"])
    assert outcome_of(hall, request) == expected


@pytest.mark.parametrize(
    ("gpus", "locality", "rule", "expected"),
    [
        (8, Locality.NODE, None, START),
        (9, Locality.NODE, "gpus", REFUSE),
        (16, Locality.RACK, None, START),
        (17, Locality.RACK, "locality", REFUSE),
        (17, Locality.SITE, None, START),
        (32, Locality.ANY, None, START),
        (33, Locality.ANY, "gpus", REFUSE),
    ],
)
def test_gpus_are_counted_within_the_locality_asked_for(
    gpus: int, locality: Locality, rule: str | None, expected: str
) -> None:
    hall = a_world(a_site(racks=2, nodes=2))
    request = a_job(gpus=gpus, locality=locality)
    assert against(hall, request) == ([] if rule is None else [rule])
    assert outcome_of(hall, request) == expected


@pytest.mark.parametrize(("gpus", "expected"), [(8, START), (9, WAIT)])
def test_gpus_that_others_hold_are_waited_for(gpus: int, expected: str) -> None:
    hall = a_world(a_site(nodes=2))
    hall.run(a_job("r0/train", gpus=8))
    request = a_job(gpus=gpus)
    if expected == WAIT:
        assert verdict_on(hall, request, "gpus").short_by == (1.0, "gpus")
    assert outcome_of(hall, request) == expected


def test_what_is_free_elsewhere_is_not_added_to_what_is_free_in_one_place() -> None:
    hall = a_world(a_site(nodes=1), a_site("oslo", nodes=1, region="no"))
    hall.run(a_job("r0/train", gpus=3, residency=("eu",)), a_job("r1/train", gpus=4, residency=("no",)))
    verdict = verdict_on(hall, a_job("r2/train", gpus=8), "gpus")
    assert verdict.numbers == {"short_by_gpus": 3.0, "asked_gpus": 8.0, "free_gpus": 5.0}


@pytest.mark.parametrize(("cpus", "expected"), [(4.0, START), (4.5, WAIT), (9.0, WAIT), (9.5, REFUSE)])
@pytest.mark.parametrize("gpus", [0, 16])
def test_cpus_come_from_the_first_node(cpus: float, gpus: int, expected: str) -> None:
    nodes = 2 if gpus else 1
    hall = a_world(a_site(nodes=nodes, cpus=9))
    hall.run(*(a_job(f"r{n}/prepare", gpus=0, cpus=5.0) for n in range(nodes)))
    request = a_job("r9/train", gpus=gpus, cpus=cpus)
    assert outcome_of(hall, request) == expected
    assert min(hall.state.ledger.millicpus_free) >= 0


@pytest.mark.parametrize(
    ("residency", "expected"), [((), START), (("eu",), START), (("us", "eu"), START), (("us",), REFUSE)]
)
def test_data_stays_where_it_may_be(residency: tuple[str, ...], expected: str) -> None:
    hall = a_world(a_site(region="eu"))
    request = a_job(residency=residency)
    assert against(hall, request) == ([] if expected == START else ["residency"])
    assert outcome_of(hall, request) == expected


@pytest.mark.parametrize(
    ("wanted", "granted", "expected"),
    [
        ((), (), START),
        (("A100",), (), START),
        (("H100",), (), REFUSE),
        (("A100", "H100"), ("A100",), START),
        (("H100",), ("A100",), REFUSE),
        ((), ("H100",), REFUSE),
    ],
)
def test_a_gpu_model_is_one_that_exists_and_that_the_team_may_use(
    wanted: tuple[str, ...], granted: tuple[str, ...], expected: str
) -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"gpu": list(granted)}}))
    request = a_job(gpu_models=wanted)
    assert against(hall, request) == ([] if expected == START else ["instance.type"])
    assert outcome_of(hall, request) == expected


def team(**quota: float) -> dict[str, Any]:
    return {"nlp": {"quota": quota}}


@pytest.mark.parametrize(
    ("quota", "rule"),
    [
        ({"gpu_hours": 8.0}, "quota.gpu_hours"),
        ({"usd": 8.32}, "budget.usd"),  # 8 GPU-hours at 1 USD and 3.2 kWh at 0.1
        ({"kwh": "3.2kWh"}, "budget.kwh"),
        ({"kg_co2e": "0.32kg"}, "budget.kg_co2e"),
    ],
)
@pytest.mark.parametrize(
    ("limit", "seconds", "expected"),
    [("hard", 3600.0, START), ("hard", 3601.0, REFUSE), ("soft", 3601.0, START)],
)
def test_a_week_has_so_much_and_a_hard_limit_is_one(
    quota: dict[str, Any], rule: str, limit: str, seconds: float, expected: str
) -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"quota": quota, "limit": limit}}))
    request = a_job(gpus=8, max_duration_seconds=seconds)
    outcome = verdict_on(hall, request, rule).outcome
    assert (
        outcome is {"hard": Outcome.ALLOW if seconds == 3600 else Outcome.REFUSE, "soft": Outcome.WARN}[limit]
    )
    assert outcome_of(hall, request) == expected


def test_a_quota_counts_what_was_used_and_what_is_promised_until_the_week_ends() -> None:
    hall = a_world(policy=a_policy(teams=team(gpu_hours=10.0)))
    hall.run(a_job("r0/train", gpus=4, max_duration_seconds=3600.0))
    hall.run(a_job("r1/train", gpus=4, max_duration_seconds=3600.0))
    hall.ended("r0/train", Ending.SUCCEEDED, Usage(gpu_hours=3.0))
    assert outcome_of(hall, a_job("r2/train", gpus=4, max_duration_seconds=3600.0)) == WAIT
    assert hall.decisions[-1].revisit_at == MONDAY + 7 * 86400
    hall.wait(7 * 86400)
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_a_job_that_comes_back_asks_only_for_the_time_it_has_left() -> None:
    """Of 100 GPU-hours 80 are promised; 24 of them are used when it is paused, and 56 asked for again."""
    hall = a_world(policy=a_policy(teams=team(gpu_hours=100.0)))
    hall.run(a_job(gpus=8, checkpoints=True, max_duration_seconds=36_000.0))
    hall.wait(3 * 3600)
    hall.asked("r1/train", "pause")
    hall.decide()
    hall.ended("r1/train", Ending.PAUSED, Usage(gpu_hours=24.0))
    hall.asked("r1/train", "resume")
    assert kinds(hall.decide()) == [("resume", "r1/train")]
    assert hall.state.accounts["nlp"].promised.usage().gpu_hours == 56.0


def test_a_job_that_has_less_time_left_is_not_held_by_one_of_its_kind_that_has_more() -> None:
    hall = a_world(policy=a_policy(teams=team(gpu_hours=100.0)))
    asks: dict[str, Any] = {"gpus": 8, "max_duration_seconds": 36_000.0}
    hall.run(a_job("r1/train", **asks))
    hall.submit(a_job("r0/train", **asks))
    hall.decide()
    hall.wait(3 * 3600)
    hall.ended("r1/train", Ending.LOST, Usage(gpu_hours=24.0))
    assert kinds(hall.decide()) == [("start", "r1/train")]


@pytest.mark.parametrize(
    ("seconds", "rules"), [(3600.0, []), (3601.0, ["duration.class"]), (None, ["duration.missing"])]
)
def test_a_class_may_bound_how_long_a_job_runs(seconds: float | None, rules: list[str]) -> None:
    hall = a_world(policy=a_policy(classes={"build": {"max_duration": "1h"}}))
    request = a_job(scheduling_class="build", max_duration_seconds=seconds)
    assert against(hall, request) == rules
    assert outcome_of(hall, request) == (REFUSE if rules else START)


def test_a_class_with_a_bound_says_what_to_write() -> None:
    hall = a_world(policy=a_policy(classes={"build": {"max_duration": "1h"}}))
    verdict = verdict_on(hall, a_job(scheduling_class="build"), "duration.missing")
    assert verdict.say == "jobs of class build run 1 h at most"
    assert verdict.change == "set constraints.max_duration to 1 h or less, or change the class"


def test_a_hard_quota_needs_to_know_how_long_a_job_may_run() -> None:
    hall = a_world(policy=a_policy(teams=team(gpu_hours=10.0)))
    assert against(hall, a_job()) == ["duration.missing"]
    assert outcome_of(hall, a_job()) == REFUSE


def ruled(mode: str, when: str = "job.gpus >= 4") -> Policy:
    return a_policy(rules=[{"name": "big", "when": when, "say": "too big", "mode": mode}])


@pytest.mark.parametrize(
    ("mode", "gpus", "outcome"),
    [
        ("report", 4, Outcome.WARN),
        ("warn", 4, Outcome.WARN),
        ("block", 4, Outcome.REFUSE),
        ("enforce", 4, Outcome.REFUSE),
        ("block", 3, None),
    ],
)
def test_a_rule_says_warns_or_refuses(mode: str, gpus: int, outcome: Outcome | None) -> None:
    hall = a_world(policy=ruled(mode))
    request = a_job(gpus=gpus)
    verdicts = judge_request(hall.snapshot(), hall.policy, request, None).verdicts
    said = [verdict.outcome for verdict in verdicts if verdict.rule == "rule.big"]
    assert said == ([] if outcome is None else [outcome])
    assert outcome_of(hall, request) == (REFUSE if outcome is Outcome.REFUSE else START)


@pytest.mark.parametrize(("mode", "expected"), [("block", WAIT), ("warn", START)])
def test_a_blocking_rule_that_cannot_be_evaluated_holds_and_does_not_refuse(mode: str, expected: str) -> None:
    hall = a_world(policy=ruled(mode, "job.gpu[3] == 'A100'"))
    request = a_job()
    assert "could not be evaluated" in verdict_on(hall, request, "rule.big").say
    assert outcome_of(hall, request) == expected


def test_a_job_held_by_a_rule_does_not_hold_others_of_its_shape() -> None:
    hall = a_world(policy=ruled("block", "job.owner == 'eve' && job.gpu[3] == 'A100'"))
    hall.submit(a_job("r1/train", owner="eve"), a_job("r2/train", owner="ada"))
    assert kinds(hall.decide()) == [("start", "r2/train")]


READ = (("r1", "rack_watts"), ("feed-a", "supply_watts"), ("loop", "loop_heat_watts"))


@pytest.mark.parametrize(("age_seconds", "expected"), [(30.0, START), (30.5, WAIT)])
def test_a_reading_too_old_counts_as_the_worst_it_could_be(age_seconds: float, expected: str) -> None:
    hall = a_world(a_site(rack_cap_watts=6600.0, telemetry="emulated"))
    for name, quantity in READ:
        hall.read(f"zurich/{name}", quantity, 100.0)
    hall.wait(age_seconds)
    assert outcome_of(hall, a_job()) == expected
    if expected == WAIT:  # a fresh reading brings it back, though it reads no less than the old one
        for name, quantity in READ:
            hall.read(f"zurich/{name}", quantity, 100.0)
        assert kinds(hall.decide()) == [("start", "r1/train")]


def test_where_nothing_was_ever_read_the_worst_is_assumed() -> None:
    hall = a_world(a_site(rack_cap_watts=6600.0, telemetry="emulated"))
    assert outcome_of(hall, a_job()) == WAIT


def test_a_gpu_whose_temperature_is_too_old_is_taken_to_be_at_its_limit() -> None:
    hall = a_world(a_site(nodes=1))
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 40.0)
    hall.wait(31)
    request = a_job()
    assert against(hall, request) == ["heat.throttle"]
    assert outcome_of(hall, request) == WAIT
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 40.0)
    assert kinds(hall.decide()) == [("start", "r1/train")]


@pytest.mark.parametrize("silent", [True, False])
def test_a_node_that_is_hot_or_silent_does_not_hide_a_cool_one_of_its_rack(silent: bool) -> None:
    hall = a_world(a_site(nodes=2))
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 40.0 if silent else 84.0)
    hall.wait(31 if silent else 0)
    hall.read("zurich/r1-n2/gpu0", "gpu_celsius", 40.0)
    hall.run(a_job())
    assert str(hall.job().place) == "zurich/r1-n2×1"


def test_a_gpu_that_was_read_too_long_ago_says_so_and_nothing_that_contradicts_it() -> None:
    hall = a_world(a_site(nodes=1))
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 40.0)
    hall.wait(60)
    verdict = verdict_on(hall, a_job(), "heat.throttle")
    assert verdict.say == "zurich/r1-n1 was last read too long ago and counts as at its limit"
    assert verdict.change == "zurich/r1-n1 is read again"
    assert verdict.numbers["unread_seconds"] == 60.0
    assert not {"short_by_celsius", "throttles_after_minutes"} & set(verdict.numbers)


def test_a_gpu_that_is_too_hot_to_begin_with_says_how_hot() -> None:
    hall = a_world(a_site(nodes=1))
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 90.0)
    verdict = verdict_on(hall, a_job(), "heat.throttle")
    assert verdict.numbers["now_celsius"] == 90.0
    assert "short_by_celsius" not in verdict.numbers


def test_what_meters_say_beyond_the_claims_is_not_free() -> None:
    hall = a_world(a_site(rack_cap_watts=7000.0, telemetry="emulated"))
    for name, quantity in READ:
        hall.read(f"zurich/{name}", quantity, 6601.0)
    assert outcome_of(hall, a_job()) == WAIT


def test_idle_draw_is_in_the_resource_and_not_in_the_claim() -> None:
    hall = a_world(a_site(nodes=1, device=a_device(idle_watts=100.0), rack_cap_watts=3200.0))
    hall.run(a_job(gpus=8))
    rack = hall.state.plant.resource_number["zurich/r1"]
    assert hall.state.plant.resources[rack].idle == 800
    assert hall.state.ledger.claimed[rack] == 2400


@pytest.mark.parametrize(
    ("residency", "granted", "expected"),
    [((), ["eu"], START), (("eu",), ["eu", "us"], START), (("us",), ["eu"], REFUSE), ((), ["us"], REFUSE)],
)
def test_a_team_runs_only_in_regions_that_it_may(
    residency: tuple[str, ...], granted: list[str], expected: str
) -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"regions": granted}}))
    assert outcome_of(hall, a_job(gpus=1, project="nlp", residency=residency)) == expected
    assert outcome_of(hall, a_job("o/train", gpus=1, project="other")) == START


@pytest.mark.parametrize(("seconds", "expected"), [(3600.0, START), (3601.0, REFUSE), (None, REFUSE)])
def test_a_team_may_be_told_how_long_a_job_of_it_runs(seconds: float | None, expected: str) -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"max_duration": "1h"}}))
    request = a_job(gpus=1, project="nlp", max_duration_seconds=seconds)
    assert against(hall, request) == ([] if expected == START else ["duration.team"])
    assert outcome_of(hall, request) == expected


def exemption(rule: str, until: str = "2100-01-01T00:00Z", project: str = "nlp") -> dict[str, str]:
    return {"rule": rule, "project": project, "until": until, "because": "a deadline", "approved_by": "ops"}


def test_a_rule_that_loops_over_a_long_list_ends_and_makes_the_job_wait() -> None:
    loops = "job.gpu.all(a, job.gpu.all(b, job.gpu.all(c, a != b || b != c || a == c)))"
    rules = [{"name": "loops", "when": loops, "say": "no", "mode": "block"}]
    hall = a_world(policy=a_policy(rules=rules))
    request = a_job(gpu_models=("A100", *[f"model-{number}" for number in range(1000)]))
    verdict = verdict_on(hall, request, "rule.loops")
    assert verdict.outcome is Outcome.WAIT
    assert "could not be evaluated" in verdict.say


@pytest.mark.parametrize(
    ("exempt", "expected"),
    [
        (exemption("small"), START),
        (exemption("rule.small"), START),
        (exemption("other"), REFUSE),
        (exemption("small", project="vision"), REFUSE),
        (exemption("small", until="1970-01-02T00:00Z"), REFUSE),
    ],
)
def test_a_rule_does_not_hold_for_a_project_that_is_exempt_until_then(
    exempt: dict[str, str], expected: str
) -> None:
    rule = {"name": "small", "when": "job.gpus > 1", "say": "one GPU each", "mode": "block"}
    hall = a_world(policy=a_policy(rules=[rule], exemptions=[exempt]))
    request = a_job(gpus=2, project="nlp")
    if expected == START:
        said = verdict_on(hall, request, "rule.small").say
        assert said == "exempt until 2100-01-01, approved by ops: a deadline"
    assert outcome_of(hall, request) == expected


def test_a_quota_that_is_used_up_does_not_hold_who_is_exempt_from_it() -> None:
    teams = {"nlp": {"quota": {"gpu_hours": 1}}}
    request = a_job(gpus=4, project="nlp", max_duration_seconds=3600.0)
    assert outcome_of(a_world(policy=a_policy(teams=teams)), request) == REFUSE
    ended = [exemption("quota.gpu_hours", until="1970-01-02T00:00Z")]
    assert outcome_of(a_world(policy=a_policy(teams=teams, exemptions=ended)), request) == REFUSE
    exempt = a_policy(teams=teams, exemptions=[exemption("quota.gpu_hours")])
    assert outcome_of(a_world(policy=exempt), request) == START
