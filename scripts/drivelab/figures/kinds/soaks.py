"""Soaks over time and volume: saturation, cache, and recovery in idle time and from another workload."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from drivelab.analysis.values.bursts import FULL, Burst, Fall, bursts, find_fall, share_back
from drivelab.analysis.values.recovery import cross_stimulus
from drivelab.analysis.values.saturation_table import drifts
from drivelab.analysis.values.saturation_values import Cliff, counted_slices, find_cliff, level
from drivelab.core.units import format_amount
from drivelab.figures.base import selection, style
from drivelab.figures.base.overlay import Look
from drivelab.figures.base.quantities import elapsed, format_latency, format_number, quantity, volume
from drivelab.figures.families.lines import Lines, Panel, X, apart, in_order
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import named

FIGURES = (
    FigureKind(
        "saturation_bytes", "Saturation against bytes written",
        "I/O rate and mean latency of each slice of the soak against the bytes written since conditioning: drives of "
        "different speed reach the same wear at different times. A drive fill is the user capacity written once.",
        tables=("cells", "drives"), when=("volume", "drives_volume"), place=170, rows="soaks",
    ),
    FigureKind(
        "saturation_time", "Saturation against time",
        "I/O rate and mean latency of each slice of the soak against time. Where writes began right after a purge, "
        "the first part shows the speed fresh out of the box. Marks are the write cliff, where the I/O rate falls, "
        "and the level that the drive sustains.",
        tables=("cells",), when=("soak",), place=160, rows="soaks",
    ),
    FigureKind(
        "latency_over_time", "Latency over time",
        "Median, high percentiles and maximum of the latencies of each slice of a soak. Where they rise while the "
        "median stays, a few I/Os wait for the drive's own work.",
        tables=("cells",), when=("sliced",), place=320, rows="soaks",
    ),
    FigureKind(
        "slc_cache", "Write cache, at first and after idle times",
        "Rate of writes against their volume, a line for each burst: on the prepared drive, then after idle times. "
        "Dotted lines are where the rate falls, because the cache is full. The volume up to there is the cache that "
        "was free.",
        tables=("cells",), when=("cache",), place=155, draw="burst_rates",
    ),
    FigureKind(
        "idle_recovery", "Recovery in idle time",
        "I/O rate of bursts after idle time, and of the baselines without pauses between them. Numbers above the "
        "panel are the idle times before each burst. Bursts above the baseline show what the drive gained in idle "
        "time. The first burst of each series directly follows the baseline.",
        tables=("cells",), when=("idle_recovery",), place=150,
    ),
    FigureKind(
        "stimulus", "Recovery from another workload",
        "Throughput, mean and maximum latency of each slice through soaks of different workloads. The dashed line is "
        "the mean throughput before the other workload, the dotted line the time at which the drive reached it "
        "again. If it did not, the figure says so.",
        tables=("cells",), when=("stimulus",), place=210, rows="soaks",
    ),
)  # fmt: skip


_COUNTED = "#ececec"
"""Colour of the level windows of several soaks: opaque, as transparent shades would add up."""
_DOTTED = (0, (1, 1.5))
_MOST_EMPTY = 0.4
"""Maximum empty share of an axis that begins at 0."""


def slices(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the soaks' slices; raises ValueError for several measurements or workloads."""
    soak = selection.rows(cells, "cells", kind="soak")
    for column in ("measurement", "pattern", "read_share_pct", "block_size_bytes", "workload"):
        selection.require_one(soak, column, "cells")
    return soak


def _cliff(axes: Axes, place: float, text: str, colour: style.Colour, *, alone: bool) -> Artist:
    """Draw a dotted line at the write cliff; `text` follows in the legend if the soak is `alone` in the figure."""
    line = axes.axvline(place, color=style.INK if alone else colour, linestyle=_DOTTED, linewidth=1.6, gid="cliff",
                        label=f"write cliff{text}" if alone else "write cliff")  # fmt: skip
    shared = Line2D([], [], color=style.MUTED, linestyle=_DOTTED, linewidth=1.6, label="write cliff")
    return line if alone else shared


