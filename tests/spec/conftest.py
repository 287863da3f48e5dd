"""What every test of a document needs: its faults, as values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import BaseModel

from wattline.errors import DocumentError, Problem
from wattline.spec import parse_document

Faulty = Callable[[str | bytes, type[BaseModel]], tuple[Problem, ...]]


@pytest.fixture(scope="session")
def faults_in() -> Faulty:
    def find(text: str | bytes, model: type[BaseModel]) -> tuple[Problem, ...]:
        raw = text.encode() if isinstance(text, str) else text
        with pytest.raises(DocumentError) as raised:
            parse_document(raw, model, file="written.yaml")
        assert raised.value.exit_code == 2
        assert all(problem.file == "written.yaml" for problem in raised.value.problems)
        return raised.value.problems

    return find
