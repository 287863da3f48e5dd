"""Where a server is, and with which token it is asked: what is wrong is said without a secret."""

from __future__ import annotations

import pytest

from wattline.errors import UsageError
from wattline.live.addresses import Servers


@pytest.mark.parametrize(
    ("text", "bases"),
    [
        ("http://127.0.0.1:8080", ["http://127.0.0.1:8080"]),
        ("https://wattline.example.org/", ["https://wattline.example.org"]),
        ("http://a:1, http://[::1]:2", ["http://a:1", "http://[::1]:2"]),
    ],
)
def test_an_address_is_a_scheme_a_host_and_perhaps_a_port(text: str, bases: list[str]) -> None:
    servers, found = Servers(text, None), []
    for _ in range(len(servers)):
        found.append(servers.url)
        servers.turn()
    assert found == bases
    assert servers.url == bases[0]  # after the last, the first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:8080",
        "ftp://a",
        "http://",
        "http://a:port",
        "http://a:99999",
        "http://[::1",
        "http://a/api/v1",
        "http://a?b=c",
        "http://a,",
        "http://a\x1b[2J",
    ],
)
def test_what_is_no_address_is_said_as_a_wrong_use(text: str) -> None:
    with pytest.raises(UsageError, match="is no address of a server") as caught:
        Servers(text, None)
    assert caught.value.hint
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["http://joe:hunter2@a:8080", "ftp://joe:hunter2@a", "http://hunter2@a:port"]
)
def test_a_password_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Servers(text, None)
    assert "hunter2" not in str(caught.value)
    assert "://***@a" in str(caught.value)


def test_a_line_end_behind_a_token_is_none_of_it() -> None:
    assert Servers("http://a", "wl_secret\n").credentials == {"Authorization": "Bearer wl_secret"}
    assert all(not Servers("http://a", none).credentials for none in (" \n", None, ""))


@pytest.mark.parametrize("token", ["wl_se cret", "wl_se\ncret", "wl_se\r\nX-Else: cret", "wl_sécret"])
def test_what_cannot_stand_in_a_header_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(UsageError, match="WATTLINE_TOKEN") as caught:
        Servers("http://a", token)
    assert "cret" not in str(caught.value)
