"""What a pipeline says so that it can be checked before a GPU is touched."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from wattline.spec.document import Document
from wattline.spec.quantities import Number, RelativePath, Seconds, Whole

_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,3}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SIZES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_COUNT = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMBT]?)")


def _check_version(value: object) -> object:
    # YAML reads 12.10 as the number 12.1.
    if isinstance(value, int | float):
        raise ValueError('a version stands in quotes, such as "12.4"')  # noqa: TRY004 - pydantic reads ValueError
    if isinstance(value, str) and _VERSION.fullmatch(value) is None:
        raise ValueError('a version is numbers with dots between them, such as "12.4"')
    return value


def _check_variable(value: str) -> str:
    if _VARIABLE.fullmatch(value) is None:
        raise ValueError("an environment variable is letters, digits and underscores, no digit first")
    return value


def _read_count(value: object) -> object:
    """`7B` for seven billion."""
    if isinstance(value, str):
        found = _COUNT.fullmatch(value)
        if found is None:
            raise ValueError("a number of parameters is written as 350M, 7B or 1300000000")
        return float(found[1]) * _SIZES.get(found[2], 1.0)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Version = Annotated[str, BeforeValidator(_check_version)]
Variable = Annotated[str, AfterValidator(_check_variable)]
Parameters = Annotated[float, BeforeValidator(_read_count), Field(gt=0, le=1e15, allow_inf_nan=False)]
Positive = Annotated[Whole, Field(ge=1, le=1_000_000_000)]
Parameter = Number | Whole | str | bool


class Tokenizer(Document):
    """What turns text into tokens, and the model that must know all of them."""

    file: RelativePath  # tokenizer.json
    config: RelativePath  # the model's config.json


class Runtime(Document):
    """What the image holds, and the driver that its hosts have."""

    python: Version | None = None
    torch: Version | None = None
    cuda: Version | None = None
    driver: Version | None = None


class Launch(Document):
    """How the processes of a phase divide its work; all that is said is checked against each other."""

    processes: Positive | None = None  # one for each GPU unless said
    tensor_parallel: Positive = 1
    pipeline_parallel: Positive = 1
    global_batch: Positive | None = None
    micro_batch: Positive | None = None
    parameters: Parameters | None = None
    layers: Positive | None = None
    hidden: Positive | None = None
    heads: Positive | None = None
    sequence: Positive | None = None
    precision: Literal["fp32", "bf16", "fp16", "fp8"] = "bf16"
    optimizer: Literal["adamw", "sgd", "none"] = "adamw"
    sharding: Literal["none", "optimizer", "gradients", "all"] = "none"  # over data-parallel ranks
    recompute: Literal["none", "full"] = "none"  # activations


class Rehearsal(Document):
    """A tiny pass of a phase before it is submitted: its real code, on a processor, for a step."""

    run: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None  # else the phase's own
    steps: Annotated[Whole, Field(ge=1, le=1000)] = 1
    params: Annotated[dict[str, Parameter], Field(max_length=200)] = Field(default_factory=dict)
    within: Annotated[Seconds, Field(gt=0, le=600)] = 60.0
