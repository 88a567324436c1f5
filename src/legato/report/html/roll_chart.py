"""The piano roll as a still image: the streams sent around the longest stall, or the first ones.

The page draws its own from all of the data; this one is for files, where there is no scrolling.
"""

from __future__ import annotations

from legato.report.html.chart import Chart
from legato.report.html.roll import NS_PER_MS, Roll

MOST_ROWS = 40
MOST_TICKS = 12_000
NS_PER_S = 1_000_000_000


def roll_chart(made: Roll) -> Chart | None:
    """None where no stream was sent."""
    if not len(made.rows):
        return None
    first, last = _window(made)
    lines, ticks, stalls = [], [], []
    unit_s = made.unit_ns / NS_PER_S
    ends_stall = set(made.stall.tolist())
    for row in range(first, last):
        start = int(made.start[row])
        name = f"{int(made.stream_id[row])}"
        lines.append(
            {"row": name, "from": start * unit_s, "to": (start + int(made.length[row])) * unit_s}
        )
        low, high = int(made.offsets[row]), int(made.offsets[row + 1])
        for index in range(low, high):
            at_s = (start + int(made.tick[index])) * unit_s
            ticks.append({"row": name, "at": at_s})
            if index in ends_stall:
                before_s = (start + int(made.tick[index - 1])) * unit_s
                stalls.append({"row": name, "from": before_s, "to": at_s})
    y = {
        "field": "row",
        "type": "nominal",
        "sort": [line["row"] for line in lines],
        "axis": {"title": "stream", "ticks": False, "domain": False},
    }
    x = {"type": "quantitative", "scale": {"zero": False, "nice": False}}
    x["axis"] = {"title": "seconds into the run", "grid": False}
    return Chart(
        name="piano-roll",
        title="Piano roll",
        caption=(
            f"Streams {first + 1:,} to {last:,} of {len(made.rows):,} in the order they were sent;"
            f" a tick is a chunk with tokens, red is a stall. Times to"
            f" {made.unit_ns / NS_PER_MS:g} ms."
        ),
        spec={
            "height": {"step": 12},
            "layer": [
                {
                    "data": {"values": rows},
                    "mark": mark,
                    "encoding": {
                        "x": x | {"field": "from" if ranged else "at"},
                        **({"x2": {"field": "to"}} if ranged else {}),
                        "y": y,
                    },
                }
                for rows, mark, ranged in (
                    (lines, {"type": "rule", "style": "extent", "strokeWidth": 8}, True),
                    (ticks, {"type": "tick", "style": "typical", "size": 8, "thickness": 1}, False),
                    (stalls, {"type": "rule", "style": "stall", "strokeWidth": 8}, True),
                )
            ],
        },
    )


def _window(made: Roll) -> tuple[int, int]:
    """[first, last) rows, with the longest stall in their middle where there is one."""
    middle = 0
    if len(made.stall):
        longest = made.stall[(made.tick[made.stall] - made.tick[made.stall - 1]).argmax()]
        middle = int(made.offsets.searchsorted(longest, side="right")) - 1
    first = max(0, min(middle - MOST_ROWS // 2, len(made.rows) - MOST_ROWS))
    last = min(first + MOST_ROWS, len(made.rows))
    while last - first > 1 and made.offsets[last] - made.offsets[first] > MOST_TICKS:
        first, last = (first + 1, last) if middle - first > last - 1 - middle else (first, last - 1)
    return first, last
