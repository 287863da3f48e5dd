from __future__ import annotations

import pytest

from building import MONDAY, a_facility, a_world
from wattline.control import decode_step
from wattline.state import Answer, ExceptionAnswered, ExceptionAsked, dump_state, load_state

HOUR = 3600.0


def asked(key: str = "k1", **changes: object) -> ExceptionAsked:
    fields: dict[str, object] = {
        "at": MONDAY,
        "actor": "ada",
        "project": "nlp",
        "key": key,
        "rule": "quota.gpu_hours",
        "amount": 100.0,
        "until": MONDAY + HOUR,
        "because": "a deadline",
    }
    return ExceptionAsked(**(fields | changes))  # type: ignore[arg-type]


def answered(
    exception: str = "ex-1", *, by: str = "grace", at: float = MONDAY, approved: bool = True
) -> ExceptionAnswered:
    return ExceptionAnswered(
        at=at, actor=by, project="nlp", exception=exception, approved=approved, role="capacity-approver"
    )


def test_requests_are_numbered_in_the_order_of_the_journal_and_count_once() -> None:
    hall = a_world()
    hall.fold(asked("k1"), asked("k2"), asked("k1"))
    assert list(hall.state.exceptions) == ["ex-1", "ex-2"]
    assert hall.snapshot().exceptions == {}


def test_an_approved_one_stands_until_its_end() -> None:
    hall = a_world()
    hall.fold(asked(), answered())
    (exception,) = hall.snapshot().exceptions["nlp"]
    assert (exception.answer, exception.answered_by) == (Answer.APPROVED, "grace")
    assert exception.stands(MONDAY + HOUR - 1)
    assert not exception.stands(MONDAY + HOUR)
    assert exception.standing(MONDAY + HOUR) == "expired"


@pytest.mark.parametrize(
    "answer",
    [
        answered("ex-2"),
        answered(by="ada"),
        answered(at=MONDAY + HOUR),
        answered(approved=False),
    ],
    ids=["unknown", "of who asked", "too late", "denied"],
)
def test_an_answer_that_does_not_count_lets_nothing_stand(answer: ExceptionAnswered) -> None:
    hall = a_world()
    hall.fold(asked(), answer)
    assert hall.snapshot().exceptions == {}


def test_the_first_answer_is_the_last() -> None:
    hall = a_world()
    hall.fold(asked(), answered(approved=False), answered(approved=True))
    assert hall.state.exceptions["ex-1"].answer is Answer.DENIED


def test_they_are_in_the_digest_and_in_a_dump() -> None:
    hall = a_world()
    before = hall.state.digest()
    hall.fold(asked(), answered())
    assert hall.state.digest() != before
    loaded = load_state(a_facility(), dump_state(hall.state))
    assert loaded.exceptions == hall.state.exceptions
    assert loaded.standing == hall.state.standing


def test_a_journal_of_before_them_still_reads() -> None:
    record = b'{"events":[{"event":"Ticked","at":1.0}],"digest":"","decision":{"at":1.0}}'
    assert decode_step(record).events[0].at == 1.0
