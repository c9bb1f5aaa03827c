"""Show quick looks on the terminal: a table that fills while it runs, and the result in 80 columns."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from drivelab.analysis.values.quick_look import (
    BANDWIDTH,
    IOPS,
    LATENCY,
    SHOWN,
    Shown,
    Sustained,
    Value,
    half_width_pct,
    shown_of,
)
from drivelab.core.terminal import strip
from drivelab.core.units import format_amount, format_duration, format_factor, format_percentage
from drivelab.criteria.repeats import FEWEST
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.report.numbers import TIMES
from drivelab.report.sentences import spelled_out

_WIDTH, _TEST, _LONGEST_NAME = 80, 29, 12
_UNITS = {BANDWIDTH: "MiB/s", IOPS: "IOPS", LATENCY: "µs"}
_STEADY = 0.8
"""End to start of a sustained write that keeps its rate."""
_LARGE = 3.0
"""Smallest ratio that is shown as a factor instead of a percentage."""
_EVERY_S = 20.0
"""Least time between two lines without a terminal."""
CHANGES = "Change: + is better (more IOPS or MiB/s, less time); in parentheses, the spreads overlap."


def amount(value: float, metric: str) -> str:
    """Return a value for people, with three digits: `3,780 IOPS`, `412 MiB/s`, `86.3 µs`, `1.25 ms`."""
    if metric == LATENCY and value >= 1000:
        return f"{format_factor(value / 1000)} ms"
    return f"{format_factor(value)} {_UNITS[metric]}"


def spread(half_width_pct: float | None) -> str:
    """Return a spread for people: `±1.2 %`; empty if it is unknown, as for a single round."""
    return "" if half_width_pct is None else f"±{format_percentage(half_width_pct)} %"


def change(basis: Value, other: Value) -> str:
    """Return by how much the second value is better, see CHANGES: in percent, or as a factor if it is large."""
    ratio = basis.value / other.value if basis.shown.is_time else other.value / basis.value
    if 1 / _LARGE < ratio < _LARGE:
        text = f"{format_percentage(100 * (ratio - 1), signed=True)} %"
    else:
        text = f"{format_factor(ratio)} {TIMES}"
    return text if apart(basis, other) else f"({text})"


def apart(one: Value, other: Value) -> bool:
    """Return whether the intervals of two values do not meet; False if one is unknown."""
    if one.half_width_pct is None or other.half_width_pct is None:
        return False
    halves = (one.value * one.half_width_pct + other.value * other.half_width_pct) / 100
    return abs(one.value - other.value) > halves


def table(*columns: str, most: int | None = None) -> Table:
    """Return a table of tests whose other columns are aligned at the right, and fold names longer than `most`."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("test", min_width=_TEST, no_wrap=True)
    for column in columns:
        table.add_column(Text(column), justify="right", overflow="fold", max_width=most)
    return table


def result_table(places: Mapping[str, Sequence[Value]]) -> Table:
    """Return the values of each place by its name, with spreads and the changes against the first place."""
    several = len(places) > 1
    names = [column for name in places for column in (name if several else "median", "spread")]
    shown_table = table(*names, *(["change"] if several else []), most=_LONGEST_NAME)
    by_place = [{value.shown: value for value in values} for values in places.values()]
    for shown in (shown for shown in SHOWN if all(shown in place for place in by_place)):
        values = [place[shown] for place in by_place]
        limited = any(value.host_limited for value in values)
        cells = [Text(f"{shown.words}{'*' * limited}", style="yellow" if limited else "")]
        for value in values:
            cells += [Text(amount(value.value, shown.metric)), Text(spread(value.half_width_pct), style="dim")]
        shown_table.add_row(*cells, *(["  ".join(change(values[0], other) for other in values[1:])] if several else []))
    return shown_table


def row(value: Value) -> dict[str, Any]:
    """Return one value for JSON."""
    return {
        "test": value.shown.words,
        "unit": {**_UNITS, LATENCY: "us"}[value.shown.metric],
        "value": value.value,
        "half_width_pct": value.half_width_pct,
        "rounds": list(value.samples),
        "p99_us": value.p99_us,
        "p99_9_us": value.p999_us,
        "cpu_share": value.cpu_share,
        "host_limited": value.host_limited,
    }


