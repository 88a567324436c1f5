"""The options shared by every command that sends load, and the `Bench` they ask for.

Wrong usage is told here, before a process starts or numpy is loaded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legato import key
from legato.errors import UsageError
from legato.legible import sentence
from legato.traffic import lengths, promptfile, traces
from legato.traffic.plan import Load, check_load, check_seconds

if TYPE_CHECKING:
    from legato.traffic.asking import Asking
    from legato.traffic.bench import Bench
    from legato.traffic.lengths import Lengths
    from legato.traffic.promptfile import Entry
    from legato.traffic.traces import Arrival

MakeBench = Callable[[str, Load, Path], "Bench"]  # of a URL, a load and where the recording goes


def add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url",
        nargs="?",
        metavar="URL",
        help="base URL as the openai client takes it (http://host:8000/v1); none: the metronome",
    )


def add_load(parser: argparse.ArgumentParser) -> None:
    """One load: a number of streams or a rate, and how long."""
    load = parser.add_argument_group("load")
    load.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="streams kept open (10, or as many as there are requests)",
    )
    load.add_argument(
        "--rate",
        metavar="R",
        help="open loop: requests a second, a ramp FROM:TO, or steps RATE@SECONDS,…",
    )
    add_spacing(load)
    load.add_argument(
        "--trace",
        metavar="FILE",
        help="open loop: times and lengths from a trace (Mooncake, Azure, BurstGPT, CSV or JSONL)",
    )
    load.add_argument("--trace-speed", type=float, metavar="X", help="play it X times as fast (1)")
    load.add_argument(
        "--requests",
        type=int,
        metavar="N",
        help="requests counted, after the warm-up (10 for each stream kept open)",
    )
    load.add_argument("--duration", type=float, metavar="S", help="seconds of sending, instead")
    load.add_argument(
        "--warmup",
        type=int,
        default=0,
        metavar="N",
        help="requests sent first and not counted (%(default)s)",
    )
    add_workers(load)


def add_spacing(load: argparse._ArgumentGroup) -> None:
    load.add_argument(
        "--arrivals",
        choices=("constant", "poisson", "gamma"),
        default="constant",
        help="how they are spaced (%(default)s)",
    )
    load.add_argument(
        "--burstiness", type=float, metavar="B", help="of gamma: 1 is Poisson, less is burstier"
    )


def add_workers(load: argparse._ArgumentGroup) -> None:
    load.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that send and read (one for each 256 streams, at most half the CPUs)",
    )
    load.add_argument("--pin", action="store_true", help="pin each worker to a CPU")


def add_asking(parser: argparse.ArgumentParser) -> None:
    ask = parser.add_argument_group("what is asked")
    ask.add_argument(
        "--api",
        default="chat",
        metavar="NAME",
        help="chat, completions, responses, anthropic, ollama, ollama-generate, tgi, triton,"
        " llamacpp, or the FILE.toml or .json of a template (%(default)s)",
    )
    ask.add_argument("--model", metavar="NAME", help="default: the first the endpoint lists")
    ask.add_argument(
        "--prompt-tokens",
        metavar="N",
        help="tokens a prompt (256): N, uniform:LOW:HIGH, normal:MEAN:STD, lognormal:MEAN:STD or"
        " file:PATH",
    )
    ask.add_argument("--output-tokens", metavar="N", help="tokens an answer (128), likewise")
    ask.add_argument(
        "--prompt-file",
        metavar="FILE",
        help="instead: a prompt a line, JSONL of request bodies, or ShareGPT JSON",
    )
    ask.add_argument(
        "--prefix-share",
        type=float,
        default=0.0,
        metavar="X",
        help="share of a prompt that its group has in common, 0 to 1 (%(default)s)",
    )
    ask.add_argument(
        "--prefix-groups", type=int, default=1, metavar="N", help="such groups (%(default)s)"
    )
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


def add_connection(parser: argparse.ArgumentParser) -> None:
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


def add_decoding(output: argparse._ArgumentGroup) -> None:
    """What a recording keeps; for the command's own output group."""
    output.add_argument(
        "--tokenizer", metavar="PATH", help="tokenizer.json or its folder, to count tokens by"
    )
    output.add_argument("--keep-text", action="store_true", help="keep the answers' text")


def load_of(args: argparse.Namespace) -> Load:
    """The load that `add_load` asked for."""
    return check_load(
        concurrency=args.concurrency,
        rate=args.rate,
        spacing=args.arrivals,
        burstiness=args.burstiness,
        seed=args.seed,
        requests=args.requests,
        duration_s=args.duration,
        warmup=args.warmup,
        workers=args.workers,
        trace=_trace(args),
    )


