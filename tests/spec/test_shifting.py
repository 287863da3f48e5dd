"""`shifting` in a policy."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from wattline.spec import Policy


def test_it_is_off_unless_somebody_says_by_what() -> None:
    assert not Policy().shifting.is_on
    assert Policy.model_validate({"shifting": {"by": "carbon"}}).shifting.is_on


@pytest.mark.parametrize("shifting", [{"by": "moon"}, {"by": "carbon", "worth": "120%"}, {"until": "1h"}])
def test_what_it_does_not_know_is_an_error(shifting: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({"shifting": shifting})
