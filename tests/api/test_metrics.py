"""Numbers for Prometheus, judged by its own tool; and rules that alert on them."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from api.serving import Running

RULES = Path(__file__).parents[2] / "examples" / "alerts" / "wattline.rules.yaml"


def metrics(server: Running) -> str:
    server.wait(server.submit("true", name="counted"), "succeeded")
    server.call("GET", "/api/v1/runs/nowhere")
    return server.call("GET", "/metrics").body.decode()


def test_jobs_sites_and_calls_are_counted(server: Running) -> None:
    text = metrics(server)
    assert re.search(r'^wattline_jobs\{project="nlp",state="succeeded"\} [1-9]', text, re.MULTILINE)
    assert re.search(
        r'^wattline_http_requests_total\{endpoint="show_run",status="404"\} [1-9]', text, re.MULTILINE
    )
    assert "wattline_conducting 1\n" in text
    assert 'wattline_cap_watts{kind="power.rack",subject="zurich/r1"}' in text
    assert "wattline_gpus_in_use" in text


@pytest.mark.needs("promtool")
def test_promtool_finds_nothing_wrong_with_the_metrics(server: Running) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=metrics(server),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.needs("promtool")
def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_rules_speak_of_metrics_that_there_are(own: Running) -> None:
    text = metrics(own)
    agent = {"site": "zurich", "agent": "a", "number": 1, "clock": time.time()}
    assert own.call("POST", "/api/v1/sites/zurich/sync", agent).status == 200
    give_up_at = time.monotonic() + 30
    while "wattline_site_standing" not in text:
        assert time.monotonic() < give_up_at
        text = own.call("GET", "/metrics").body.decode()
    known = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            named = {
                re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"wattline_\w+", rule["expr"])
            }
            assert set(named) <= known, rule["alert"]
            assert rule["annotations"]["summary"]
