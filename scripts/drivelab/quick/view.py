"""Show a quick look on the terminal: a table that fills while it runs, and its final form in 80 columns."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
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

WIDTH = 80
_BAR = 10
_UNITS = {BANDWIDTH: "MiB/s", IOPS: "IOPS", LATENCY: "µs"}
_STEADY = 0.8
"""End to start of a sustained write that keeps its rate."""
_LARGE = 3.0
"""Smallest ratio that is shown as a factor instead of a percentage."""
_EVERY_S = 20.0
"""Least time between two lines without a terminal."""


def amount(value: float, metric: str) -> str:
    """Return a value for people, with three digits: `3,780 IOPS`, `412 MiB/s`, `86.3 µs`, `1.25 ms`."""
    if metric == LATENCY and value >= 1000:
        return f"{format_factor(value / 1000)} ms"
    return f"{format_factor(value)} {_UNITS[metric]}"


def bar(share: float, width: int = _BAR) -> str:
    """Return a bar of eighths of a character for a share from 0 to 1."""
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def spread(half_width_pct: float | None) -> str:
    """Return a spread for people: `±1.2 %`; empty if it is unknown, as for a single round."""
    return "" if half_width_pct is None else f"±{format_percentage(half_width_pct)} %"


CHANGES = "Change: + is better (more IOPS or MiB/s, less time); in parentheses, the spreads overlap."


def change(basis: Value, other: Value) -> str:
    """Return by how much the second value is better, see CHANGES: in percent, or as a factor if it is large."""
    ratio = basis.value / other.value if basis.shown.metric == LATENCY else other.value / basis.value
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


def short(names: Sequence[str], width: int = 12) -> list[str]:
    """Return names without the words that all of them begin with, cut to `width`: `photos`, `backup`."""
    words = [name.split("-") for name in names]
    heads = zip(*(own[:-1] for own in words), strict=False)
    shared = len(list(takewhile(lambda head: len(set(head)) == 1, heads)))
    return ["-".join(own[shared:])[:width] for own in words]


def final_table(names: Sequence[str], looks: Sequence[Sequence[Value]]) -> Table:
    """Return the table of one or several places, which fits in 80 columns for up to two."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("test", min_width=29, no_wrap=True)
    by_place = [{value.shown: value for value in look} for look in looks]
    several = len(looks) > 1
    for name in short(names):
        table.add_column(Text(name if several else "median"), justify="right", no_wrap=True)
        table.add_column("spread", justify="right", no_wrap=True)
    table.add_column("change" if several else "", justify="right" if several else "left", no_wrap=True)
    for shown in SHOWN:
        values = [place.get(shown) for place in by_place]
        if any(value is None for value in values):
            continue
        known = [value for value in values if value is not None]
        limited = host_limited(known)
        cells: list[RenderableType] = [Text(f"{shown.words}{'*' * limited}", style="yellow" if limited else "")]
        for value in known:
            cells += [Text(amount(value.value, shown.metric)), Text(spread(value.half_width_pct), style="dim")]
        cells.append(
            Text(_difference(known) if several else _bar_of(known[0], looks[0]), style="" if several else "cyan")
        )
        table.add_row(*cells)
    return table


def _difference(values: Sequence[Value]) -> str:
    return "  ".join(change(values[0], other) for other in values[1:])


def _bar_of(value: Value, look: Sequence[Value]) -> str:
    """Return a bar relative to the best value of the same unit; none for times, as the shortest is the best."""
    if value.shown.metric == LATENCY:
        return ""
    most = max(other.value for other in look if other.shown.metric == value.shown.metric)
    return bar(value.value / most)


def host_limited(values: Sequence[Value]) -> bool:
    """Return whether any test is marked as limited by the host."""
    return any(value.host_limited for value in values)


def tails(value: Value) -> list[str]:
    """Return the percentiles of a latency: `p99 121 µs` and `p99.9 310 µs`."""
    known = {"p99": value.p99_us, "p99.9": value.p999_us}
    return [f"{name} {amount(us, LATENCY)}" for name, us in known.items() if us is not None]


def sustained_words(sustained: Sustained, range_bytes: float) -> str:
    """Describe the sustained write over a range in a sentence."""
    gib, seconds = sustained.written_bytes / (1 << 30), sustained.seconds[-1]
    start, end = (amount(rate, BANDWIDTH) for rate in (sustained.start_mib_s, sustained.end_mib_s))
    if sustained.cliff_bytes is None and sustained.end_mib_s < _STEADY * sustained.start_mib_s:
        return f"Sustained write: {start} at first, {end} after {format_factor(gib)} GiB, without a clear cliff."
    if sustained.cliff_bytes is None:
        mean = amount(sustained.written_bytes / (1 << 20) / seconds, BANDWIDTH)
        again = f", again and again over {format_amount(range_bytes)}" if sustained.written_bytes > range_bytes else ""
        return f"Sustained write: {mean}, no cliff in {format_factor(gib)} GiB{again} ({format_duration(seconds)})."
    cliff = format_factor(sustained.cliff_bytes / (1 << 30))
    return f"Sustained write: {start} falls to {end} after {cliff} GiB (cliff), {format_factor(gib)} GiB in all."


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
        text = spelled_out(text)
        self._activity[plan.recording] = text
        if self._live is not None:
            self._live.update(self._render())
            return
        now_s = time.monotonic()
        if now_s - self._printed_s >= _EVERY_S:
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
            samples = self._samples[recording]
            table = Table(box=None, pad_edge=False, title=Text(name, style="bold"), title_justify="left")
            table.add_column("test", min_width=29)
            table.add_column("median so far", justify="right", min_width=13)
            table.add_column("spread", justify="right", min_width=8)
            table.add_column("rounds", min_width=8)
            for shown in SHOWN:
                rounds = samples.get(shown, [])
                width_pct = half_width_pct(rounds) if len(rounds) >= FEWEST else None
                table.add_row(
                    shown.words,
                    amount(median(rounds), shown.metric) if rounds else "…",
                    spread(width_pct),
                    Text(strip(rounds, 8), style="cyan"),
                )
            parts += [table, Text(self._activity.get(recording, "")[: WIDTH - 1], style="dim")]
        return Group(*parts, Text(self._clock(), style="dim"))
