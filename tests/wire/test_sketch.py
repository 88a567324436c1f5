"""Sketches: quantiles within 7 % at any scale, and sketches of workers add."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from legato.wire.sketch import BINS, BYTES, Sketch, bin_of, middle_ns

durations = st.integers(-(2**62), 2**62)


def sketch_of(values: list[int]) -> Sketch:
    sketch = Sketch()
    for value in values:
        sketch.counts[bin_of(value)] += 1
    return sketch


@settings(deadline=None)
@given(durations)
def test_every_duration_has_a_bin_and_its_middle_is_near(duration_ns: int) -> None:
    index = bin_of(duration_ns)
    assert 0 <= index < BINS
    if duration_ns >= 16:
        assert abs(middle_ns(index) - duration_ns) <= 0.07 * duration_ns


@settings(deadline=None)
@given(durations, durations)
def test_longer_durations_never_fall_in_earlier_bins(a: int, b: int) -> None:
    assert (bin_of(a) <= bin_of(b)) or a > b


@settings(deadline=None)
@given(st.lists(st.integers(16, 2**50), min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_is_within_seven_percent_of_the_true_one(values: list[int], q: float) -> None:
    found = sketch_of(values).quantile_ns(q)
    assert found is not None
    seen = [value for rank, value in enumerate(sorted(values), start=1) if rank >= q * len(values)]
    assert abs(found - seen[0]) <= 0.07 * seen[0]


@settings(deadline=None)
@given(st.lists(durations, max_size=20), st.lists(durations, max_size=20))
def test_sketches_add_and_survive_shared_memory(a: list[int], b: list[int]) -> None:
    both = sketch_of(a)
    both.add(sketch_of(b))
    assert both.counts == sketch_of(a + b).counts
    buffer = memoryview(bytearray(BYTES + 8))
    both.pack_into(buffer, 8)
    assert Sketch.unpack_from(buffer, 8).counts == both.counts


def test_an_empty_sketch_has_no_quantile() -> None:
    assert Sketch().quantile_ns(0.5) is None
