"""TLS with kernel stamps, what is refused, and tunnels through a proxy."""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from captures import Client, one, recording_of, truth_of
from scripted import (
    DONE,
    LAST_CHUNK,
    STREAM_HEAD,
    Conversation,
    chunked,
    closing,
    content,
    serving,
)

from legato.calibrate.truth import compare
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.metronome.tls import TlsFiles, TlsSide
from legato.recording import CONTENT, USER_CLOCK

SHORT = Pattern(gap_ms=1, first_token_ms=2, tokens=10)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment trusts the test's authority."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


@pytest.fixture(scope="module")
def tls_files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder = tmp_path_factory.mktemp("tls")
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "both.pem"))
    return TlsFiles(folder / "both.pem", folder / "both.pem")


@pytest.fixture(scope="module")
def tls_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls-truth") / "truth"


@pytest.fixture(scope="module")
def tls_url(tls_files: TlsFiles, tls_log: Path) -> Iterator[str]:
    with running(SHORT, tls=tls_files, truth=tls_log) as metronome:
        yield metronome.url


def server_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    return context


@pytest.mark.usefixtures("trusted")
def test_tls_streams_are_recorded_with_kernel_stamps_and_the_cost_of_the_handshake(
    tls_url: str, tls_log: Path, tmp_path: Path
) -> None:
    client = Client(tmp_path / "capture", tls_url)
    for _ in range(2):
        client.start()
        client.run()
    first, second = client.streams()
    assert [first.status, second.status] == ["ok", "ok"]
    assert (first.tls_ns or 0) > 0
    assert second.reused
    assert second.tls_ns is None
    for stream in (first, second):
        assert sum(stream.tokens) == 10
        assert not any(flags & USER_CLOCK for flags in stream.flags)
        assert stream.sent_ns is not None
        assert stream.first_byte_ns is not None
        assert stream.first_byte_ns >= stream.sent_ns
        assert stream.first_byte_ns == stream.sent_ns + stream.arrival_ns[0]
    found = compare(recording_of([first, second]), truth_of(tls_log, first, second))
    assert found.lost_events == 0
    half = found.width_ns // 2 + 20_000
    assert (found.kernel_ns >= -half).all()
    assert (found.kernel_ns - found.early_ns > half).sum() <= 2


@pytest.mark.usefixtures("trusted")
def test_a_ten_megabyte_line_comes_through_tls_whole(tls_url: str, tmp_path: Path) -> None:
    client = Client(tmp_path / "capture", tls_url, segment_bytes=1_000_000)
    client.start(fault="long_line", long_line_bytes=10_000_000)
    client.run()
    (stream,) = client.streams()
    assert (stream.status, stream.error) == ("ok", None)
    assert list(stream.kind).count(CONTENT) == 10


@pytest.mark.usefixtures("trusted")
def test_nothing_of_a_large_read_stays_behind_in_tls(tls_files: TlsFiles, tmp_path: Path) -> None:
    # The first read leaves most of a record behind, the second is as large as reads get, and
    # after it nothing more comes that would wake the client.
    answer = STREAM_HEAD + chunked(content("a" * 75_000), DONE) + LAST_CHUNK
    sent_bytes: queue.Queue[int] = queue.Queue()
    go_on = threading.Event()

    def script(conversation: Conversation) -> None:
        side = TlsSide(server_context(tls_files))
        total = 0
        request = b""
        while not request.endswith(b"}"):
            request += side.open(conversation.sock.recv(65536))
            reply = side.pending()
            conversation.send(reply)
            total += len(reply)
        sealed = side.seal(answer)
        conversation.send(sealed[:16_000])
        sent_bytes.put(total + 16_000)
        go_on.wait()
        conversation.send(sealed[16_000:])
        sent_bytes.put(total + len(sealed))
        conversation.gone()

    with serving(script) as port:
        client = Client(tmp_path / "capture", f"https://127.0.0.1:{port}/v1", keep_text=True)
        client.start()
        while sent_bytes.empty():
            client.capture.poll(1_000_000)
        client.run_until_read(sent_bytes.get())
        go_on.set()
        client.leave_unread(sent_bytes.get())
        client.run()
        (stream,) = client.streams()
    assert stream.status == "ok"
    assert stream.text == ["a" * 75_000, ""]


def test_a_certificate_nobody_vouches_for_is_refused(tls_url: str, tmp_path: Path) -> None:
    client = Client(tmp_path, tls_url)
    client.start()
    client.run()
    (stream,) = client.streams()
    assert stream.status == "aborted"
    assert "the certificate was refused: " in (stream.error or "")
    assert stream.sent_ns is None


