"""What every part of a document has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A part of a document: unknown fields are errors, nothing changes after reading."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)
