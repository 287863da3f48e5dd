from __future__ import annotations

import math
from hashlib import sha256
from pathlib import Path

import pytest

from wattline.errors import UsageError, WattlineError
from wattline.store import Role, Store, StoreRefusedError, TokenInfo, hide_secrets, open_store

NOW = 1_800_000_000.0
DAY = 86400.0


def a_secret(store: Store, name: str = "ci-nlp", ttl_seconds: float = DAY) -> str:
    return store.tokens.create(name, role=Role.SUBMITTER, project="nlp", ttl_seconds=ttl_seconds, now=NOW)


def test_a_secret_tells_whose_it_is(store: Store) -> None:
    secret = a_secret(store)
    assert store.tokens.check(secret, NOW) == TokenInfo(
        name="ci-nlp",
        role=Role.SUBMITTER,
        project="nlp",
        site=None,
        created_at=NOW,
        expires_at=NOW + DAY,
        revoked_at=None,
    )


def test_secrets_are_long_random_and_safe_in_a_header(store: Store) -> None:
    secrets = {a_secret(store, f"ci-{number}") for number in range(20)}
    assert len(secrets) == 20
    for secret in secrets:
        assert secret.startswith("wl_")
        assert len(secret) == 3 + math.ceil(256 / 6)
        assert secret.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("forged", ["", "wl_", "wl_" + "A" * 43, "x" * 100_000, "\ud800", "wl_\0", "ci-nlp"])
def test_what_nobody_was_given_is_nobodys(store: Store, forged: str) -> None:
    secret = a_secret(store)
    assert store.tokens.check(forged, NOW) is None
    assert store.tokens.check(secret[:-1], NOW) is None
    assert store.tokens.check(secret + "A", NOW) is None
    assert store.tokens.check(sha256(secret.encode()).hexdigest(), NOW) is None


def test_a_token_is_good_until_exactly_when_it_expires(store: Store) -> None:
    secret = a_secret(store, ttl_seconds=10)
    assert store.tokens.check(secret, NOW + 9.999) is not None
    assert store.tokens.check(secret, NOW + 10) is None


def test_a_revoked_token_is_good_for_nothing_and_stays_in_the_list(store: Store) -> None:
    secret, other = a_secret(store), a_secret(store, "other")
    assert store.tokens.revoke("ci-nlp", NOW + 1) is True
    assert store.tokens.revoke("ci-nlp", NOW + 2) is False
    assert store.tokens.check(secret, NOW + 3) is None
    assert store.tokens.check(other, NOW + 3) is not None
    assert {(token.name, token.revoked_at) for token in store.tokens.list()} == {
        ("ci-nlp", NOW + 1),
        ("other", None),
    }


def test_a_name_is_given_once_also_after_it_was_revoked(store: Store) -> None:
    secret = a_secret(store)
    with pytest.raises(StoreRefusedError, match="there is, or was, one of this name"):
        a_secret(store)
    assert store.tokens.check(secret, NOW) is not None
    store.tokens.revoke("ci-nlp", NOW)
    with pytest.raises(StoreRefusedError):
        a_secret(store)


def test_revoking_by_secret_is_refused_without_repeating_the_secret(store: Store) -> None:
    secret = a_secret(store)
    with pytest.raises(StoreRefusedError, match="by name, not by secret") as caught:
        store.tokens.revoke(secret, NOW)
    assert secret[:10] not in str(caught.value)
    assert secret[10:20] not in str(caught.value)


@pytest.mark.parametrize(
    ("role", "project", "site"),
    [
        (Role.READER, "nlp", None),
        (Role.READER, None, None),
        (Role.SUBMITTER, "nlp", None),
        (Role.OPERATOR, None, None),
        (Role.OPERATOR, "nlp", None),
        (Role.AGENT, None, "oslo"),
    ],
)
def test_a_role_is_bound_to_what_it_is_for(
    store: Store, role: Role, project: str | None, site: str | None
) -> None:
    secret = store.tokens.create("t", role=role, project=project, site=site, ttl_seconds=DAY, now=NOW)
    token = store.tokens.check(secret, NOW)
    assert token is not None
    assert (token.role, token.project, token.site) == (role, project, site)
    assert token.may_see("nlp")
    assert token.may_see("vision") is (project is None)


@pytest.mark.parametrize(
    ("role", "project", "site"),
    [
        (Role.SUBMITTER, None, None),
        (Role.SUBMITTER, "", None),
        (Role.OPERATOR, "", None),
        (Role.OPERATOR, None, "oslo"),
        (Role.AGENT, None, None),
        (Role.AGENT, None, ""),
        (Role.AGENT, "nlp", "oslo"),
    ],
)
def test_a_role_bound_to_the_wrong_thing_is_refused(
    store: Store, role: Role, project: str | None, site: str | None
) -> None:
    with pytest.raises(UsageError, match="token 't'") as caught:
        store.tokens.create("t", role=role, project=project, site=site, ttl_seconds=DAY, now=NOW)
    assert caught.value.hint
    assert "None" not in str(caught.value)
    assert store.tokens.list() == []


@pytest.mark.parametrize("ttl_seconds", [0, -1, math.nan, math.inf, 367 * DAY])
def test_every_token_expires_within_a_year(store: Store, ttl_seconds: float) -> None:
    with pytest.raises(UsageError, match="lives for more than 0 s and at most 366 days"):
        a_secret(store, ttl_seconds=ttl_seconds)


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", "wl_" + "A" * 43])
def test_a_name_is_short_printable_and_no_secret(store: Store, name: str) -> None:
    with pytest.raises(WattlineError, match="token"):
        a_secret(store, name)


def test_the_secret_is_nowhere_in_the_files_and_in_no_representation(home: Path) -> None:
    with open_store(home) as store:
        secret = a_secret(store)
        shown = repr(store.tokens.list()) + repr(store.tokens) + repr(store.tokens.check(secret, NOW))
        kept = b"".join(file.read_bytes() for file in home.iterdir() if file.suffix != ".db-shm")
    assert secret[3:20] not in shown
    assert sha256(secret.encode()).digest() in kept
    assert secret[3:20].encode() not in kept


def test_secrets_are_struck_out_of_a_text(store: Store) -> None:
    secret = a_secret(store)
    assert hide_secrets(f"Authorization: Bearer {secret}; twice {secret}") == (
        "Authorization: Bearer wl_***; twice wl_***"
    )
    assert hide_secrets("wl_short stays") == "wl_short stays"
