"""Exports hold what the recording holds, in the form other programs expect."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import subprocess
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.exchange.exporting import export
from legato.exchange.openmetrics import lines
from legato.metrics.summary import summarise
from legato.recording import CONTENT, HAS_CHOICES, ROLE, Recording, Stream

MS = 1_000_000
EPOCH_NS = 1_700_000_000_000_000_000


def stream(number: int, arrivals_ms: list[float], start_ms: float = 0.0, **other: Any) -> Stream:
    count = len(arrivals_ms)
    sent_ns = EPOCH_NS + round(start_ms * MS)
    values: dict[str, Any] = {
        "status": "ok",
        "arrival_ns": [round(ms * MS) for ms in arrivals_ms],
        "lag_ns": [5_000] * count,
        "early_ns": [0] * count,
        "read_index": list(range(count)),
        "segments": [1] * count,
        "tokens": [0, *[1] * (count - 1)][:count],
        "kind": [ROLE, *[CONTENT] * (count - 1)][:count],
        "flags": [HAS_CHOICES] * count,
        "ended_ns": sent_ns + round(max(arrivals_ms, default=1.0) * MS),
    }
    return Stream(number, sent_ns, **{"sent_ns": sent_ns, **values, **other})


RUN = Recording.from_streams(
    [
        stream(0, [20, 20, 30, 40, 50]),
        stream(1, [25, 25, 35, 435, 445, 455], start_ms=7.5, worker=1),
        stream(2, [], start_ms=9, status="http_error", error='said "no",\nthen hung up'),
        stream(3, [10, 12], start_ms=1, phase="warmup"),
    ],
    {"settings": {"model": 'a "model"', "url": "http://h:1/v1"}},
)
EMPTY = Recording.from_streams([])


def exported(recording: Recording, form: str, rows: str | None = None) -> str:
    sink = io.BytesIO()
    export(recording, form, rows, sink)
    return sink.getvalue().decode()


def trace(recording: Recording) -> list[dict[str, Any]]:
    document = json.loads(exported(recording, "chrome-trace"))
    assert document["displayTimeUnit"] == "ms"
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


# --- rows -----------------------------------------------------------------------------------


def test_csv_has_a_row_a_chunk() -> None:
    rows = list(csv.DictReader(io.StringIO(exported(RUN, "csv"))))
    assert [int(row["arrival_ns"]) for row in rows] == RUN.arrival_ns.tolist()
    assert [row["kind"] for row in rows[:2]] == ["role", "content"]
    assert [int(row["chunk"]) for row in rows if row["stream_id"] == "1"] == list(range(6))
    assert int(rows[5]["at_ns"]) == EPOCH_NS + 32_500_000


def test_csv_of_streams_survives_quotes_and_newlines() -> None:
    rows = list(csv.DictReader(io.StringIO(exported(RUN, "csv", "streams"))))
    assert len(rows) == 4
    assert rows[2]["error"] == 'said "no",\nthen hung up'
    assert "arrival_ns" not in rows[0]


def test_jsonl_has_a_line_a_stream_with_its_chunks() -> None:
    found = [json.loads(line) for line in exported(RUN, "jsonl").splitlines()]
    assert [line["stream_id"] for line in found] == [0, 1, 2, 3]
    assert found[0]["arrival_ns"] == [20 * MS, 20 * MS, 30 * MS, 40 * MS, 50 * MS]
    chunks = exported(RUN, "jsonl", "chunks").splitlines()
    assert len(chunks) == len(RUN.arrival_ns)


# --- chrome trace ---------------------------------------------------------------------------


def test_the_trace_has_a_named_track_a_stream() -> None:
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in trace(RUN)
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert names[(1, 2)] == "stream 1"
    assert len(names) == 4


def test_slices_of_a_track_nest_and_add_up() -> None:
    tracks = defaultdict(list)
    for event in trace(RUN):
        if event["ph"] == "X":
            tracks[(event["pid"], event["tid"])].append(event)
    for slices in tracks.values():
        whole, *inside = slices
        assert whole["name"].startswith("stream")
        at_us = whole["ts"]
        for piece in inside:
            assert piece["ts"] == pytest.approx(at_us, abs=1e-6)
            at_us = piece["ts"] + piece["dur"]
        assert at_us <= whole["ts"] + whole["dur"] + 1e-6
    first = tracks[(0, 1)]
    assert [piece["name"] for piece in first[1:]] == ["TTFT", "gap", "gap", "gap"]


def test_stalls_and_failures_have_names_of_their_own() -> None:
    names = [event["name"] for event in trace(RUN) if event["ph"] == "X"]
    assert names.count("stall") == 1
    assert "stream (http_error)" in names


def test_the_counter_of_open_streams_comes_back_to_zero() -> None:
    counts = [event["args"]["streams"] for event in trace(RUN) if event["ph"] == "C"]
    assert max(counts) == 4
    assert min(counts) == counts[-1] == 0


def test_an_empty_recording_is_a_trace_without_events() -> None:
    assert trace(EMPTY) == []


# --- openmetrics ----------------------------------------------------------------------------

_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(
    rf"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{(?P<labels>{_LABEL}(?:,{_LABEL})*)\}})? "
    r"(?P<value>[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?))"
)
_SUFFIXES = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}


def parse(text: str) -> dict[str, list[tuple[str, dict[str, str], float]]]:
    """Strict: the order of lines, names, units and labels as the standard has them."""
    assert text.endswith("# EOF\n")
    families: dict[str, list[tuple[str, dict[str, str], float]]] = {}
    kind = name = ""
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families
            families[name] = []
        elif line.startswith("# UNIT "):
            assert line.split(" ")[2] == name
            assert name.endswith("_" + line.split(" ")[3])
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == name
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            suffix = sample["name"].removeprefix(name)
            assert suffix in _SUFFIXES[kind]
            pairs = (label.split("=", 1) for label in re.findall(_LABEL, sample["labels"] or ""))
            labels = {key: quoted[1:-1] for key, quoted in pairs}
            families[name].append((suffix, labels, float(sample["value"])))
    return families


def assert_histogram(samples: list[tuple[str, dict[str, str], float]]) -> None:
    buckets = [(float(labels["le"]), value) for suffix, labels, value in samples if "le" in labels]
    assert buckets == sorted(buckets)
    assert [value for _, value in buckets] == sorted(value for _, value in buckets)
    assert math.isinf(buckets[-1][0])
    (count,) = (value for suffix, _, value in samples if suffix == "_count")
    assert buckets[-1][1] == count


def test_the_exposition_is_valid_and_agrees_with_the_summary() -> None:
    families = parse(exported(RUN, "openmetrics"))
    summary = summarise(RUN)
    for name, key in {
        "inter_token_latency": "itl_ms",
        "chunk_gap": "chunk_gap_ms",
        "time_to_first_token": "ttft_ms",
        "end_to_end": "e2e_ms",
    }.items():
        samples = families[f"legato_{name}_seconds"]
        assert_histogram(samples)
        figures = {suffix: value for suffix, labels, value in samples if "le" not in labels}
        assert figures["_count"] == summary[key]["n"]
        assert figures["_sum"] * 1e3 == pytest.approx(summary[key]["mean"] * summary[key]["n"])
    ended = {labels["status"]: value for _, labels, value in families["legato_streams"]}
    assert ended["ok"] == 2
    assert ended["http_error"] == 1


def test_a_gap_counts_in_the_buckets_it_does_not_exceed() -> None:
    samples = parse(exported(RUN, "openmetrics"))["legato_chunk_gap_seconds"]
    buckets = {labels["le"]: value for suffix, labels, value in samples if "le" in labels}
    # gaps: three of 10 ms in one stream; 10, 400, 10, 10 ms in the other
    assert buckets["0.007"] == 0
    assert buckets["0.01"] == 6
    assert buckets["0.5"] == 7


def test_an_empty_recording_is_a_valid_exposition() -> None:
    families = parse(exported(EMPTY, "openmetrics"))
    assert_histogram(families["legato_inter_token_latency_seconds"])


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_any_model_name_is_escaped(name: str) -> None:
    recording = Recording(RUN.table, {"settings": {"model": name}})
    last = list(lines(recording))[-2]
    found = re.fullmatch(r'legato_output_tokens_total\{model="(.*)"\} 9', last, re.DOTALL)
    assert found
    assert "\n" not in last
    back = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found[1])
    assert back == name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here")
def test_prometheus_reads_the_exposition(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("prometheus")
    # Its block writer is the strict reader of this format; it wants a time with each sample.
    stamped = [line if line.startswith("#") else f"{line} 1700000000" for line in lines(RUN)]
    (folder / "run.om").write_text("\n".join(stamped) + "\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "run.om", "out"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