def _trace(args: argparse.Namespace) -> tuple[Arrival, ...]:
    if args.trace is None:
        if args.trace_speed is not None:
            raise UsageError("--trace-speed belongs to --trace")
        return ()
    if args.prompt_tokens is not None or args.output_tokens is not None or args.prompt_file:
        raise UsageError(
            "--trace has its own lengths: leave out --prompt-tokens, --output-tokens and"
            " --prompt-file"
        )
    speed = 1.0 if args.trace_speed is None else args.trace_speed
    if not 0 < speed <= 1e6:
        raise UsageError(f"--trace-speed {speed:g} must be greater than 0 and at most 1e6")
    return tuple(traces.read(args.trace, speed))


def _lengths(args: argparse.Namespace) -> tuple[Lengths, Lengths]:
    if not 0 <= args.prefix_share <= 1:
        raise UsageError(f"--prefix-share {args.prefix_share:g} must be between 0 and 1")
    if args.prefix_groups < 1:
        raise UsageError(f"--prefix-groups {args.prefix_groups} must be at least 1")
    given = {
        "--prompt-tokens": 256 if args.prompt_tokens is None else args.prompt_tokens,
        "--output-tokens": 128 if args.output_tokens is None else args.output_tokens,
    }
    prompt, output = (lengths.parse(name, str(text)) for name, text in given.items())
    return prompt, output


def _asking(
    args: argparse.Namespace, wanted: tuple[Lengths, Lengths], entries: tuple[Entry, ...]
) -> Asking:
    from legato.traffic.asking import Asking

    return Asking(
        prompt_tokens=wanted[0],
        output_tokens=wanted[1],
        prompt_file=args.prompt_file,
        entries=entries,
        prefix_share=args.prefix_share,
        prefix_groups=args.prefix_groups,
        cache_friendly=args.cache_friendly,
        seed=args.seed,
    )


def bench_maker(args: argparse.Namespace) -> MakeBench:
    """Everything about a run but its URL, its load and its place, checked."""
    from legato.wire.deadlines import Deadlines

    if args.prompt_file is not None and args.prompt_tokens is not None:
        raise UsageError("--prompt-file and --prompt-tokens contradict each other: choose one")
    deadlines = Deadlines(
        args.connect_timeout, args.first_byte_timeout, args.idle_timeout, args.total_timeout
    )
    for name in ("connect", "first_byte", "idle", "total"):
        check_seconds(f"--{name.replace('_', '-')}-timeout", getattr(deadlines, f"{name}_s"))
    wanted = _lengths(args)
    entries = tuple(promptfile.read(args.prompt_file)) if args.prompt_file is not None else ()
    headers, extra_body = _headers(args.header), _json(args.extra_body)
    secret = key.find(args.api_key_file, args.api)
    warned: set[str] = set()

    def make(url: str, load: Load, out: Path) -> Bench:
        from legato.traffic import bench as benches

        if secret is not None and url not in warned:
            warned.add(url)
            _warn_of_plain_key(url, secret.source)
        return benches.Bench(
            url=url,
            load=load,
            out=out,
            api=args.api,
            model=args.model,
            asking=_asking(args, wanted, entries),
            headers=headers,
            extra_body=extra_body,
            tokenizer=args.tokenizer,
            keep_text=args.keep_text,
            keep_alive=not args.fresh_connections,
            insecure=args.insecure,
            kernel_stamps=args.stamps == "kernel",
            pin=args.pin,
            deadlines=deadlines,
            key=secret,
        )

    return make


def _warn_of_plain_key(url: str, key_from: str) -> None:
    from legato.wire.endpoint import parse_url

    endpoint = parse_url(url)
    if not endpoint.tls and not endpoint.is_loopback:
        told = f"legato: the key of {key_from} goes to {endpoint.url} without encryption"
        print(sentence(told, sys.stderr.encoding), file=sys.stderr)


def check_url(url: str | None) -> None:
    from legato.wire.endpoint import parse_url

    if url is not None:
        parse_url(url)


@contextlib.contextmanager
def target(url: str | None) -> Iterator[str]:
    """The URL to measure; without one, a metronome of our own."""
    if url is not None:
        yield url
        return
    from legato.metronome.launch import running
    from legato.metronome.pattern import Pattern

    with running(Pattern()) as metronome:
        yield metronome.url


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
