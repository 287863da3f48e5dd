"""What happened and what is handed over: events that survive, and files by digest.

`open_store` opens a database; `MemoryJournal` keeps the same journal without one; `ObjectStore` keeps files.
What needs SQLAlchemy is loaded when it is first asked for: the twin keeps its journal in memory, and should
not wait for a database library it never calls.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from wattline.store.digest import Digest
from wattline.store.errors import DatabaseAwayError, JournalAlteredError, LeaseLostError, StoreRefusedError
from wattline.store.memory import MemoryJournal
from wattline.store.objects import ObjectStore
from wattline.store.process import ProcessIdentity, identify_this_process, is_alive
from wattline.store.records import Entry, Journal, Record, Snapshot

if TYPE_CHECKING:
    from wattline.store.audit import Audit, AuditEntry, AuditRecord
    from wattline.store.backup import BackupInfo, back_up, check_backup
    from wattline.store.inbox import Inbox, Message, Receipt
    from wattline.store.lease import LeaseInfo, Token, WriterLease
    from wattline.store.opening import Store, open_store
    from wattline.store.restoring import restore
    from wattline.store.tokens import Role, TokenInfo, Tokens, hide_secrets

__all__ = [
    "Audit",
    "AuditEntry",
    "AuditRecord",
    "BackupInfo",
    "DatabaseAwayError",
    "Digest",
    "Entry",
    "Inbox",
    "Journal",
    "JournalAlteredError",
    "LeaseInfo",
    "LeaseLostError",
    "MemoryJournal",
    "Message",
    "ObjectStore",
    "ProcessIdentity",
    "Receipt",
    "Record",
    "Role",
    "Snapshot",
    "Store",
    "StoreRefusedError",
    "Token",
    "TokenInfo",
    "Tokens",
    "WriterLease",
    "back_up",
    "check_backup",
    "hide_secrets",
    "identify_this_process",
    "is_alive",
    "open_store",
    "restore",
]

_MODULE_OF = {
    "Audit": "audit",
    "AuditEntry": "audit",
    "AuditRecord": "audit",
    "BackupInfo": "backup",
    "Inbox": "inbox",
    "LeaseInfo": "lease",
    "Message": "inbox",
    "Receipt": "inbox",
    "Role": "tokens",
    "Store": "opening",
    "Token": "lease",
    "TokenInfo": "tokens",
    "Tokens": "tokens",
    "WriterLease": "lease",
    "back_up": "backup",
    "check_backup": "backup",
    "hide_secrets": "tokens",
    "open_store": "opening",
    "restore": "restoring",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
