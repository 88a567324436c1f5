"""One load test from end to end: look at the target, plan, run, decode, one recording."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from legato import apis, stamps
from legato import key as key_of
from legato.calibrate import profile
from legato.errors import RecordingError, UsageError
from legato.key import Key
from legato.report.live import LiveView, Snapshot
from legato.traffic import asking, host, runner, target
from legato.traffic.asking import Asking
from legato.traffic.plan import Assignment, Load
from legato.traffic.pulse import PulseFile
from legato.wire import endpoint as endpoints
from legato.wire import folder as folders
from legato.wire import spool
from legato.wire.deadlines import Deadlines
from legato.wire.endpoint import Endpoint
from legato.wire.redaction import Redaction
from legato.wire.tokens import load_tokenizer

_PLAIN = frozenset({"User-Agent", "Content-Type", "Accept", "Accept-Encoding"})
_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "logprobs",
    "top_logprobs",
    "ignore_eos",
)


@dataclass(frozen=True, slots=True)
class Bench:
    """What the user asked for, apart from the load."""

    url: str
    load: Load
    out: Path
    api: str = "chat"
    model: str | None = None
    asking: Asking = field(default_factory=Asking)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    extra_body: dict[str, Any] = field(default_factory=dict)
    tokenizer: str | None = None
    keep_text: bool = False
    keep_alive: bool = True
    insecure: bool = False
    kernel_stamps: bool = True
    pin: bool = False
    deadlines: Deadlines = field(default_factory=Deadlines)
    key: Key | None = None
    embedded: bool = False  # the target is our own metronome


@dataclass(frozen=True, slots=True)
class Result:
    """Where the recording is, and how the run ended."""

    out: Path
    interrupted: bool
    errors: list[str]


class InterruptedDecodeError(RecordingError):
    """Ctrl-C after the load had ended, while the capture was decoded."""

    exit_code = 130


def run(bench: Bench, view: LiveView) -> Result:
    """Everything that can be wrong is found before the first request is sent."""
    api = apis.named(bench.api)
    _check(bench)
    tokenizer = load_tokenizer(bench.tokenizer) if bench.tokenizer is not None else None
    runner.check_descriptors(bench.load)
    endpoint = endpoints.parse_url(bench.url)
    endpoint = replace(endpoint, path=api.base_path(urlsplit(bench.url).path))
    addresses = endpoints.resolve(endpoint)
    headers = _headers(bench, api)
    runner.check_disk(bench.out.parent, bench.load.workers)
    found = target.look(api, endpoint, headers, bench.model, bench.insecure)
    extra = api.extras(found.served_by, bench.asking.output_tokens is not None) | bench.extra_body
    planned = asking.plan(
        bench.asking,
        _head(endpoint.path + api.path_for(found.model), endpoint, headers),
        api,
        found.model,
        extra,
        requests=bench.load.total,
        trace=bench.load.trace,
        tokenizer=tokenizer,
    )
    sampling = _sampling(api.body(found.model, "", bench.asking.output_mark, extra))
    plan = _plan(bench, api, endpoint, found, sampling, planned.exact, addresses[0][1][0])
    folder = folders.partial_of(bench.out)
    schedule_ns = bench.load.schedule_ns()

    def assign(ticket_fd: int | None) -> list[Assignment]:
        cpus = sorted(os.sched_getaffinity(0)) if bench.pin else [None]
        return [
            Assignment(
                worker=worker,
                folder=str(folder),
                mode=bench.load.mode,
                load=bench.load,
                slots=slots,
                due_ns=schedule_ns[worker :: bench.load.workers],
                book=planned.book,
                endpoint=asdict(endpoint),
                addresses=addresses,
                deadlines=bench.deadlines,
                insecure=bench.insecure,
                kernel_stamps=bench.kernel_stamps,
                keep_alive=bench.keep_alive,
                ticket_fd=ticket_fd,
                cpu=cpus[worker % len(cpus)],
            )
            for worker, slots in enumerate(runner.slots(bench.load))
        ]

    ticks = host.cpu_times()
    folders.create(bench.out, plan)
    try:
        outcome = runner.run(folder, bench.load, assign, view)
    except BaseException:
        _discard_unless_sent(folder)
        raise
    _complete(folder, plan, outcome, ticks)
    view.update(_decoding_snapshot(folder, bench.load.workers))
    _decode(bench, folder, partial=outcome.interrupted or bool(outcome.errors))
    return Result(bench.out, outcome.interrupted, outcome.errors)


def _discard_unless_sent(folder: Path) -> None:
    """A run that failed before its first request leaves nothing; a capture is never removed."""
    kinds = (r.kind for worker in spool.workers(folder) for r in spool.records(folder, worker))
    if spool.OPEN not in kinds:
        shutil.rmtree(folder, ignore_errors=True)


def _decode(bench: Bench, folder: Path, *, partial: bool) -> None:
    """The recording; where that fails the capture stays, and the user is told where."""
    kept = f"what was captured is in {folder}: read it with 'legato report {folder}'"
    try:
        folders.finish(folder, bench.out, partial)
    except KeyboardInterrupt:
        raise InterruptedDecodeError(f"interrupted; {kept}") from None
    except RecordingError as error:
        raise RecordingError(f"{error}; {kept}") from error


def _check(bench: Bench) -> None:
    if bench.extra_body.get("n", 1) != 1:
        raise UsageError("--extra-body asks for n answers a request; legato times one a stream")
    if bench.extra_body.get("stream", True) is not True:
        raise UsageError("--extra-body turns streaming off; without it there is nothing to time")
    if bench.out.exists():
        raise RecordingError(f"{bench.out} exists; choose another --out or remove it")
    for name, value in bench.headers.items():
        if not name or any(c in name + value for c in "\r\n\0") or not (name + value).isascii():
            raise UsageError(f"--header {name!r} is not a header that HTTP can carry")


def _headers(bench: Bench, api: apis.Api) -> dict[str, str]:
    """The user's own headers replace ours of the same name."""
    headers = {
        "User-Agent": "legato",
        "Content-Type": "application/json",
        "Accept": api.accepts(),
        "Accept-Encoding": "identity",
        **api.headers(None if bench.key is None else bench.key.reveal()),
    }
    given = {name.lower() for name in bench.headers}
    return {n: v for n, v in headers.items() if n.lower() not in given} | bench.headers


