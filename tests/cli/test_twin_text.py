from __future__ import annotations

import pytest

from twin.recording import a_report
from wattline.cli.twin_text import print_comparison, print_report
from wattline.twin.comparison import METRICS, compare
from wattline.twin.figures import side_by_side
from wattline.twin.report import JobCounts, Minutes, Report

Capture = pytest.CaptureFixture[str]


def runs(policy: str, energies: list[float], **changes: object) -> list[Report]:
    return [
        a_report(policy=policy, seed=seed, energy_kwh=kwh, **changes) for seed, kwh in enumerate(energies)
    ]


def row_of(shown: str, first: str) -> list[str]:
    return next(line.split() for line in shown.splitlines() if line.strip().startswith(first))


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_report_fits_eighty_columns_with_units(capsys: Capture) -> None:
    large = {"cost_usd": 98_765_432.0, "useful_gpu_hours": 123_456_789.0, "power_throttle_gpu_seconds": 1e9}
    print_report(a_report(**large))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for said in (
        "5,234",
        "21.3 min",
        "79 %",
        "1.75 GWh",
        "98,765,432 USD",
        "440 t",
        "1.38 MW",
        "123,456,789",
    ):
        assert said in shown
    assert " ".join(row_of(shown, "64+")) == "64+ GPUs 10 2 h 2 h 2 h"
    assert " ".join(row_of(shown, "lulea")) == "lulea 640 MWh 29,100 USD 12.9 t 541 kW 1.050 1.090 88 %"


def test_time_of_many_at_once_is_never_told_as_days_and_slowing_is_told_by_its_cause(capsys: Capture) -> None:
    over = {f"zurich/r{rack}": 14_400.0 for rack in range(30)}
    print_report(a_report(cap_violation_seconds=sum(over.values()), cap_violations=over))
    shown = " ".join(capsys.readouterr().out.split())
    assert "caps violated, added up 120 h" in shown
    assert "… racks and supplies 30" in shown
    assert "… the worst of them 4 h" in shown
    assert "GPU-hours slowed by caps 200" in shown
    assert "GPU-hours slowed by heat 10" in shown


def test_a_report_says_that_it_is_emulated_what_was_refused_and_what_is_not_known(capsys: Capture) -> None:
    print_report(a_report(carbon_kg=None, wait_minutes=Minutes.of_seconds([])))
    shown = capsys.readouterr().out
    assert "emulated: a twin, not measurements" in shown
    assert "refused by gang.size: 9" in shown
    assert "not known: carbon_kg, wait_minutes.mean" in shown


def test_nothing_from_outside_reaches_the_terminal_as_an_order(capsys: Capture) -> None:
    evil = "\x1b[2J[bold]x"
    site = a_report().sites["lulea"]
    print_report(
        a_report(trace=evil, policy=evil, digest=evil, sites={evil: site}, refused_because={evil: 1})
    )
    print_comparison(compare([*runs(evil, [1, 2]), *runs(evil + "2", [2, 3])]))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[bold]x" in shown


def test_a_comparison_says_what_is_better_worse_and_unclear(capsys: Capture) -> None:
    print_comparison(
        compare(
            [
                *runs("fifo", [1e6, 1.1e6, 1.2e6]),
                *runs("thrifty", [0.9e6, 1.0e6, 1.1e6]),
                *runs("greedy", [1.2e6, 1.3e6, 1.4e6]),
                *runs("random", [1.3e6, 0.9e6, 1.2e6]),
            ]
        )
    )
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert row_of(shown, "fifo") == ["fifo", "1.1", "GWh"]
    assert row_of(shown, "thrifty")[1:5] == ["1", "GWh", "-100", "MWh"]
    assert row_of(shown, "thrifty")[-1] == "better"
    assert row_of(shown, "greedy")[-1] == "worse"
    assert row_of(shown, "random")[-1] == "unclear"