def _level(panel: Panel, line: pd.DataFrame, fresh: bool, colour: style.Colour, *, alone: bool) -> list[Artist]:
    """Draw a dashed line at the level over the slices that count, by the method of the tables.

    The legend has its number if the soak is `alone` in the figure.
    """
    counted = counted_slices(line.assign(saturates=fresh))
    shown = counted.slices
    if not shown[panel.metric].notna().any():
        return []
    average = level(shown, panel.metric).average
    value, unit = average / panel.scale.divisor, panel.scale.unit
    number = format_latency(average) if unit in ("µs", "ms", "s") else f"{format_number(value)} {unit}"
    divisor = panel.x.divisor
    span = float((shown["at"] - shown["spent"]).min()) / divisor, float(shown["at"].max()) / divisor
    whole = len(shown) == len(line)
    if not whole:
        panel.axes.axvspan(*span, color=colour if alone else _COUNTED, alpha=0.08 if alone else 1.0, linewidth=0,
                           zorder=0, gid="counted", label="_counted" if alone else "level window")  # fmt: skip
    drifting = " (still drifts)" if alone and fresh and drifts(shown) else ""
    (drawn,) = panel.axes.plot(span, [value, value], color=style.ALARM if alone else colour, linestyle="--",
                               linewidth=1.6, zorder=4, gid="level",
                               label=f"{counted.statistic}{drifting}: {number}" if alone else "level")  # fmt: skip
    if alone:
        return [drawn]
    window = [] if whole else [Patch(facecolor=_COUNTED, label="level window")]
    return [Line2D([], [], color=style.MUTED, linestyle="--", linewidth=1.6, label="level"), *window]


_METRICS = ("iops", "mean_latency_us")


def saturation_bytes(cells: pd.DataFrame, drives: pd.DataFrame) -> Figure:
    """Draw I/O rate above mean latency against bytes written since conditioning.

    Each drive and run has a line with a point per slice. Drives of one capacity share a second axis in drive fills;
    with several capacities, a note has them. Marks are the write cliff, where the IOPS fall,
    and the level that each line settles at. Raises ValueError for unsuitable tables and a drive not in `drives`.
    """
    soak = slices(cells)
    selection.require(drives, "drives")
    capacity = {drive: _capacity(drives, drive) for drive in soak["drive"].drop_duplicates()}
    scale = volume(soak["bytes_written_total"].max())
    low, high = float(soak["bytes_written_total"].min()), float(soak["bytes_written_total"].max())
    low = 0.0 if low < _MOST_EMPTY * high else max(0.0, low - 0.06 * (high - low) - 1e-9)
    x = X("at", scale.label, "linear", divisor=scale.divisor,
          limits=(low / scale.divisor, (high + 0.02 * (high - low)) / scale.divisor or 1.0))  # fmt: skip

    def cliff_at(cliff: Cliff) -> tuple[float, str]:
        return cliff.bytes_written, f": after {format_number(cliff.drive_fills)} drive fills"

    soak = soak.assign(at=soak["bytes_written_total"], spent=soak["bytes_written"])
    figure = _draw("volume", soak, x, cliff_at, capacity)
    if len(set(capacity.values())) > 1:
        fills = ", ".join(f"{drive} {format_amount(size)}" for drive, size in capacity.items())
        style.note(figure, f"a drive fill: {fills}")
        return figure
    fill = next(iter(capacity.values())) / scale.divisor
    top = figure.axes[0].secondary_xaxis(
        "top", functions=(lambda at: np.divide(at, fill), lambda fills: np.multiply(fills, fill))
    )
    top.set_xlabel("Drive fills (\N{MULTIPLICATION SIGN} user capacity)")
    top.xaxis.set_major_locator(MaxNLocator(nbins=9))
    return figure


def _capacity(drives: pd.DataFrame, drive: str) -> int:
    capacities = drives[drives["drive"] == drive]["capacity_bytes"].drop_duplicates().tolist()
    if len(capacities) != 1 or not capacities[0] > 0:
        raise ValueError(f"table 'drives' gives {len(capacities)} capacities for drive '{drive}'; expected one above 0")
    return int(capacities[0])


