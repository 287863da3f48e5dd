"""Which text is in force under a name, and which were before?

For small things people write and operators switch, such as the policy and the facility: each put is a new
version named by the digest of its text, and all versions stay. Returning to an old text is a version too.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from wattline.errors import UnavailableError
from wattline.store.digest import Digest
from wattline.store.errors import StoreRefusedError
from wattline.store.records import check_name
from wattline.store.schema import documents

MAX_DOCUMENT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """One version of a text."""

    kind: str
    name: str
    version: int
    digest: Digest
    text: str


def write_document(connection: Connection, kind: str, name: str, text: str) -> Digest:
    """Make a text the one in force; the one in force already is no new version."""
    check_name("document kind", kind)
    check_name("document name", name)
    content = text.encode()
    if len(content) > MAX_DOCUMENT_BYTES:
        raise StoreRefusedError(
            f"document {kind}/{name}: at most {MAX_DOCUMENT_BYTES} bytes, got {len(content)}",
            hint="split it, or keep large content in the object store",
        )
    digest = Digest.of(content)
    latest = read_document(connection, kind, name, None)
    if latest is None or latest.digest != digest:
        version = 1 if latest is None else latest.version + 1
        connection.execute(
            insert(documents).values(kind=kind, name=name, version=version, digest=str(digest), text=text)
        )
    return digest


def read_document(connection: Connection, kind: str, name: str, digest: str | None) -> Document | None:
    """The version in force, or the newest with the digest that is asked for; None if there is none."""
    query = (
        select(documents)
        .where(documents.c.kind == kind, documents.c.name == name)
        .order_by(documents.c.version.desc())
        .limit(1)
    )
    if digest is not None:
        query = query.where(documents.c.digest == str(Digest(digest)))
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    if Digest.of(row.text.encode()) != row.digest:
        raise UnavailableError(
            f"document {kind}/{name} version {row.version}: its text does not match {row.digest}",
            hint="restore the store from a backup, or put the document again",
        )
    return Document(row.kind, row.name, row.version, Digest(row.digest), row.text)
