"""What a sweep looks like on a terminal: a table, a curve of ITL against load, the knee."""

from __future__ import annotations

from collections.abc import Sequence

from legato.report.figures import ms, of, percent, significant
from legato.report.lookup import interval, number
from legato.report.page import Page
from legato.traffic.level import LevelRun
from legato.traffic.sweep import describe

_BAR = "█"
_TAIL = "░"
_MARKS = {"valid": "", "degraded": "~", "invalid": "!", "failed": "x"}


def render(runs: Sequence[LevelRun], slo: str | None, page: Page) -> None:
    if not runs:
        page.line("No level was completed.")
        return
    found = describe(runs, slo)
    page.line("times in ms, 95 % their intervals; tokens and requests a second")
    page.figures(_header(runs, slo), [_row(run, slo) for run in runs])
    page.gap()
    _curve(runs, page)
    page.gap()
    page.bullets(_said(runs, found, slo))


def _header(runs: Sequence[LevelRun], slo: str | None) -> list[str]:
    load = "streams" if runs[0].level.by == "concurrency" else "req/s"
    head = [load, "ITL p50", "95 %", "p99", "95 %", "TTFT p50", "p90", "tok/s"]
    return [*head, "good/s" if slo else "req/s"]


def _row(run: LevelRun, slo: str | None) -> list[str]:
    """Times in ms: one unit down a column is read at a glance."""
    summary = run.summary
    rate = number(summary, "goodput", "requests_per_s") if slo else summary["requests_per_s"]
    cells = [f"{run.level.value:g}{_mark(run)}"]
    for quantile in ("p50", "p99"):
        value, ends = number(summary, "itl_ms", quantile), interval(summary, "itl_ms", quantile)
        cells += [_number(value), "" if ends is None else "–".join(_number(end) for end in ends)]
    cells += [_number(number(summary, "ttft_ms", quantile)) for quantile in ("p50", "p90")]
    cells += [_number(summary["tps"]["system"]), _number(rate)]
    return cells


def _mark(run: LevelRun) -> str:
    return "?" if run.interrupted else _MARKS[run.verdict]


def _number(value: float | None) -> str:
    return "–" if value is None else significant(value)


def _curve(runs: Sequence[LevelRun], page: Page) -> None:
    """A bar a level: full to the median, light from there to p99 (to the maximum without one)."""
    ends = [(run, *_bar_ends(run)) for run in runs]
    longest = max((tail for _, _, tail in ends), default=0.0)
    if longest <= 0:
        return
    labels = [f"{run.level.value:g}" for run in runs]
    margin = max(len(label) for label in labels)
    room = max(10, page.width - margin - 14)
    page.line(f"ITL: median {_BAR}, then to p99 (to the largest without one) {_TAIL}")
    for label, (_, median, tail) in zip(labels, ends, strict=True):
        full = round(median / longest * room)
        light = round(tail / longest * room) - full
        drawn = _BAR * max(full, 1) + _TAIL * max(light, 0) if tail else ""
        page.verbatim(f"{label:>{margin}} {drawn} {ms(tail) if tail else 'nothing measured'}")


def _bar_ends(run: LevelRun) -> tuple[float, float]:
    itl = run.summary["itl_ms"]
    median = itl["p50"] or itl["mean"] or 0.0
    return median, max(median, itl["p99"] or itl["max"] or 0.0)


def _said(runs: Sequence[LevelRun], found: dict[str, object], slo: str | None) -> list[str]:
    said = [_knee_words(runs, found["knee"])]
    said += [words for run in runs for words in _level_words(run)]
    if slo:
        said.append(f"goodput: requests a second that met {slo}, each by its own figures")
    trimmed = sum(run.trimmed["streams"] for run in runs)
    said.append(f"trimmed: {of(trimmed, 'stream')}; {found['trimming']}")
    return said


def _knee_words(runs: Sequence[LevelRun], found: object) -> str:
    if not isinstance(found, dict):
        return "knee: not known; it takes two levels that are measurements"
    at = next(run.level for run in runs if found.get(run.level.by) == run.level.value)
    beyond = ", the highest level run: it may lie beyond" if found["at_end"] else ""
    return f"knee at {at}{beyond}; {found['rule']}"


def _level_words(run: LevelRun) -> list[str]:
    said = []
    failed = run.summary["streams"]["total"] - run.summary["streams"]["ok"]
    if run.verdict != "valid":
        said.append(f"{run.level}{_mark(run)} {run.verdict}: {'; '.join(run.reasons)}")
    if run.interrupted:
        said.append(f"{run.level}? interrupted: these figures are of a part of the level")
    if failed:
        said.append(f"{run.level}: {of(failed, 'stream')} failed")
    if run.steady["steady"] is False:
        drifts = (f"{n.upper()} {_signed(run.steady[n])}" for n in ("itl", "ttft") if run.steady[n])
        said.append(
            f"{run.level}: not steady; from its first half to its second {', '.join(drifts)}"
        )
    if run.trimmed["window_s"] is None:
        said.append(f"{run.level}: too short to trim; its ramp and drain are in the figures")
    return said


def _signed(share: float) -> str:
    return f"{'rose' if share > 0 else 'fell'} {percent(abs(share))}"