@pytest.mark.usefixtures("trusted")
def test_a_certificate_of_another_host_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("example.org").configure_cert(context)
    with serving(lambda _: None, tls=context) as port:
        stream = one(tmp_path / "capture", f"https://127.0.0.1:{port}/v1")
    assert stream.status == "aborted"
    assert "the certificate was refused: " in (stream.error or "")


def test_an_unknown_certificate_is_accepted_where_the_user_said_so(
    tls_url: str, tmp_path: Path
) -> None:
    client = Client(tmp_path, tls_url, insecure=True)
    client.start()
    client.run()
    (stream,) = client.streams()
    assert stream.status == "ok"


CLOSE_DELIMITED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.usefixtures("trusted")
def test_tls_cut_without_its_farewell_is_aborted_and_with_it_complete(
    tls_files: TlsFiles, tmp_path: Path
) -> None:
    def cut(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(CLOSE_DELIMITED + content("a") + DONE)

    def farewell(conversation: Conversation) -> None:
        cut(conversation)
        assert isinstance(conversation.sock, ssl.SSLSocket)
        conversation.sock.setblocking(False)
        with contextlib.suppress(ssl.SSLWantReadError):
            conversation.sock.unwrap()

    with serving(cut, farewell, tls=server_context(tls_files)) as port:
        client = Client(tmp_path / "capture", f"https://127.0.0.1:{port}/v1")
        for _ in range(2):
            client.start()
            client.run()
        was_cut, complete = client.streams()
    assert was_cut.status == "aborted"
    assert was_cut.error == "the TLS connection was cut without close_notify"
    assert list(was_cut.kind).count(CONTENT) == 1
    assert (complete.status, complete.error) == ("ok", None)


@pytest.mark.usefixtures("trusted")
def test_a_server_that_speaks_no_tls_is_told_so(tmp_path: Path) -> None:
    with serving(lambda conversation: conversation.send(b"HTTP/1.1 400 No\r\n\r\n")) as port:
        stream = one(tmp_path / "capture", f"https://127.0.0.1:{port}/v1")
    assert stream.status == "aborted"
    assert (stream.error or "").startswith("TLS: ")


# --- a proxy ----------------------------------------------------------------------------------


def tunnel(conversation: Conversation) -> None:
    """A CONNECT proxy: one tunnel to where it is asked."""
    authority = conversation.request().split()[1].decode()
    host, _, port = authority.rpartition(":")
    with socket.create_connection((host, int(port))) as upstream:
        conversation.send(b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n")
        ends = {conversation.sock: upstream, upstream: conversation.sock}
        while True:
            ready, _, _ = select.select(list(ends), [], [], 30)
            for sock in ready:
                data = sock.recv(65536)
                if not data:
                    return
                ends[sock].sendall(data)


@pytest.fixture
def no_proxy_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("trusted", "no_proxy_settings")
def test_a_proxy_of_the_environment_is_asked_for_a_tunnel(
    tls_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tunnel) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        client = Client(tmp_path / "capture", tls_url)
        for _ in range(2):
            client.start()
            client.run()
        first, second = client.streams()
    assert [first.status, second.status] == ["ok", "ok"]
    assert (first.reused, second.reused) == (False, True)
    assert sum(first.tokens) == sum(second.tokens) == 10
    assert (first.connect_ns or 0) > 0
    assert (first.tls_ns or 0) > 0


@pytest.mark.usefixtures("trusted", "no_proxy_settings")
def test_a_proxy_is_told_its_password_and_its_refusal_is_told(
    tls_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    def refusing(conversation: Conversation) -> None:
        asked.append(conversation.request())
        conversation.send(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    with serving(refusing) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%40ss@127.0.0.1:{port}")
        stream = one(tmp_path / "capture", tls_url)
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in asked[0]
    assert stream.status == "aborted"
    assert stream.error == (
        "the proxy refused the tunnel: HTTP/1.1 407 Proxy Authentication Required"
    )


@pytest.mark.usefixtures("trusted", "no_proxy_settings")
def test_a_proxy_that_closes_is_told_so(
    tls_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(closing) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        stream = one(tmp_path / "capture", tls_url)
    assert (stream.status, stream.error) == ("aborted", "the proxy refused the tunnel: closed")


@pytest.mark.usefixtures("trusted", "no_proxy_settings")
def test_a_host_exempt_from_the_proxy_is_reached_directly(
    tls_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    stream = one(tmp_path / "capture", tls_url)
    assert stream.status == "ok"
