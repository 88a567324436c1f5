"""`legato bench`: its options, and what it prints."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from legato.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url",
        nargs="?",
        metavar="URL",
        help="base URL as the openai client takes it (http://host:8000/v1); none: the metronome",
    )
    load = parser.add_argument_group("load")
    load.add_argument("--concurrency", type=int, metavar="N", help="streams kept open (10)")
    load.add_argument(
        "--rate",
        metavar="R",
        help="open loop: requests a second, a ramp FROM:TO, or steps RATE@SECONDS,…",
    )
    load.add_argument(
        "--arrivals",
        choices=("constant", "poisson", "gamma"),
        default="constant",
        help="how they are spaced (%(default)s)",
    )
    load.add_argument(
        "--burstiness", type=float, metavar="B", help="of gamma: 1 is Poisson, less is burstier"
    )
    load.add_argument(
        "--requests", type=int, metavar="N", help="requests in all (10 for each stream kept open)"
    )
    load.add_argument("--duration", type=float, metavar="S", help="seconds of sending, instead")
    load.add_argument(
        "--warmup",
        type=int,
        default=0,
        metavar="N",
        help="first requests not counted (%(default)s)",
    )
    load.add_argument("--workers", type=int, metavar="N", help="processes that send and read")
    load.add_argument("--pin", action="store_true", help="pin each worker to a CPU")
    ask = parser.add_argument_group("what is asked")
    ask.add_argument("--api", default="chat", metavar="NAME", help="chat or completions (chat)")
    ask.add_argument("--model", metavar="NAME", help="default: the first the endpoint lists")
    ask.add_argument(
        "--prompt-tokens", type=int, metavar="N", help="about so many tokens a prompt (256)"
    )
    ask.add_argument(
        "--output-tokens", type=int, default=128, metavar="N", help="tokens an answer (%(default)s)"
    )
    ask.add_argument("--prompt-file", metavar="FILE", help="a prompt a line, instead")
    ask.add_argument(
        "--cache-friendly",
        action="store_true",
        help="send prompts as they are; else each starts with a salt, so that no cache helps",
    )
    ask.add_argument(
        "--extra-body", metavar="JSON", help="fields merged into each request; null removes one"
    )
    ask.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="may be repeated"
    )
    ask.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of prompts and arrivals (%(default)s)"
    )
    reading = parser.add_argument_group("connection")
    reading.add_argument(
        "--api-key-file",
        metavar="FILE",
        help="else the key is LEGATO_API_KEY's or OPENAI_API_KEY's",
    )
    reading.add_argument("--insecure", action="store_true", help="do not verify certificates")
    reading.add_argument(
        "--fresh-connections", action="store_true", help="a new connection for each request"
    )
    reading.add_argument(
        "--stamps",
        choices=("kernel", "user"),
        default="kernel",
        help="where arrival times come from; 'user' only to compare (%(default)s)",
    )
    for name, seconds, what in (
        ("connect", 10.0, "to connect"),
        ("first-byte", 120.0, "until the response begins"),
        ("idle", 60.0, "without a byte inside a response"),
        ("total", 600.0, "for a whole response"),
    ):
        reading.add_argument(
            f"--{name}-timeout",
            type=float,
            default=seconds,
            metavar="S",
            help=f"seconds {what} (%(default)s)",
        )
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE.parquet", help="the recording (legato-TIME.parquet)")
    output.add_argument("--json", action="store_true", help="print only the summary, as JSON")
    output.add_argument(
        "--tokenizer", metavar="PATH", help="tokenizer.json or its folder, to count tokens by"
    )
    output.add_argument("--keep-text", action="store_true", help="keep the answers' text")


def run(args: argparse.Namespace) -> int:
    bench = _bench(args)
    from legato.report.command import present
    from legato.report.live import LiveView
    from legato.traffic import bench as benches

    with _target(args) as url, LiveView() as view:
        result = benches.run(bench(url), view)
    for error in result.errors:
        print(f"legato: {error}", file=sys.stderr)
    return present([result.out], as_json=args.json, interrupted=result.interrupted)


@contextlib.contextmanager
def _target(args: argparse.Namespace) -> Iterator[str]:
    """The URL to measure; without one, a metronome of our own."""
    if args.url is not None:
        yield args.url
        return
    from legato.metronome.launch import running
    from legato.metronome.pattern import Pattern

    with running(Pattern()) as metronome:
        yield metronome.url


def _bench(args: argparse.Namespace) -> Any:
    """Everything about the run but its URL, checked: wrong usage is told before numpy loads."""
    from legato import key
    from legato.traffic.plan import check_load, check_seconds
    from legato.wire.deadlines import Deadlines
    from legato.wire.endpoint import parse_url

    if args.url is not None:
        parse_url(args.url)
    if args.prompt_file is not None and args.prompt_tokens is not None:
        raise UsageError("--prompt-file and --prompt-tokens contradict each other: choose one")
    deadlines = Deadlines(
        args.connect_timeout, args.first_byte_timeout, args.idle_timeout, args.total_timeout
    )
    for name in ("connect", "first_byte", "idle", "total"):
        check_seconds(f"--{name.replace('_', '-')}-timeout", getattr(deadlines, f"{name}_s"))
    load = check_load(
        concurrency=args.concurrency,
        rate=args.rate,
        spacing=args.arrivals,
        burstiness=args.burstiness,
        seed=args.seed,
        requests=args.requests,
        duration_s=args.duration,
        warmup=args.warmup,
        workers=args.workers,
    )
    out, headers, extra_body = _out(args.out), _headers(args.header), _json(args.extra_body)
    secret = key.find(args.api_key_file)

    def bench(url: str) -> Any:
        from legato.traffic import bench as benches

        return benches.Bench(
            url=url,
            load=load,
            out=out,
            api=args.api,
            model=args.model,
            prompt_tokens=args.prompt_tokens if args.prompt_tokens is not None else 256,
            output_tokens=args.output_tokens,
            prompt_file=args.prompt_file,
            headers=headers,
            extra_body=extra_body,
            tokenizer=args.tokenizer,
            seed=args.seed,
            cache_friendly=args.cache_friendly,
            keep_text=args.keep_text,
            keep_alive=not args.fresh_connections,
            insecure=args.insecure,
            kernel_stamps=args.stamps == "kernel",
            pin=args.pin,
            deadlines=deadlines,
            key=secret,
        )

    return bench


def _out(name: str | None) -> Path:
    if name is None:
        return Path(time.strftime("legato-%Y%m%d-%H%M%S.parquet"))
    out = Path(name)
    if out.suffix != ".parquet":
        raise UsageError(f"--out {name} must end in .parquet")
    if not out.parent.is_dir():
        raise UsageError(f"--out {name}: there is no folder {out.parent}")
    return out


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header must have the form 'NAME: VALUE'")
        headers[name.strip()] = value.strip()
    return headers


def _json(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--extra-body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageError("--extra-body must be a JSON object")
    return document
