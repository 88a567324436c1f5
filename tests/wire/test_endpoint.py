"""A URL is taken apart or refused with what would be right."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.errors import TargetError, UsageError
from legato.wire.endpoint import Endpoint, parse_url, resolve


@pytest.fixture(autouse=True)
def no_proxy_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "endpoint", "shown"),
    [
        ("http://h:8000/v1", Endpoint("h", 8000, "/v1", tls=False), "http://h:8000/v1"),
        ("http://h:8000", Endpoint("h", 8000, "/v1", tls=False), "http://h:8000/v1"),
        ("http://h:8000/", Endpoint("h", 8000, "/v1", tls=False), "http://h:8000/v1"),
        ("http://h/a/b/", Endpoint("h", 80, "/a/b", tls=False), "http://h/a/b"),
        ("https://H.example/v1", Endpoint("h.example", 443, "/v1", tls=True), None),
        ("https://h:443/v1", Endpoint("h", 443, "/v1", tls=True), "https://h/v1"),
        ("http://h:443/v1", Endpoint("h", 443, "/v1", tls=False), "http://h:443/v1"),
        ("http://[::1]:8000/v1", Endpoint("::1", 8000, "/v1", tls=False), "http://[::1]:8000/v1"),
        ("http://my_host-1.:80/~a%20b", Endpoint("my_host-1.", 80, "/~a%20b", tls=False), None),
        ("http://[::1]/v1", Endpoint("::1", 80, "/v1", tls=False), "http://[::1]/v1"),
    ],
)
def test_a_base_url_is_taken_apart(url: str, endpoint: Endpoint, shown: str | None) -> None:
    assert parse_url(url) == endpoint
    if shown:
        assert parse_url(url).url == shown


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("localhost:8000/v1", "did you mean http://localhost:8000/v1?"),
        ("localhost", "did you mean http://localhost?"),
        ("ftp://h/v1", "must start with http:// or https://"),
        ("http://", "http://"),
        ("http://user:secret@h/v1", "holds credentials"),
        ("http://h/v1?key=secret", "without '?' or '#'"),
        ("http://h/v1#x", "without '?' or '#'"),
        ("http://h:99999/v1", "has a port that is not 1 to 65535"),
        ("http://h:x/v1", "has a port that is not 1 to 65535"),
        ("http://h:0/v1", "has a port that is not 1 to 65535"),
        ("http://:80/v1", "names no host"),
        ("http://[::1/v1", "is not a URL"),
        ("http://a..b/v1", "has a host that is no name: 'a..b'"),
        (f"http://{'a' * 70}/v1", "has a host that is no name"),
        ("http://exämple/v1", "write xn--exmple-cua"),
        ("http://a b/v1", "has a host with ' ' in it"),
        ("http://a<b/v1", "has a host with '<' in it"),
        ("http://h/a b", "holds ' '; write it as %20"),
        ("http://h/ü", "holds 'ü'; write it as %C3%BC"),
        ("http://h/\x7f", "holds '\\x7f'; write it as %7F"),
    ],
)
def test_a_url_that_is_wrong_is_refused_in_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_url(url)
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_proxy_is_that_of_the_environment_for_https_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    found = parse_url("https://h/v1").proxy
    assert found is not None
    assert (found.host, found.port, found.authorization) == ("proxy.example", 3128, None)
    assert parse_url("http://h/v1").proxy is None


@pytest.mark.parametrize("exempt", ["h.example", ".example", "*", "h.example:8443"])
def test_an_exempt_host_has_no_proxy(exempt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", exempt)
    assert parse_url("https://h.example:8443/v1").proxy is None


@pytest.mark.parametrize("proxy", ["https://p:1", "socks5://p:1", "http://", "http://p:x"])
def test_a_proxy_that_cannot_be_used_is_refused(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(UsageError, match="HTTPS_PROXY must be of the form http://host:port"):
        parse_url("https://h/v1")


def test_a_host_that_does_not_exist_is_named() -> None:
    with pytest.raises(TargetError, match=r"the host 'no-such-host\.invalid' cannot be resolved"):
        resolve(parse_url("http://no-such-host.invalid/v1"))


def test_a_proxy_whose_host_is_no_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://a..b:3128")
    with pytest.raises(TargetError, match=r"the host 'a\.\.b' cannot be resolved"):
        resolve(parse_url("https://h/v1"))


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_text_as_host_and_path_is_taken_apart_or_refused(host: str, path: str) -> None:
    with contextlib.suppress(UsageError):
        endpoint = parse_url(f"http://{host}/{path}")
        f"GET {endpoint.path} HTTP/1.1\r\nHost: {endpoint.authority}".encode("ascii")
        assert not set(endpoint.path + endpoint.host) & set(" \r\n\t\0")
        endpoint.host.encode("idna")


def test_an_address_resolves_to_itself() -> None:
    (address,) = resolve(parse_url("http://127.0.0.1:8000/v1"))
    assert address[1] == ("127.0.0.1", 8000)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_the_loopback_is_known_by_its_name(host: str, is_loopback: bool) -> None:
    assert parse_url(f"http://{host}:8000/v1").is_loopback == is_loopback
