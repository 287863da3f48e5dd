"""What does a document say? Files in, checked values out; every fault with its line, column and field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from wattline.errors import DocumentError, UnavailableError
from wattline.facility import Facility
from wattline.spec.facility import FacilityDocument
from wattline.spec.facility_build import build_facility
from wattline.spec.faults import Faults
from wattline.spec.flaws import Flaw
from wattline.spec.pipeline import Pipeline
from wattline.spec.plan import Plan
from wattline.spec.policy import Policy
from wattline.spec.problems import problems_at, problems_of
from wattline.spec.scenario import Scenario
from wattline.spec.shipped import find_facility, find_plan, find_policy, find_scenario
from wattline.spec.source import LARGEST_BYTES, parse_source
from wattline.spec.tree import Node, printable

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Written(Generic[Model]):
    """A document that is right by itself, and where each part of it stands: names may still lead nowhere."""

    document: Model
    path: Path
    root: Node

    def wrong(self, flaws: Sequence[Flaw]) -> DocumentError:
        """What a later check found, with lines and columns; paths begin at the top."""
        return DocumentError(*problems_at(flaws, self.root, printable(str(self.path), longest=1000)))


def read_pipeline(path: str | Path) -> Pipeline:
    """Read a `wattline.yaml`."""
    return read_document(path, Pipeline)


def read_policy(name_or_path: str | Path) -> Policy:
    """Read a `policy.yaml`, or one that ships, by its name."""
    return read_document(find_policy(name_or_path), Policy)


def read_faults(path: str | Path) -> Faults:
    """Read a faults file."""
    return read_document(path, Faults)


def read_facility(name_or_path: str | Path) -> Facility:
    """Read a `facility.yaml`, or one that ships, by its name."""
    path = find_facility(name_or_path)
    return build_facility(read_document(path, FacilityDocument), source=str(path))


def read_scenario(name_or_path: str | Path) -> Written[Scenario]:
    """Read a scenario, or one that ships, by its name; what it names is looked up in a facility later."""
    return _read_written(find_scenario(name_or_path), Scenario)


def read_plan(name_or_path: str | Path) -> Written[Plan]:
    """Read a plan, or one that ships, by its name; what it names is looked up in a facility later."""
    return _read_written(find_plan(name_or_path), Plan)


def _read_written(path: Path, model: type[Model]) -> Written[Model]:
    raw = _read_bytes(path)
    document = parse_document(raw, model, file=str(path))
    return Written(document, path, parse_source(raw, str(path)))


def read_document(path: str | Path, model: type[Model]) -> Model:
    """Read a file as a document of this kind.

    Raises UnavailableError when there is no such file or it cannot be read, and DocumentError with all faults
    found when its content is wrong.
    """
    return parse_document(_read_bytes(Path(path)), model, file=str(path))


def parse_document(raw: bytes, model: type[Model], *, file: str) -> Model:
    """Read bytes as a document of this kind; `file` is what its faults are reported under."""
    file = printable(file, longest=1000)
    root = parse_source(raw, file)
    try:
        return model.model_validate(root.value, by_alias=True, by_name=False)
    except ValidationError as error:
        raise DocumentError(*problems_of(error, root, model, file)) from None


def _read_bytes(path: Path) -> bytes:
    shown = printable(str(path), longest=1000)
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise UnavailableError(f"{shown}: there is no such file", hint=_hint_for_missing(path)) from error
    except IsADirectoryError as error:
        raise UnavailableError(f"{shown}: this is a directory, not a file") from error
    except OSError as error:
        raise UnavailableError(f"{shown}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnavailableError(f"{shown}: cannot be read: {error}") from error


def _hint_for_missing(path: Path) -> str:
    return "`wattline init` writes a first one" if path.name == "wattline.yaml" else "check the path"