def saturation_time(cells: pd.DataFrame) -> Figure:
    """Draw I/O rate above mean latency against time, a line per drive and run.

    Each slice has a point at its end, counted from the beginning of the soak. Marks are the write cliff, where the IOPS
    fall, and the level that each line settles at.
    """
    soak = slices(cells)
    began = soak.groupby("recording")["elapsed_s"].transform("min")
    soak = soak.assign(at=soak["elapsed_s"] + soak["runtime_s"] - began, spent=soak["runtime_s"])
    x = X.time("at", float(soak["at"].max()), start_s=float(soak["elapsed_s"].min()), room=0.02)
    unit = elapsed(float(soak["at"].max())).unit

    def cliff_at(cliff: Cliff) -> tuple[float, str]:
        return cliff.time_s, f": after {format_number(cliff.time_s / x.divisor)} {unit}"

    return _draw("time", soak, x, cliff_at, {})


def _draw(
    against: str, soak: pd.DataFrame, x: X, cliff_at: Callable[[Cliff], tuple[float, str]], capacity: Mapping[str, int]
) -> Figure:
    """Draw the slices at their ends `at`, which begin at `at` less `spent`, with levels and cliffs.

    `cliff_at` returns the place of a cliff and its text.
    """
    alone = soak["recording"].nunique() == 1
    several = soak.groupby("drive")["run"].transform("nunique") > 1
    line = soak["drive"].where(~several, soak["drive"] + ", run " + soak["run"].astype(str))
    order = soak["drive"].map(list(soak["drive"].drop_duplicates()).index)
    soak = soak.assign(line=line, order=order)

    def landmarks(panel: Panel) -> Sequence[Artist]:
        entries: list[Artist] = []
        for name, part in panel.points.groupby("line", sort=False):
            colour = panel.looks[str(name)].colour
            fresh = not part["filled"].astype(bool).any()  # a drive that was filled before has no cliff
            if fresh and (cliff := find_cliff(part, capacity.get(part["drive"].iloc[0], 1))) is not None:
                place, text = cliff_at(cliff)
                entries.append(_cliff(panel.axes, place / x.divisor, text, colour, alone=alone))
            entries += _level(panel, part, fresh, colour, alone=alone)
        return entries

    return Lines(
        f"IOPS and mean latency against {against}, {soak['workload'].iloc[0]}", _METRICS,
        x, stacked=True, linear=("iops",), marks=landmarks,
    ).draw(soak.sort_values(["order", "run", "at"]))  # fmt: skip


_PERCENTILES = {"p50_latency_us": "median", "p99_latency_us": "99 %", "p999_latency_us": "99.9 %",
                "max_latency_us": "maximum"}  # fmt: skip


def latency_over_time(cells: pd.DataFrame) -> Figure:
    """Draw percentiles of the latencies of each slice, at its end; `cells` holds the soaks of one recording."""
    soak = slices(cells).sort_values("elapsed_s")
    selection.require_one(soak, "recording", "cells")
    start_s = float(soak["elapsed_s"].min())
    soak = soak.assign(at=soak["elapsed_s"] + soak["runtime_s"] - start_s)
    table = soak.melt("at", list(_PERCENTILES), "line", "latency").dropna()
    latency = replace(quantity("max_latency_us", float(table["latency"].max())), name="Latency")
    x = X.time("at", float(soak["at"].max()), start_s=start_s, room=0.02)
    title = f"Latency over time, {soak['workload'].iloc[0]}"
    lines = Lines(title, ("latency",), x, looks=in_order, quantities={"latency": latency})
    return lines.draw(table.replace({"line": _PERCENTILES}))


