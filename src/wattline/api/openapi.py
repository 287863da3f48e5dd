"""What does the API say of itself? OpenAPI 3.1, made of the endpoints and the types that they answer with."""

from __future__ import annotations

import http
from collections.abc import Sequence
from typing import Any

import msgspec

from wattline import __version__
from wattline.api.call import Endpoint, Parameter
from wattline.api.problems import MEDIA_TYPE, Problem

_REF = "#/components/schemas/{name}"
_STRING, _OBJECT = {"type": "string"}, {"type": "object"}
_OF_MEDIA = {"text/plain": _STRING, "text/event-stream": _STRING, "application/yaml": _OBJECT}
_ANY_REFUSAL = (400, 429, 500, 503)
_NAMES: dict[str, dict[str, Any]] = {
    "run": {"type": "string", "minLength": 1, "maxLength": 64},
    "phase": {"type": "string", "minLength": 1, "maxLength": 64},
    "site": {"type": "string", "minLength": 1, "maxLength": 64},
    "exception": {"type": "string", "minLength": 1, "maxLength": 64},
    "attempt": {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}


def _anything(kind: type) -> dict[str, Any]:
    """What a gate or a release says of itself may be any JSON."""
    if kind is object:
        return {"description": "any JSON"}
    raise NotImplementedError(kind)


def describe_api(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole document."""
    kinds = [kind for endpoint in endpoints for kind in (endpoint.answer, endpoint.takes) if _is_named(kind)]
    schemas, components = msgspec.json.schema_components(
        [Problem, *kinds], ref_template=_REF, schema_hook=_anything
    )
    schema_of = dict(zip([Problem, *kinds], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Wattline",
            "version": __version__,
            "description": "The control plane between a team's repository and its GPU halls. Errors are "
            "problem details (RFC 9457).",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _is_named(kind: Any) -> bool:
    return kind is not None and kind is not bytes


def _operation(endpoint: Endpoint, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.say,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, schema_of),
        "security": [{"token": []}, {}] if endpoint.allowed is not None else [],
    }
    if endpoint.takes is bytes:
        told["requestBody"] = {"required": True, "content": {"application/octet-stream": {"schema": {}}}}
    elif endpoint.takes is not None:
        content = {"application/json": {"schema": schema_of[endpoint.takes]}}
        told["requestBody"] = {"required": not endpoint.takes_optional, "content": content}
    return told


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    in_path = [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")]
    told: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _NAMES[name]} for name in in_path
    ]
    for place, parameters in (("query", endpoint.query), ("header", endpoint.headers)):
        told += [
            {
                "name": one.name,
                "in": place,
                "required": False,
                "description": one.say,
                "schema": schema_of(one),
            }
            for one in parameters
        ]
    return told


def schema_of(parameter: Parameter) -> dict[str, Any]:
    return msgspec.json.schema(parameter.kind)


def _responses(endpoint: Endpoint, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": http.HTTPStatus(endpoint.status).phrase}
    if endpoint.method != "HEAD":
        schema = _OF_MEDIA.get(endpoint.media, {}) if endpoint.answer is None else schemas[endpoint.answer]
        good["content"] = {endpoint.media: {"schema": schema}}
    told = {str(endpoint.status): good}
    for status in endpoint.also:
        told[str(status)] = {"description": http.HTTPStatus(status).phrase}
    refusals = {*_ANY_REFUSAL, *endpoint.refuses, *((401, 403) if endpoint.allowed is not None else ())}
    for status in sorted(refusals):
        told[str(status)] = {"description": http.HTTPStatus(status).phrase}
        if endpoint.method != "HEAD":
            told[str(status)]["content"] = {MEDIA_TYPE: {"schema": schemas[Problem]}}
    return told
