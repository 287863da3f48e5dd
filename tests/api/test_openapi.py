"""The API is what it says of itself: schemathesis calls all of it with anything and holds it to its word."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from api.conftest import wait_until_conducting
from api.serving import Running, serving

EXAMPLES = int(os.environ.get("WATTLINE_API_EXAMPLES", "12"))  # more of them in a soak
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a run that has ended, one that runs, and one that waits."""
    with serving(tmp_path_factory.mktemp("described") / "home") as running:
        wait_until_conducting(running)
        running.wait(running.submit("true", name="ended"), "succeeded")
        running.submit("sleep 600", name="runs")
        yield running


def test_the_description_is_openapi_3_1_and_names_every_endpoint_once(described: Running) -> None:
    told = described.get("/api/v1/openapi.json")
    assert told["openapi"] == "3.1.0"
    names = [operation["operationId"] for path in told["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))
    assert "submit_run" in names


@pytest.mark.timeout(600 if EXAMPLES <= 12 else 7200)
def test_nothing_is_answered_that_is_not_documented_and_no_call_breaks_the_server(described: Running) -> None:
    schema = schemathesis.openapi.from_url(f"{described.url}/api/v1/openapi.json")
    began, count = time.monotonic(), 0

    for result in schema.exclude(operation_id="follow_events").get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def call(case: schemathesis.Case[Any]) -> None:
            nonlocal count
            count += 1
            case.call_and_validate(checks=CHECKS, base_url=described.url, timeout=60)

        given(case=operation.as_strategy())(call)()
    assert count > 100, time.monotonic() - began
