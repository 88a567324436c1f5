from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from legato.errors import UsageError
from legato.traffic.lengths import parse


def test_one_number_is_one_length() -> None:
    lengths = parse("--prompt-tokens", "256")
    assert lengths.fixed == 256
    assert lengths.draw(3, "seed") == [256, 256, 256]


@pytest.mark.parametrize(
    ("text", "mean", "std"),
    [("uniform:100:500", 300, 115.8), ("normal:256:64", 256, 64), ("lognormal:256:128", 256, 128)],
)
def test_a_distribution_has_the_moments_it_names(text: str, mean: float, std: float) -> None:
    drawn = parse("--prompt-tokens", text).draw(20_000, "seed")
    # Five standard errors: a right draw fails once in millions, a wrong formula always.
    assert statistics.mean(drawn) == pytest.approx(mean, abs=5 * std / 20_000**0.5)
    assert statistics.stdev(drawn) == pytest.approx(std, rel=0.06)
    assert min(drawn) >= 1


def test_a_seed_repeats_and_a_tail_below_one_is_cut() -> None:
    lengths = parse("--output-tokens", "normal:2:50")
    assert lengths.draw(50, "a") == lengths.draw(50, "a")
    assert lengths.draw(50, "a") != lengths.draw(50, "b")
    assert min(lengths.draw(50, "a")) == 1


def test_a_file_is_used_in_turn(tmp_path: Path) -> None:
    file = tmp_path / "lengths"
    file.write_text("5\n10 15\n")
    assert parse("--prompt-tokens", f"file:{file}").draw(4, "seed") == [5, 10, 15, 5]


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "-5", "1.5", "many", "nan", "1e9", "uniform:5", "uniform:9:5", "uniform:0:5",
        "normal:0:5", "normal:10:-1", "gamma:1:2", "file:/nowhere", "uniform:a:b",
    ],
)  # fmt: skip
def test_what_is_no_length_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="--prompt-tokens"):
        parse("--prompt-tokens", text)
