"""Which documents are in force, how does all stand, and who asked this server for what?"""

from __future__ import annotations

from typing import Any, TypedDict

from starlette.responses import Response

from wattline.api.call import Call, Count, Endpoint, Number, Parameter, answer, wait_for
from wattline.api.door import LOOKS, RUNS_IT
from wattline.api.problems import ProblemError
from wattline.plane.finding import View
from wattline.plane.moments import iso
from wattline.plane.session import Session
from wattline.plane.snapshots import encode_snapshot
from wattline.plane.told import Moment

_YAML = "application/yaml"


class AuditTold(TypedDict):
    position: int
    at: Moment | None
    actor: str
    project: str
    action: str
    subject: str
    outcome: str
    detail: str


class AuditPage(TypedDict):
    """The newest first; `before` of the next page is the last position here."""

    entries: list[AuditTold]


def _document(kind: str) -> Endpoint:
    async def handle(call: Call) -> Response:
        def question(view: View) -> tuple[str, str]:
            digest = view.state.adopted[f"{kind}_sha256"]
            return digest.removeprefix("sha256:"), view.session.document_text(digest)

        digest, text = await call.ask(question)
        headers = {"ETag": f'"{digest}"'}
        if call.request.headers.get("if-none-match", "").strip() == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(text, media_type=_YAML, headers=headers)

    return Endpoint(
        method="GET",
        path=f"/api/v1/{kind}",
        name=f"show_{kind}",
        say=f"The {kind} document in force; its ETag is its SHA-256.",
        handle=handle,
        media=_YAML,
        allowed=LOOKS,
        also=(304,),
    )


async def _snapshot(call: Call) -> Response:
    if call.caller.project is not None:  # it tells of everybody's jobs
        raise ProblemError(
            403,
            f"token {call.caller.name} is good for the project {call.caller.project}, a snapshot holds all",
            hint="use a token of a reader of no project, or `wattline check --facility`",
            exit_code=1,
        )
    return Response(await call.ask(encode_snapshot), media_type="application/json")


async def _audit(call: Call) -> Response:
    limit, before = call.query.get("limit", 100), call.query.get("before")

    def question(session: Session, _view: View | None) -> Response:
        found = session.store.audit.read(limit, before=before, project=call.caller.project)
        entries: list[AuditTold] = [
            {
                "position": entry.position,
                "at": iso(entry.at),
                "actor": entry.actor,
                "project": entry.project,
                "action": entry.action,
                "subject": entry.subject,
                "outcome": entry.outcome,
                "detail": entry.detail,
            }
            for entry in found
        ]
        return answer({"entries": entries})

    return await wait_for(call.served.reader.look(question))


ENDPOINTS = (
    _document("facility"),
    _document("policy"),
    Endpoint(
        method="GET", path="/api/v1/snapshot", name="show_snapshot",
        say="How all stands, for `wattline check --against`; only for tokens of no project.",
        handle=_snapshot, answer=dict[str, Any], allowed=LOOKS,
    ),
    Endpoint(
        method="GET", path="/api/v1/audit", name="read_audit", say="Who asked for what, the newest first.",
        handle=_audit, answer=AuditPage, allowed=RUNS_IT, refuses=(422,),
        query=(
            Parameter(name="limit", kind=Count, say="At most so many; 100 unless said."),
            Parameter(name="before", kind=Number, say="Before this position."),
        ),
    ),
)  # fmt: skip