def burst_rates(cells: pd.DataFrame) -> Figure:
    """Draw the bandwidth of each burst against its volume, and where it falls.

    `cells` holds the soaks of one recording.
    """
    selection.require_one(cells, "recording", "cells")
    found = bursts(named(cells))
    if not found:
        raise ValueError("table 'cells' has no load that is repeated after idle times")
    fall = find_fall(found[0].moved, found[0].seconds)
    shares = [1.0 if fall is None or not burst.wait else share_back(burst, fall) for burst in found]
    names = [_name(burst, fall, share) for burst, share in zip(found, shares, strict=True)]
    ends = [np.r_[0.0, np.cumsum(burst.moved)] for burst in found]
    table = pd.concat(
        pd.DataFrame({"line": name, "bytes": end, "bandwidth_mib_s": np.r_[burst.rates, burst.rates[-1:]] / (1 << 20)})
        for name, end, burst in zip(names, ends, found, strict=True)
    )
    along = volume(longest := float(table["bytes"].max()))

    def falls(panel: Panel) -> Sequence[Artist]:
        for name, share in zip(names, shares, strict=True):
            if fall is not None and share > FULL:
                panel.axes.axvline(share * fall.fast_bytes / along.divisor, color=panel.looks[name].colour,
                                   linestyle=":", linewidth=1.6, label=name, gid="fall")  # fmt: skip
        return ()

    def looks(table: pd.DataFrame) -> dict[str, Look]:
        return {name: replace(look, marker="", dash=style.DASHES[place % 4])
                for place, (name, look) in enumerate(in_order(table).items())}  # fmt: skip

    x = X("bytes", f"Written in this burst ({along.unit})", "linear", divisor=along.divisor,
          limits=(0, longest / along.divisor * 1.01))  # fmt: skip
    title = f"Write rate against volume, {cells['workload'].iloc[0]}"
    return Lines(title, ("bandwidth_mib_s",), x, looks=looks, linear=("bandwidth_mib_s",), steps=True, marks=falls
                 ).draw(table)  # fmt: skip


def _name(burst: Burst, fall: Fall | None, share: float) -> str:
    """Name a burst by the idle time before it, with the part of the cache that was free."""
    name = f"after {burst.wait} idle" if burst.wait else "at first"
    if fall is None:
        return name
    if burst.wait:
        return f"{name}: " + ("cache full" if share <= FULL else f"{share:.0%} of the cache free")
    rates = [format_number(rate) for rate in (fall.fast_mib_s, fall.slow_mib_s)]
    return f"{name}: {format_amount(fall.fast_bytes)} at {rates[0]}, then {rates[1]} MiB/s"


_BASELINE = "baseline, without pauses"
_MOST_JOINED = 40
_WAIT = re.compile(r"(\d+)(s|min|h)")
"""Value of a phase, such as `50s`."""


def idle_recovery(cells: pd.DataFrame) -> Figure:
    """Draw the I/O rate of each burst and baseline slice against time, one colour per idle time.

    Of the writes before the first burst, the last part is shown, as long as the next baseline. `cells` holds the loops
    and soaks of one recording.
    """
    selection.require_one(cells, "recording", "cells")
    rows = cells.assign(end_s=cells["elapsed_s"] + cells["runtime_s"]).sort_values("end_s")
    bursts = rows[(rows["kind"] == "loop") & rows["pause_s"].notna() & rows["phase_value"].notna()]
    if bursts.empty:
        raise ValueError("table 'cells' has no bursts after idle time")
    soaks = rows[rows["kind"] == "soak"]
    first = float(bursts["elapsed_s"].min())
    after = soaks[soaks["elapsed_s"] > first].groupby("step")["end_s"]
    span = (after.max() - after.min()).max() if len(after) else 60.0
    start = max(first - max(float(span), 1.0), float(rows["elapsed_s"].min()))
    rows, bursts, soaks = (part.assign(at=part["end_s"] - start) for part in (rows, bursts, soaks))
    x = X.time("at", float(rows["at"].max()), "Time ({}), from shortly before the first burst", start)
    phase, waits = str(bursts["phase"].iloc[0]), list(bursts["phase_value"].drop_duplicates())
    idle = phase == "wait"
    names = {wait: f"bursts after {_spaced(wait)} idle" if idle else f"bursts, {phase} {wait}" for wait in waits}
    points = pd.concat([soaks[soaks["at"] > 0].assign(line=_BASELINE),
                        bursts.assign(line=bursts["phase_value"].map(names))])  # fmt: skip
    looks = {_BASELINE: Look(to_rgb(style.MUTED), "_", "-", 7.0)}
    for place, (wait, colour) in enumerate(zip(waits, style.ordered_colours(len(waits)), strict=True)):
        few = (bursts["phase_value"] == wait).sum() <= _MOST_JOINED
        looks[names[wait]] = Look(colour, style.MARKERS[place], ":" if few else "none", 5.0 if few else 4.0)

    def phases(panel: Panel) -> Sequence[Artist]:
        """Shade the time of each idle time, and mark its first burst, which follows the baseline."""
        for place, wait in enumerate(waits):
            part = bursts[bursts["phase_value"] == wait].iloc[:1]
            turn = rows[rows["phase_pass"] == part["phase_pass"].iloc[0]]
            low, high = turn["elapsed_s"].min() - start, turn["at"].max()
            style.phase(panel.axes, low / x.divisor, high / x.divisor, _spaced(wait), dark=place % 2 == 0)
            look = looks[names[wait]]
            panel.axes.plot(panel.at(part), panel.shown(part), markersize=8, color=look.colour, marker=look.marker,
                            markeredgecolor="white", zorder=3, label=names[wait], gid="first burst")  # fmt: skip
        return ()

    return Lines(
        "I/O rate of bursts after idle time", ("iops",), x, looks=lambda table: looks, linear=("iops",), marks=phases,
        note="above the panel: idle time before each burst" if idle else f"above: {phase}",
    ).draw(points.drop(columns="drive").assign(part=points["step"]))  # fmt: skip


