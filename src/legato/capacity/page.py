"""What a capacity search looks like on a terminal: the answer, how sure it is, the runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from legato.capacity.document import Found, Trial
from legato.capacity.pressure import Judged, worst
from legato.expressions import SHARES, TIMES
from legato.report.figures import UNKNOWN, ms, of, percent, significant
from legato.report.lookup import number
from legato.report.page import Page
from legato.traffic.level import Level


def render(found: Found, page: Page) -> None:
    page.heading(headline(found))
    page.gap()
    page.bullets(_said(found))
    page.gap()
    ordered = sorted(found.trials, key=lambda trial: trial.run.level.value)
    page.figures(_HEADER, [_row(trial) for trial in ordered])
    if found.peak:
        page.gap()
        page.line("at 3 × and 5 × the expected peak")
        page.figures(_HEADER, [_row(trial) for trial in found.peak])


_HEADER = ["load", "ITL p50", "p99", "TTFT p90", "tokens/s", "failed", "SLO", "worst condition"]


def headline(found: Found) -> str:
    """The answer in one sentence."""
    answer = found.answer
    level = Level(found.by, answer.level)
    if not found.trials:
        return "Nothing was measured."
    if answer.ending == "none":
        lowest = min(trial.run.level.value for trial in found.trials)
        return f"The SLO is not kept even at {Level(found.by, lowest)}, the lowest load."
    if not answer.level:
        held = "was not held by this client" if answer.ending == "client" else "broke the SLO"
        return f"Nothing is known yet: the lowest load {held}."
    keep = f"{level} {'keeps' if str(level) == '1 stream' else 'keep'} the SLO"
    if found.is_bound:
        why = {
            "most": "the highest load allowed",
            "client": "the most this client could hold",
            "stopped": "the search was interrupted",
        }.get(answer.ending, "the runs are spent")
        return f"At least {keep} ({why}): the limit may lie higher."
    interval = f"95 % interval {_number(answer.low)}–{_number(answer.high)}"
    unsettled = {
        "budget": "; not settled: more --runs or a longer --duration would narrow it",
        "stopped": "; interrupted",
    }.get(answer.ending, "")
    return f"{keep} ({interval}{unsettled})."


def _said(found: Found) -> list[str]:
    runs = of(len(found.answer.runs), "run")
    said = [f"SLO: {found.slo}", f"{runs} spent{_ending_words(found)}"]
    if found.binding is not None:
        said.append(f"first to break: {found.binding}")
    if found.tokens_per_s is not None:
        said.append(f"{significant(found.tokens_per_s)} tokens a second at that load")
    if found.cost_per_million_tokens is not None:
        cost = f"{found.cost_per_million_tokens:,.4g} per million output tokens"
        said.append(f"{cost}, at {found.cost_per_hour:g} an hour and that load")
    said += _doubts(found.trials)
    return said


def _ending_words(found: Found) -> str:
    if found.answer.ending == "client":
        return "; the client could not hold a higher load, so this is no more than a lower bound"
    if found.answer.ending == "settled":
        return "; the answer is settled to within 5 % or one stream"
    return ""


def _doubts(trials: Sequence[Trial]) -> list[str]:
    said = []
    few = sorted({str(one.condition) for trial in trials for one in trial.judged if one.few})
    if few:
        said.append(
            f"judged by few samples in some runs: {', '.join(few)}; a longer --duration makes"
            " them firmer"
        )
    drifting = [str(trial.run.level) for trial in trials if trial.run.steady["steady"] is False]
    if drifting:
        said.append(
            f"not steady: {', '.join(drifting)}; with a longer --duration the answer may be lower"
        )
    lost = [trial for trial in trials if not trial.held]
    said += [f"{trial.run.level} not held: {'; '.join(trial.run.reasons)}" for trial in lost]
    return said


def _row(trial: Trial) -> list[str]:
    summary, streams = trial.run.summary, trial.run.summary["streams"]
    failed = (streams["total"] - streams["ok"]) / max(1, streams["total"])
    tokens_per_s = number(summary, "tps", "system")
    return [
        f"{trial.run.level.value:g}",
        ms(number(summary, "itl_ms", "p50")),
        ms(number(summary, "itl_ms", "p99")),
        ms(number(summary, "ttft_ms", "p90")),
        UNKNOWN if tokens_per_s is None else significant(tokens_per_s),
        percent(failed),
        ("kept" if trial.passes else "broken") if trial.held else "not held",
        _figure(worst(trial.judged)),
    ]


def _figure(one: Judged) -> str:
    """The figure of the condition that fared worst, as it was measured."""
    if one.estimate is None:
        return one.condition.figure
    value = one.estimate.value
    if one.condition.metric in TIMES:
        return f"{one.condition.figure} {ms(value)}"
    shown = percent(value) if one.condition.metric in SHARES else significant(value)
    return f"{one.condition.figure} {shown}"


def _number(level: float) -> str:
    return "∞" if math.isinf(level) else f"{level:.3g}" if level < 100 else f"{level:,.0f}"
