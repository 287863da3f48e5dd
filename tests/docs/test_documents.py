"""The reference of documents: every example is read by the real reader, every table is held to its model."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from wattline.errors import DocumentError
from wattline.spec import (
    PRESSURE_VARIABLES,
    RULE_STRUCTS,
    FacilityDocument,
    Faults,
    Pipeline,
    Plan,
    Policy,
    Scenario,
    parse_document,
)
from wattline.spec.source import parse_source

PAGE = Path(__file__).parents[2] / "docs" / "documents.md"
TEXT = PAGE.read_text(encoding="utf-8")
KINDS: dict[str, type[BaseModel]] = {
    "pipeline": Pipeline,
    "facility": FacilityDocument,
    "policy": Policy,
    "faults": Faults,
    "plan": Plan,
    "scenario": Scenario,
}
BLOCKS = re.findall(r"^```yaml *(.*?)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models that an annotation speaks of, those they speak of too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    elif get_origin(annotation) in (Annotated, Union, types.UnionType, tuple, dict, list):
        for part in get_args(annotation):
            yield from models_in(part)


# `Every` is written as a plain duration, so it has no fields of its own in a document.
MODELS = {
    model.__name__: model for kind in KINDS.values() for model in models_in(kind) if model.__name__ != "Every"
}


def rows_of(model: str) -> dict[str, str]:
    """The table that follows a model's mark: field to what stands under default."""
    found = re.search(rf"^<!-- {model} -->\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert found is not None, f"{PAGE.name} has no table marked <!-- {model} -->"
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in found[1].splitlines()[2:]]
    return {row[0].strip("`"): row[2] for row in cells}


@pytest.mark.parametrize(("mark", "source"), BLOCKS, ids=lambda text: text.splitlines()[0][:40])
def test_an_example_is_what_its_mark_says(mark: str, source: str) -> None:
    kind, *wrong = mark.split()
    if wrong:
        with pytest.raises(DocumentError):
            parse_document(source.encode(), KINDS[kind], file="wattline.yaml")
    else:
        parse_document(source.encode(), KINDS[kind], file=f"{kind}.yaml")


def test_every_kind_of_document_has_an_example() -> None:
    assert {mark.split()[0] for mark, _ in BLOCKS} == set(KINDS)


def test_the_errors_shown_are_those_that_are_told() -> None:
    (source,) = [source for mark, source in BLOCKS if mark.endswith("wrong")]
    shown = TEXT.rpartition("```text\n")[2].partition("```")[0]
    with pytest.raises(DocumentError) as caught:
        parse_document(source.encode(), Pipeline, file="wattline.yaml")
    assert shown == f"{caught.value}\n"


@pytest.mark.parametrize("name", MODELS)
def test_a_table_has_the_fields_of_its_model_and_no_other(name: str) -> None:
    known = [field.alias or field_name for field_name, field in MODELS[name].model_fields.items()]
    assert list(rows_of(name)) == known


@pytest.mark.parametrize("name", MODELS)
def test_a_table_has_the_defaults_of_its_model(name: str) -> None:
    rows = rows_of(name)
    for field_name, field in MODELS[name].model_fields.items():
        assert means(rows[field.alias or field_name], field), f"{name}.{field_name}"


def means(written: str, field: FieldInfo) -> bool:
    """Whether what stands under default is the default."""
    if written == "required":
        return field.is_required()
    default: Any = field.get_default(call_default_factory=True)
    if written in ("none", "empty", "as below", "as above"):
        kinds = {
            "none": default is None,
            "empty": default in ((), {}, ""),
            "as below": isinstance(default, BaseModel),
            "as above": isinstance(default, BaseModel),
        }
        return kinds[written]
    value = parse_source(written.strip("`").encode(), "default").value
    annotation: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    adapter = TypeAdapter[Any](annotation)
    return bool(adapter.validate_python(value) == default) and not field.is_required()


def test_every_name_that_expressions_may_use_is_listed() -> None:
    listed = TEXT.partition("## Expressions")[2].partition("## Errors")[0]
    names = [*PRESSURE_VARIABLES, *(name for names in RULE_STRUCTS.values() for name in names)]
    assert [name for name in names if f"`{name}`" not in listed] == []
