"""What holds for every dialect, and for the rules their percentiles follow."""

from __future__ import annotations

import json

import numpy as np
import pytest
from dialect_streams import EXAMPLE, MS, Event, dialect, example, ramp, stream
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.metrics.dialects import DIALECTS, all_dialects
from legato.metrics.dialects.statistics import (
    Rule,
    linear,
    lower,
    nearest_rank,
    product_index,
    sketched,
    table_ms,
    weighted_table_ms,
)
from legato.recording import (
    CONTENT,
    DONE,
    FINISH,
    HAS_FINISH,
    ROLE,
    TOOL,
    USAGE,
    Recording,
    Stream,
)

_WITH_ITL = (
    "vllm",
    "sglang",
    "aiperf",
    "genai_perf",
    "guidellm",
    "inference_perf",
    "evalscope",
    "llmperf",
    "etalon",
    "hf_benchmarker",
    "servebench",
)


@settings(max_examples=30, deadline=None)
@given(
    gap_us=st.integers(1000, 500_000),
    lengths=st.lists(st.integers(2, 40), min_size=1, max_size=5),
)
def test_all_agree_on_one_token_a_chunk_at_a_constant_gap(gap_us: int, lengths: list[int]) -> None:
    # No role chunk, and the first token as late as any other, since llmperf averages it in.
    gap_ms = gap_us / 1000
    streams = []
    for length in lengths:
        events: list[Event] = [(gap_ms * (i + 1), CONTENT, 1) for i in range(length)]
        end_ms = events[-1][0]
        events[-1] = (end_ms, CONTENT, 1, HAS_FINISH)
        events += [(end_ms, USAGE, 0), (end_ms, DONE, 0)]
        streams.append(stream(events, ended_ms=end_ms))
    dialects = all_dialects(Recording.from_streams(streams))
    for name in _WITH_ITL:
        for key, value in dialects[name]["itl_ms"].items():
            if key != "std":
                assert value == pytest.approx(gap_ms, rel=1.1e-3 if name == "etalon" else 1e-5)
        assert dialects[name]["approximate"] is False


def test_every_tool_is_there_and_every_figure_is_json() -> None:
    dialects = all_dialects(Recording.from_streams([example(), *ramp()]))
    assert list(dialects) == list(DIALECTS)
    assert set(_WITH_ITL) == {name for name, seen in dialects.items() if "itl_ms" in seen}
    assert json.loads(json.dumps(dialects, allow_nan=False)) == dialects


def test_without_a_tokenizer_the_tools_that_re_encode_say_approximate_and_why() -> None:
    recording = Recording.from_streams([example(text_tokens=None, retokens=None)])
    dialects = all_dialects(recording)
    approximate = {name for name, seen in dialects.items() if seen["approximate"]}
    assert approximate == {
        "aiperf",
        "genai_perf",
        "inference_perf",
        "endpoints",
        "etalon",
        "hf_benchmarker",
    }
    assert all("tokenizer" in dialects[name]["why"] for name in approximate)
    assert dialects["aiperf"]["itl_ms"]["mean"] == pytest.approx(10.0)


@pytest.mark.parametrize("name", list(DIALECTS))
def test_the_warm_up_is_not_counted(name: str) -> None:
    slow = stream([(t * 100, kind, n) for t, kind, n, *_ in EXAMPLE], ended_ms=15200)
    slow.phase = "warmup"
    assert dialect(name, slow, example()) == dialect(name, example())


@pytest.mark.parametrize("name", sorted(set(DIALECTS) - {"etalon"}))
def test_a_cut_stream_is_not_counted(name: str) -> None:
    cut = stream(EXAMPLE[:3], ended_ms=100, status="aborted")
    seen, whole = dialect(name, cut, example()), dialect(name, example())
    assert {k: v for k, v in seen.items() if k != "output_tps"} == {
        k: v for k, v in whole.items() if k != "output_tps"
    }


@pytest.mark.parametrize(
    "streams",
    [
        [],
        [stream([], ended_ms=5, status="http_error")],
        [stream([], ended_ms=5)],
        [stream([(10, ROLE, 0), (20, FINISH, 0), (20, DONE, 0)], ended_ms=20)],
        [stream([(10, TOOL, 2), (20, TOOL, 2), (30, USAGE, 0)], ended_ms=30)],
    ],
    ids=["no stream", "none succeeded", "no chunk", "no token", "only tool calls"],
)
def test_an_answer_without_text_breaks_no_dialect(streams: list[Stream]) -> None:
    dialects = all_dialects(Recording.from_streams(streams))
    assert json.dumps(dialects, allow_nan=False)


# --- the rules ------------------------------------------------------------------------------

_SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)
_PERCENT = st.sampled_from([0.1, 1, 25, 50, 75, 90, 95, 99, 99.9])


@given(samples=_SAMPLES, percent=_PERCENT)
def test_the_linear_rule_is_numpys(samples: list[int], percent: float) -> None:
    ordered = np.sort(np.asarray(samples))
    assert linear(ordered, percent / 100) == pytest.approx(np.percentile(ordered, percent))


@given(
    samples=_SAMPLES,
    percents=st.lists(st.integers(1, 99), min_size=1, max_size=5),
    rule=st.sampled_from([linear, lower, nearest_rank, product_index, sketched]),
)
def test_a_table_is_the_same_from_sorted_and_unsorted_samples(
    samples: list[int], percents: list[int], rule: Rule
) -> None:
    mixed = np.asarray(samples)
    extras = ("mean", "min", "max")
    assert table_ms(mixed, percents, *extras, rule=rule) == pytest.approx(
        table_ms(np.sort(mixed), percents, *extras, rule=rule)
    )


@given(samples=_SAMPLES, percent=_PERCENT)
def test_the_lower_rule_is_numpys(samples: list[int], percent: float) -> None:
    ordered = np.sort(np.asarray(samples))
    assert lower(ordered, percent / 100) == np.percentile(ordered, percent, method="lower")


@given(
    pairs=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 50)), min_size=1, max_size=40),
    percent=st.sampled_from([3, 33, 67, 97]),
)
def test_a_weighted_percentile_is_that_of_the_repeated_samples(
    pairs: list[tuple[int, int]], percent: int
) -> None:
    values, weights = np.asarray(pairs).T
    repeated = np.repeat(values, weights)
    table = weighted_table_ms(values, weights, (percent,))
    if not len(repeated):
        assert table == {}
        return
    assert table["mean"] * MS == pytest.approx(repeated.mean())
    if len(repeated) * percent % 100:  # elsewhere rounding decides between two neighbours
        expected = np.percentile(repeated, percent, method="inverted_cdf")
        assert table[f"p{percent}"] * MS == pytest.approx(expected)