def test_a_scenario_leaves_out_what_neither_policy_has_and_keeps_what_one_has() -> None:
    ours, theirs = a_report(egress_usd=12.0), a_report(policy="fifo")
    shown = {name: values for name, *values in side_by_side([ours, theirs])}
    assert shown["cost of egress"] == ["12.00 USD", "0.00 USD"]
    assert not {"machines taken back", "ended after their deadline"} & set(shown)
    assert shown["breakers tripped"] == ["0", "0"]


def test_what_jobs_waited_for_is_told_by_share_the_most_first(capsys: Capture) -> None:
    waits = {"cooling.loop": 750.0, "gpus": 200.0, "power.rack": 50.0}
    report = a_report(waited_for=waits, idle_gpu_hours=1000.0)
    print_report(report)
    shown = capsys.readouterr().out
    assert " ".join(row_of(shown, "cooling.loop")) == "cooling.loop 750 75 %"
    assert "Jobs waited for cooling.loop 75 % of their time" in shown
    beside = {name: values for name, *values in side_by_side([report, a_report(policy="fifo")])}
    assert beside["jobs waited most for"] == ["cooling.loop, 75 %", "–"]
    assert beside["GPU-hours idle while jobs waited"] == ["1,000", "0"]


def test_shares_differ_by_points(capsys: Capture) -> None:
    print_comparison(compare([a_report(policy="fifo"), a_report(policy="easy", utilisation=0.7)]))
    assert "easy 70 % -9 points" in " ".join(capsys.readouterr().out.split())


def test_what_is_the_same_for_all_is_told_once(capsys: Capture) -> None:
    print_comparison(compare([*runs("fifo", [1e6, 1.1e6]), *runs("easy", [0.9e6, 1.2e6])]))
    shown = " ".join(capsys.readouterr().out.split())
    assert "the same for all: jobs completed 5,234; jobs refused 12;" in shown
    assert shown.count("fifo") == 2  # in the heading and under energy


def test_one_seed_is_not_enough_to_be_sure(capsys: Capture) -> None:
    print_comparison(compare([*runs("fifo", [1e6]), *runs("easy", [0.9e6])]))
    shown = capsys.readouterr().out
    assert "one seed" in shown
    assert "better" not in shown


def test_what_comes_of_refusing_jobs_is_not_called_better(capsys: Capture) -> None:
    choosy = {"jobs": JobCounts(submitted=5250, completed=34, refused=5212, unfinished=4)}
    print_comparison(compare([*runs("all", [1e6, 1.1e6]), *runs("choosy", [1e5, 1.1e5], **choosy)]))
    shown = capsys.readouterr().out
    assert row_of(shown.partition("\nenergy ")[2], "choosy")[-2:] == ["fewer", "jobs"]
    assert row_of(shown.partition("\njobs refused ")[2], "choosy")[-1] == "worse"
    assert "better" not in shown
    assert "fewer jobs: choosy refused more" in shown
    print_comparison(compare([*runs("choosy", [1e6, 1.1e6], **choosy), *runs("all", [1e5, 1.1e5])]))
    shown = capsys.readouterr().out
    assert row_of(shown.partition("\nenergy ")[2], "all")[-1] == "better", "it did more with less"
    assert "fewer jobs" not in shown


def test_wide_figures_and_long_names_still_fit(capsys: Capture) -> None:
    long = "a-policy-with-a-name-that-nobody-can-remember"
    huge = {"cost_usd": 98_765_432.0, "useful_gpu_hours": 123_456_789.0}
    print_comparison(compare([*runs("fifo", [1e6, 2e6]), *runs(long, [0.9e6, 2.2e6], **huge)]))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_every_metric_has_a_name_for_people(capsys: Capture) -> None:
    print_comparison(compare([*runs("fifo", [1e6, 1e6]), *runs("easy", [1e6, 1e6])]))
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count(";") >= len(METRICS) - 1
