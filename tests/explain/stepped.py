"""Recordings of an engine that decodes all open streams in steps: a step that also prefills a
request is longer, and every open stream waits for it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from paced import EPOCH_NS

from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream

MS = 1_000_000


@dataclass(slots=True)
class Engine:
    step_ms: float = 10.0
    prefill_ms: float = 40.0
    prefill_steps: int = 1  # into how many steps a prefill is cut
    per_stream_ms: float = 0.0
    most_open: int = 1000
    now_ms: float = 0.0
    waiting: list[int] = field(default_factory=list)
    answers_ms: dict[int, list[float]] = field(default_factory=dict)
    prefilling: tuple[int, int] | None = None  # whose, and steps to go

    def step(self, draw: random.Random) -> int | None:
        """One step; returns the request whose prefill ended with it."""
        self.now_ms += self.step_ms + abs(draw.gauss(0, 0.3))
        self.now_ms += self.per_stream_ms * max(len(self.answers_ms) - 1, 0)
        if self.prefilling is None and self.waiting and len(self.answers_ms) < self.most_open:
            self.prefilling = (self.waiting.pop(0), self.prefill_steps)
        if self.prefilling is None:
            return None
        self.now_ms += self.prefill_ms / self.prefill_steps
        request, left = self.prefilling
        self.prefilling = (request, left - 1) if left > 1 else None
        return request if left == 1 else None


def run(engine: Engine, *, rate: float, requests: int, tokens: int, seed: int = 1) -> Recording:
    """Poisson arrivals until every request has been answered."""
    draw, at_ms, sends_ms = random.Random(seed), 0.0, []
    for _ in range(requests):
        at_ms += draw.expovariate(rate) * 1000
        sends_ms.append(at_ms)
    streams: list[Stream] = []
    arrived = 0
    while len(streams) < requests:
        while arrived < requests and sends_ms[arrived] <= engine.now_ms:
            engine.waiting.append(arrived)
            arrived += 1
        if not engine.waiting and not engine.answers_ms and engine.prefilling is None:
            engine.now_ms = sends_ms[arrived]
            continue
        started = engine.step(draw)
        for request, times_ms in list(engine.answers_ms.items()):
            times_ms.append(engine.now_ms + draw.random() * 0.05)
            if len(times_ms) == tokens:
                del engine.answers_ms[request]
                streams.append(_stream(request, sends_ms[request], times_ms))
        if started is not None:
            engine.answers_ms[started] = [engine.now_ms + draw.random() * 0.05]
    return Recording.from_streams(streams)


def _stream(request: int, sent_ms: float, times_ms: list[float]) -> Stream:
    sent_ns, count = EPOCH_NS + round(sent_ms * MS), len(times_ms)
    arrivals_ns = [round((at - sent_ms) * MS) for at in times_ms]
    return Stream(
        stream_id=request,
        scheduled_ns=sent_ns,
        sent_ns=sent_ns,
        ended_ns=sent_ns + arrivals_ns[-1],
        status="ok",
        prompt_tokens=100,
        retransmits=0,
        token_source="token_ids",
        arrival_ns=arrivals_ns,
        lag_ns=[5_000] * count,
        early_ns=[0] * count,
        read_index=list(range(count)),
        segments=[1] * count,
        tokens=[1] * count,
        kind=[CONTENT] * count,
        flags=[HAS_CHOICES] * count,
    )