def _spaced(wait: object) -> str:
    return _WAIT.sub(r"\1 \2", str(wait))


_OF_STIMULUS = ("bandwidth_mib_s", "mean_latency_us", "max_latency_us")


def stimulus(cells: pd.DataFrame) -> Figure:
    """Draw throughput, mean and maximum latency of each slice in three panels, a colour per workload.

    If a workload returns after another, a dashed line shows its mean before. Vertical lines mark when the throughput
    returned to that mean and to its settled level; a note says if it did not. `cells` holds the soaks of one recording.
    """
    soaks = selection.rows(cells, "cells", kind="soak")
    selection.require_one(soaks, "recording", "cells")
    start = float(soaks["elapsed_s"].min())
    soaks = soaks.assign(end_s=soaks["elapsed_s"] + soaks["runtime_s"] - start)
    points = soaks.assign(line=soaks["workload"], part=soaks["step"]).sort_values(["step", "round"])
    return Lines(
        "Cross stimulus", _OF_STIMULUS, X.time("end_s", float(soaks["end_s"].max()), start_s=start), looks=apart,
        stacked=True, row_in=1.8, marks=lambda panel: _recovery(panel, soaks) if panel.is_first else (),
    ).draw(points)  # fmt: skip


def _recovery(panel: Panel, soaks: pd.DataFrame) -> list[Artist]:
    """Mark the recovery of the throughput in its panel; return the legend entries."""
    parts, per_time = [part for _, part in soaks.groupby("step")], panel.x.divisor
    entries: list[Artist] = []
    for recovery in cross_stimulus(soaks):
        before, after = _around(parts, recovery.workload, recovery.stimulus)
        span = float(before["end_s"].iloc[0]) / per_time, float(after["end_s"].iloc[-1]) / per_time
        entries += panel.axes.plot(span, [recovery.level / panel.scale.divisor] * 2, color=style.MUTED, linestyle="--",
                                   linewidth=1.1, label="mean before", gid="level")  # fmt: skip
        begin = float(after["end_s"].iloc[0] - after["runtime_s"].iloc[0])
        results = []
        returns = ((recovery.recovery, "the mean before", ":"), (recovery.settled, "the settled level", "-."))
        for back, to, line in returns:
            if back is None:
                results.append(f"did not return to {to}")
                continue
            spent = elapsed(back.time_s)
            results.append(f"back at {to} within {back.time_s / spent.divisor:.3g} {spent.unit}")
            entries.append(panel.axes.axvline((begin + back.time_s) / per_time, color=style.ALARM, linestyle=line,
                                              linewidth=1.4, label=f"back at {to}", gid="recovered"))  # fmt: skip
        figure = panel.axes.get_figure(root=True)
        assert figure is not None
        style.note(figure, f"{recovery.workload} after {recovery.stimulus}: {'; '.join(results)}")
    return entries


def _around(parts: list[pd.DataFrame], workload: str, stimulus_: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    for before, between, after in zip(parts, parts[1:], parts[2:], strict=False):
        names = [part["workload"].iloc[0] for part in (before, between, after)]
        if names[0] == names[2] == workload and names[1] == stimulus_:
            return before, after
    raise ValueError(f"table 'cells' has no soaks of {workload} around {stimulus_}")
