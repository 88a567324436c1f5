"""Drives a capture in the test's own process and decodes what it spooled.

The test decides when the client looks at its sockets, so a late reader needs no luck. Times of
the decoded streams are on the monotonic clock, as the metronome's truth log has them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from legato import apis, stamps
from legato.metronome.truth import Truth
from legato.metronome.truth import load as load_truth
from legato.recording import Recording, Stream
from legato.wire import endpoint as endpoints
from legato.wire.capture import Capture
from legato.wire.deadlines import Deadlines
from legato.wire.decode import Decoding, WorkerFacts, decode_worker
from legato.wire.endpoint import Address
from legato.wire.redaction import Redaction
from legato.wire.spool import SEGMENT_BYTES, Spool

WAIT_S = 30  # a hung capture fails its test; no test waits for this


class Client:
    """One capture: start streams, let it run, take the streams."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        api: str = "chat",
        deadlines: Deadlines | None = None,
        insecure: bool = False,
        kernel_stamps: bool = True,
        keep_alive: bool = True,
        keep_text: bool = False,
        secrets: tuple[str, ...] = (),
        segment_bytes: int = SEGMENT_BYTES,
        addresses_before: Sequence[Address] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.facts = WorkerFacts()
        self.reached: list[bool] = []  # of the streams that have ended
        self._folder = folder
        self._endpoint = endpoints.parse_url(url)
        self._decoding = Decoding(
            apis.named(api),
            url,
            "metronome",
            0,
            keep_text=keep_text,
            redaction=Redaction.of(secrets),
        )
        self.capture = Capture(
            self._endpoint,
            [*addresses_before, *endpoints.resolve(self._endpoint)],
            Spool(folder, 0, segment_bytes),
            deadlines=deadlines or Deadlines(),
            on_end=self.reached.append,
            tls_context=endpoints.tls_context(insecure) if self._endpoint.tls else None,
            kernel_stamps=kernel_stamps,
            keep_alive=keep_alive,
        )
        self._started = 0

    def start(self, body: Mapping[str, Any] | None = None, **pattern: Any) -> None:
        """Send one request; `pattern` asks the metronome for its own pattern."""
        api = self._decoding.api
        document = api.body("metronome", "one two three", None, {**(body or {})})
        if pattern:
            document["metronome"] = pattern
        data = json.dumps(document).encode()
        head = (
            f"POST {self._endpoint.path}{api.path} HTTP/1.1\r\n"
            f"Host: {self._endpoint.authority_shown}\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self.capture.start(self._started, head.encode() + data, time.monotonic_ns())
        self._started += 1

    def run(self, reads: int | None = None) -> None:
        """Until every stream has ended, or until so many reads were made."""
        until_s = time.monotonic() + WAIT_S
        counters = self.capture.counters
        while counters.open and (reads is None or counters.reads < reads):
            assert time.monotonic() < until_s, "the capture hangs"
            self.capture.poll(20_000_000)

    def run_until_read(self, count: int) -> None:
        """Until `count` bytes of the only connection were read, ciphertext included."""
        (connection,) = self.capture._connections.values()
        while connection.read_bytes < count:
            self.capture.poll(20_000_000)

    def leave_unread(self, count: int) -> None:
        """Wait until the kernel has got `count` bytes for the only connection, and read none."""
        (connection,) = self.capture._connections.values()
        while stamps.received(connection.sock)[0] < count:
            pass

    def streams(self) -> list[Stream]:
        """Close the capture and decode it; streams in the order they were started."""
        self.capture.close()
        found = decode_worker(self._folder, 0, self._decoding, self.facts)
        return sorted(found, key=lambda stream: stream.stream_id)


def one(folder: Path, url: str, body: Mapping[str, Any] | None = None, **pattern: Any) -> Stream:
    """A single stream from start to end."""
    client = Client(folder, url)
    client.start(body, **pattern)
    client.run()
    (stream,) = client.streams()
    return stream


def recording_of(streams: list[Stream]) -> Recording:
    return Recording.from_streams(streams, {"clock": {"epoch_offset_ns": 0}})


def truth_of(log: Path, *streams: Stream) -> Truth:
    """The metronome's log, once it has the end of these streams: a send is logged after it is
    made, so that the client may know of it first."""
    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        truth = load_truth(log)
        if all(truth.end_of(stream.response_id or "") for stream in streams):
            return truth
        time.sleep(0.001)
    raise AssertionError("the log never told the end of a stream")