def _secrets(bench: Bench, api: apis.Api) -> tuple[str, ...]:
    """What a server may echo and no recording may hold; a template's headers are the user's."""
    own = {} if api.document is None else _headers(bench, api)
    return key_of.secrets(
        bench.key, {n: v for n, v in own.items() if n not in _PLAIN} | bench.headers
    )


def _sampling(body: dict[str, Any]) -> dict[str, Any]:
    """As sent; some APIs keep these settings in an object of their own."""
    places = [body, *(body.get(name) for name in ("options", "parameters"))]
    return {
        name: place[name]
        for name in _SAMPLING
        for place in places
        if isinstance(place, dict) and name in place
    }


def _head(path: str, endpoint: Endpoint, headers: dict[str, str]) -> str:
    """The HTTP head of every request, without its Content-Length."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {endpoint.authority_shown}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines) + "\r\n"


def _plan(
    bench: Bench,
    api: apis.Api,
    endpoint: Endpoint,
    found: target.Target,
    sampling: dict[str, Any],
    exact: bool,
    remote: str,
) -> dict[str, Any]:
    load = bench.load
    return {
        "meta": {
            "settings": {
                "url": endpoint.url,
                "api": api.name,
                "model": found.model,
                "served_by": found.served_by,
                **load.settings(),
                "embedded": bench.embedded,
                **bench.asking.settings(traced=bool(load.trace)),
                "prompt_exact": exact,
                "key_from": bench.key and bench.key.source,
                "tls": endpoint.tls,
                "verified": endpoint.tls and not bench.insecure,
                "proxy": endpoint.proxy and f"{endpoint.proxy.host}:{endpoint.proxy.port}",
                "keep_alive": bench.keep_alive,
                "stamps": "kernel" if bench.kernel_stamps else "user",
                "sampling": sampling,
                "deadlines": asdict(bench.deadlines),
                "header_names": sorted(bench.headers),
                "extra_body_names": sorted(bench.extra_body),
            },
            "schedule": load.describe_schedule(),
            "host": host.facts(remote),
            "versions": host.versions(),
            "calibration": profile.load(endpoint.tls),
        },
        "decoding": {
            "api": api.document or api.name,
            "target": endpoint.url,
            "model": found.model,
            "epoch_offset_ns": stamps.anchor().offset_ns,
            "workers": load.workers,
            "sampling": json.dumps(sampling) if sampling else None,
            "tokenizer": bench.tokenizer and str(Path(bench.tokenizer).resolve()),
            "keep_text": bench.keep_text,
            "redaction": Redaction.of(_secrets(bench, api)).document(),
        },
    }


def _complete(
    folder: Path,
    plan: dict[str, Any],
    outcome: runner.Outcome,
    ticks: tuple[int, int] | None,
) -> None:
    """Add to the plan what is known only now."""
    epoch_ns = plan["decoding"]["epoch_offset_ns"]
    plan["meta"]["load"] = {
        "started_ns": outcome.started_ns + epoch_ns,
        "ended_ns": outcome.ended_ns + epoch_ns,
        "errors": outcome.errors,
    }
    plan["meta"]["host"]["steal_share"] = host.steal_share(ticks, host.cpu_times())
    with contextlib.suppress(OSError):  # the disk is full: the plan made before the load has to do
        folders.write_plan(folder, plan)


def _decoding_snapshot(folder: Path, workers: int) -> Snapshot:
    done = sum(PulseFile(folder, worker).read()[0].done for worker in range(workers))
    return Snapshot(0.0, 0, None, done, None, 0.0, None, None, 0, None, "decoding")