def tails(value: Value) -> str:
    """Return the percentiles of a latency: `p99 121 µs, p99.9 310 µs`; empty if none is known."""
    known = {"p99": value.p99_us, "p99.9": value.p999_us}
    return ", ".join(f"{name} {amount(us, LATENCY)}" for name, us in known.items() if us is not None)


def sustained_words(sustained: Sustained, range_bytes: float) -> str:
    """Describe the sustained write over a range in a sentence."""
    gib, seconds = sustained.written_bytes / (1 << 30), sustained.seconds[-1]
    start, end = (amount(rate, BANDWIDTH) for rate in (sustained.start_mib_s, sustained.end_mib_s))
    if sustained.cliff_bytes is not None:
        cliff = format_factor(sustained.cliff_bytes / (1 << 30))
        return f"Sustained write: {start} falls to {end} after {cliff} GiB (cliff), {format_factor(gib)} GiB in all."
    if sustained.end_mib_s < _STEADY * sustained.start_mib_s:
        return f"Sustained write: {start} at first, {end} after {format_factor(gib)} GiB, without a clear cliff."
    mean = amount(sustained.written_bytes / (1 << 20) / seconds, BANDWIDTH)
    again = f", again and again over {format_amount(range_bytes)}" if sustained.written_bytes > range_bytes else ""
    return f"Sustained write: {mean}, no cliff in {format_factor(gib)} GiB{again} ({format_duration(seconds)})."


class LiveView:
    """Shows each place's values as they come; on a terminal in place, elsewhere a line now and then."""

    def __init__(self, names: Mapping[str, str], longest_s: float, live: Live | None) -> None:
        """Take the words for each plan's recording, about the longest time of the look, and the terminal's display."""
        self._names, self._longest_s, self._live = names, longest_s, live
        self._started_s = time.monotonic()
        self._activity: dict[str, str] = {}
        self._samples: dict[str, dict[Shown, list[float]]] = {name: {} for name in names}
        self._printed_s = -_EVERY_S

    def say(self, plan: Plan, text: str, fraction: float) -> None:
        """Show what a plan does now."""
        self._activity[plan.recording] = text = spelled_out(text)
        if self._live is not None:
            self._live.update(self._render())
        elif (now_s := time.monotonic()) - self._printed_s >= _EVERY_S:
            self._printed_s = now_s
            print(f"{self._names[plan.recording]}: {text} [{self._clock()}]", file=sys.stderr, flush=True)

    def on_line(self, plan: Plan, journal: Sequence[Mapping[str, Any]]) -> None:
        """Take the values of a plan's finished cells from its journal."""
        samples: dict[Shown, list[float]] = {}
        for line in journal:
            if line["event"] != "cell" or line.get("cold"):
                continue
            cell = Cell(**line["workload"])
            shown = shown_of(cell.pattern, cell.read_share, cell.block_size_bytes, cell.queue_depth,
                             synchronous=bool(cell.synchronous))  # fmt: skip
            if shown is not None:
                metric = "mean_latency_us" if shown.is_time else shown.metric
                samples.setdefault(shown, []).append(line["metrics"][metric])
        self._samples[plan.recording] = samples
        if self._live is not None:
            self._live.update(self._render())

    def _clock(self) -> str:
        return f"{format_duration(time.monotonic() - self._started_s)} of about {format_duration(self._longest_s)}"

    def _render(self) -> RenderableType:
        parts: list[RenderableType] = []
        for recording, name in self._names.items():
            so_far = table("median so far", "spread", "rounds")
            for shown in SHOWN:
                rounds = self._samples[recording].get(shown, [])
                value = amount(median(rounds), shown.metric) if rounds else "…"
                width_pct = half_width_pct(rounds) if len(rounds) >= FEWEST else None
                so_far.add_row(
                    shown.words, value, spread(width_pct), Text(strip(rounds, 8), style="cyan", justify="left")
                )
            doing = Text(self._activity.get(recording, "")[: _WIDTH - 1], style="dim")
            parts += [Text(name, style="bold"), so_far, doing]
        return Group(*parts, Text(self._clock(), style="dim"))
