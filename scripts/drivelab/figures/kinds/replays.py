"""Replays and applications: their runs, latencies, fidelity, and values over time."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.overlay import Look
from drivelab.figures.base.quantities import (
    elapsed,
    format_latency,
    format_number,
    quantity,
)
from drivelab.figures.families.curves import Curve, Curves, exceedance
from drivelab.figures.families.lines import Lines, Panel, X
from drivelab.figures.families.rows import Across, Rows, dot
from drivelab.figures.kinds.trace import DIRECTIONS, nothing, over_intervals, step_look, steps
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "replay", "Replay",
        "Access time, bandwidth and score of each run, in order. Bandwidth is bytes per time in which at least one "
        "read or write was in flight. Score is the geometric mean of bandwidth in MiB/s and 1/access time in 1/s. "
        "Cold runs do not count; the result is the median of an odd number of runs.",
        tables=("replays", "replay_passes"), when=("replay",), place=240,
    ),
    FigureKind(
        "replay_latency", "Latency of the replay and of the trace",
        "Share of requests that were faster than a latency, in the counted runs and in the trace. Both axes are "
        "logarithmic: each step up is one more nine.",
        tables=("replays", "replay_latency"), when=("replay",), place=260,
    ),
    FigureKind(
        "application_durations", "Duration of the application",
        "Duration of each run of the application on each drive. Hollow dots are cold runs, which do not count. Less "
        "is better. The processor takes much of the time, so drives differ less than in tests of the drive alone.",
        tables=("application_runs",), when=("application", "drives_application"), place=350,
    ),
    FigureKind(
        "replay_fidelity", "Fidelity of the replay",
        "Delay between deadline and issue of each request in the counted runs; each step up is one more nine. For "
        "comparison, the host's wake-up delay, measured before each run: no replay is more punctual than its host.",
        tables=("replays", "replay_issue_errors"), when=("replay",), place=250,
    ),
    FigureKind(
        "replay_over_time", "Replay over time",
        "Rate, bandwidth and mean latency of the median run in a hundred intervals. Planned values and latencies in "
        "the trace are grey, replayed ones blue.",
        tables=("replays", "replay_over_time"), when=("replay",), place=270,
    ),
    FigureKind(
        "replay_phases", "Consistency, pass by pass",
        "Replays pass by pass through the phases of the test. Between the passes, the test changes the state of the "
        "drive. A consistent drive keeps its level and returns to it in recovery.",
        tables=("replays", "replay_passes"), when=("phases",), place=290,
    ),
)  # fmt: skip


RUN = ["recording", "step", "phase", "phase_pass", "trace", "repeat"]
"""Columns that identify a replay."""


def counted(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the rows of counted runs; raises ValueError if there are none."""
    rows = frame[frame["counted"].astype(bool)]
    if rows.empty:
        raise ValueError(f"table '{table}' has no counted run; a figure of a replay needs one")
    return rows


def median_runs(replays: pd.DataFrame) -> pd.DataFrame:
    """Return for each trace the counted run with the median access time, or the first if it is unknown.

    Of an even number of runs, the lower of the two middle ones is taken.
    """
    medians = []
    for _, runs in counted(replays, "replays").groupby("trace", sort=False):
        known = runs[runs["access_time_us"].notna()].sort_values("access_time_us", kind="stable")
        medians.append((known if len(known) else runs.head(1)).iloc[[(max(len(known), 1) - 1) // 2]])
    return pd.concat(medians)


def of_runs(frame: pd.DataFrame, runs: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the rows of a table that belong to the replays in `runs`; raises ValueError for missing columns."""
    if missing := [column for column in RUN if column not in frame.columns]:
        raise ValueError(f"table '{table}' lacks the column(s) {', '.join(missing)} that this figure needs")
    keys = (pd.MultiIndex.from_frame(rows[RUN].astype(object).fillna("")) for rows in (frame, runs))
    return frame[next(keys).isin(next(keys))]


_OF_RUNS = {"access_time_us": "← better", "bandwidth_mib_s": "better →", "score": "better →"}
_SPREAD = 0.7
"""Lines over which the runs of a row are spread in their order."""


def replay(replays: pd.DataFrame, replay_passes: pd.DataFrame) -> Figure:
    """Draw access time, bandwidth and score of the runs by drive, trace and phase, with medians.

    Passes of several traces first have a row for the whole set. Beside each replay is its duration as a multiple of the
    planned one. Runs that do not count are hollow. Raises ValueError for unsuitable tables or a row without a counted
    run.
    """
    selection.require(replays, "replays")
    selection.require(replay_passes, "replay_passes")
    runs = _runs(replays, replay_passes)
    rows = runs.groupby("row", sort=False)
    without = [str(name) for name, part in rows if not part["counted"].any()]
    if without:
        raise ValueError(f"table 'replays' has no counted run of {', '.join(without)}; each needs one")
    names = list(dict.fromkeys(replays["trace"]))
    title = f"Replay of {names[0]}" if len(names) == 1 else f"Replay of {len(names)} traces"
    metrics = [metric for metric in _OF_RUNS if replays[metric].notna().any()]
    if not metrics:
        return nothing(title, "No read or write completed, so access time and busy time are unknown.")
    looks = overlay.looks(replays["drive"])
    runs["text"] = runs["row"].map({name: _text(str(name), part) for name, part in rows})
    runs["colour"] = [looks[drive].colour for drive in runs["drive"]]
    parts, across = [], {}
    for metric in metrics:
        scale = quantity(metric, float(runs[metric].max()))
        across[metric] = Across(scale.label.replace(" (", "\n(", 1) + f"\n{_OF_RUNS[metric]}")
        known = runs.assign(value=runs[metric].astype(float) / scale.divisor, panel=metric)
        medians = known[known["counted"]].groupby("row", sort=False).agg(
            {"text": "first", "value": "median", "panel": "first"}).reset_index()  # fmt: skip
        parts += [known, medians.assign(colour=style.INK, marker="|", gid="median", shift=0.0, hollow=False,
                                        number=[format_number(value) for value in medians["value"]])]  # fmt: skip
    marks = pd.concat(parts, ignore_index=True)
    notes = [f"{column}: {', '.join(sorted(set(replays[column])))}" for column in ("engine", "timing")]
    handles = [dot("counted run"), dot("not counted", hollow=True), dot("median of counted", style.INK, marker="|")]
    return Rows(title, across).draw(marks, handles, notes=["; ".join(notes)])


def _runs(replays: pd.DataFrame, passes: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with the name of their row, which omits what all rows share.

    Of a set in phases, only the whole set has rows.
    """
    sets = passes[passes["traces"] > 1].assign(duration_ratio=float("nan"))
    sets = sets.assign(trace=[f"set of {count} traces" for count in sets["traces"]])
    both = pd.concat([sets, replays], ignore_index=True) if len(sets) else replays
    both = both.assign(phase=both["phase"].fillna(""), counted=both["counted"].astype(bool))
    if len(sets) and (both["phase"] != "").any():  # `replay_phases` shows the rest
        both = both[both["trace"].isin(sets["trace"])]
    varying = [part for part in ("drive", "trace", "phase") if both[part].nunique() > 1] or ["drive"]
    both["row"] = [", ".join(filter(None, values)) for values in both[varying].itertuples(index=False)]
    place = both.groupby(["row", "counted"]).cumcount() + 1
    count = both.groupby(["row", "counted"])["row"].transform("size")
    return both.assign(shift=_SPREAD * (place / (count + 1) - 0.5), hollow=~both["counted"],
                       gid=both["counted"].map({True: "counted", False: "not counted"}))  # fmt: skip


def _text(name: str, runs: pd.DataFrame) -> str:
    wrapped = "\n".join(textwrap.wrap(name, 22))
    ratio = runs.loc[runs["counted"], "duration_ratio"].astype(float).median()
    whose = "trace's" if (runs["timing_mode"] == "asap").all() else "planned"
    return wrapped if pd.isna(ratio) else f"{wrapped}\n{ratio:.3f} \N{MULTIPLICATION SIGN} {whose} time"


_SOURCES = {"replay": "-", "trace": ":"}
_TAIL = 0.01


def replay_latency(replays: pd.DataFrame, replay_latency: pd.DataFrame) -> Figure:
    """Draw exceedance curves of reads and writes over all counted runs and traces; both axes logarithmic."""
    selection.require(replays, "replays")
    title = "Latency of the replay and of the trace"
    bins = of_runs(replay_latency, counted(replays, "replays"), "replay_latency")
    bins = bins[bins["operation"].isin(["read", "write"])]
    if bins.empty:
        return nothing(title, "No read or write completed, so the distribution is unknown.")
    curves = []
    for (operation, source), part in bins.groupby(["operation", "source"]):
        share = exceedance(part["latency_ns"].clip(lower=100.0) / 1e3, part["count"])
        tail = format_latency(float(share.index[share > _TAIL][-1]))
        curves.append(Curve(f"{operation}, {source}: 99 % in {tail}", share, to_rgb(DIRECTIONS[operation]),
                            _SOURCES[source], gid=f"{operation} {source}"))  # fmt: skip
    figure = Curves("Faster requests (% of all), log scale").draw(title, {"Latency (µs, ms, s), log scale": curves})
    known = (bins["source"] == "trace").any()
    whose = "latency is of the drive and system on which the trace was captured"
    style.note(figure, f"The trace's {whose}" if known else "The trace has no latencies")
    return figure


def application_durations(application_runs: pd.DataFrame) -> Figure:
    """Draw the duration of each run, a row per application, phase and drive; less is better.

    Filled dots count, hollow ones were cold. The bar is the median of the counted runs, with their number on the right.
    """
    selection.require_one(application_runs, "measurement", "application_runs")
    runs = application_runs.assign(what=[
        f"{run.application}, {run.phase} {run.phase_value}" if isinstance(run.phase_value, str) else run.application
        for run in application_runs.itertuples()
    ])  # fmt: skip
    looks, whats = overlay.looks(runs["drive"]), list(runs["what"].drop_duplicates())
    time = elapsed(float(runs["duration_s"].max()), "Duration")
    counts = runs["counted"].astype(bool)
    marks = runs.assign(
        text=runs["drive"] if len(whats) == 1 else runs["what"] + ", " + runs["drive"],
        row=runs["what"] + "\n" + runs["drive"],
        order=runs["what"].map(whats.index) * len(looks) + runs["drive"].map(list(looks).index),
        value=runs["duration_s"] / time.divisor,
        name=runs["drive"] + counts.map({True: ", counts", False: ", cold"}),
        colour=[looks[drive].colour for drive in runs["drive"]],
        marker=[looks[drive].marker for drive in runs["drive"]],
        hollow=~counts,
        gid=counts.map({True: "run", False: "cold"}),
    )  # fmt: skip
    rows = marks[counts].groupby("row", sort=False)
    medians = rows.first().reset_index().assign(
        value=rows["value"].median().to_numpy(), colour=style.INK, marker="|", gid="median",
        name=rows["drive"].first().to_numpy() + ", median",
        number=[f"{part['value'].median():.4g} {time.unit} ({len(part)})" for _, part in rows],
    )  # fmt: skip
    handles = [dot("counted run")] + ([] if counts.all() else [dot("cold run, not counted", hollow=True)])
    sources = ", ".join(runs["simulated_from"].dropna().unique())
    label = f"{time.label}, ← better" + (f": {whats[0]}" if len(whats) == 1 else "")
    return Rows("Duration of the application", {"": Across(label)}).draw(
        pd.concat([marks, medians]).sort_values("order", kind="stable"),
        [*handles, dot("median (number of counted runs)", style.INK, marker="|")],
        notes=[f"no application ran; instead, trace {sources} was replayed" if sources else ""],
    )


_PLANNED = "#9a9a9a"
_MOST_LINES = 6
"""With more traces, single traces have no lines."""
_LEAST_US = 0.1
"""Smallest delay on the axis: a logarithmic axis has no zero, so shorter delays are drawn here."""
_LEFT = {50: 0.5, 95: 0.05, 99: 0.01}
"""Share of the requests above each percentile that is marked."""


def replay_fidelity(replays: pd.DataFrame, replay_issue_errors: pd.DataFrame) -> Figure:
    """Draw the issue errors of all counted runs, with the host's wake-up delays.

    Requests issued as soon as possible have no deadline and no error.
    """
    selection.require(replays, "replays")
    title, runs = "Fidelity of the replay", counted(replays, "replays")
    errors = of_runs(replay_issue_errors, runs, "replay_issue_errors")
    if errors.empty:
        asap = (runs["timing_mode"] == "asap").all()
        return nothing(title, "Requests have no deadline; they were issued as soon as possible."
                       if asap else "Deadlines of single requests are unknown.")  # fmt: skip
    names = list(errors["trace"].drop_duplicates())
    groups = {f"issue error, {name}": errors[errors["trace"] == name] for name in names}
    if len(names) == 1 or len(names) > _MOST_LINES:
        groups = {"issue error" if len(names) == 1 else f"issue error, all {len(names)} traces": errors}
    curves = []
    for place, ((name, part), colour) in enumerate(zip(groups.items(), style.colours(len(groups)), strict=True)):
        share = exceedance((part["error_ns"] / 1e3).clip(lower=_LEAST_US), part["count"])
        if len(groups) == 1:
            at = {percent: float(share.index[share > left][-1]) for percent, left in _LEFT.items()}
            name += ": " + ", ".join(f"{percent} % {_delay(delay_us)}" for percent, delay_us in at.items())
        curves.append(Curve(name, share, colour, style.DASHES[place % 4], gid="issue error"))
    wakeups = {left: float(runs[f"wakeup_p{percent}_us"].median())
               for percent, left in _LEFT.items() if runs[f"wakeup_p{percent}_us"].notna().any()}  # fmt: skip
    if wakeups:
        known = pd.Series(list(wakeups), index=[max(delay_us, _LEAST_US) for delay_us in wakeups.values()])
        curves.append(Curve("wake-up delay of this host", known, to_rgb(style.MUTED), ":", "D", "wake-up"))
    label = "Issued after the deadline (µs, ms), log scale"
    figure = Curves("Issued within (% of all), log scale").draw(title, {label: curves})
    if wakeups:
        figure.axes[0].get_lines()[-1].set(drawstyle="default", markevery=1)
    return figure


def _delay(delay_us: float) -> str:
    return f"{'≤ ' if delay_us <= _LEAST_US else ''}{format_latency(delay_us)}"


_PANELS = {"iops": "planned_iops", "bandwidth_mib_s": "planned_bandwidth_mib_s",
           "mean_latency_us": "trace_mean_latency_us"}  # fmt: skip
"""Measured and given column of each panel."""


def _run_name(run: pd.Series) -> str:
    """Return the name of a replay, such as `sqlite, run 3` or `sqlite, degradation, pass 2`."""
    if pd.isna(run["phase"]):
        return f"{run['trace']}, run {run['repeat']}"
    return f"{run['trace']}, {run['phase']}, pass {int(run['phase_pass'])}"


def replay_over_time(replays: pd.DataFrame, replay_over_time: pd.DataFrame) -> Figure:
    """Draw rate, bandwidth and latency of the first trace's median run over time."""
    selection.require(replays, "replays")
    run = median_runs(replays).iloc[[0]]
    rows = of_runs(replay_over_time, run, "replay_over_time")
    if rows.empty:
        return nothing("Replay over time", "Deadlines and times of single requests are unknown.")
    several = len(counted(replays, "replays")) > 1
    notes = [f"Shown: {_run_name(run.iloc[0])}" + (", the median of the counted runs" if several else "")]
    if replays["trace"].nunique() > 1:
        notes.append(f"one of {replays['trace'].nunique()} traces")
    paced = bool(run["timing_mode"].iloc[0] != "asap")
    if not paced:
        notes.append("issued as soon as possible, so there is no planned rate")
    rates = list(_PANELS)[:2]
    given = rows.drop(columns=list(_PANELS)).rename(columns={column: name for name, column in _PANELS.items()})
    table = pd.concat([
        steps(given.drop(columns="mean_latency_us") if paced else given.iloc[:0], "planned"),
        steps(given.drop(columns=rates), "in the trace"),
        steps(rows, "replayed"),
    ]).astype(dict.fromkeys(_PANELS, float))  # fmt: skip
    looks = {"planned": step_look(_PLANNED, filled=True), "in the trace": step_look(_PLANNED),
             "replayed": step_look(style.COLOURBLIND[0])}  # fmt: skip
    lines = over_intervals("Replay over time", tuple(_PANELS), rows)
    return replace(lines, looks=lambda _: looks, linear=tuple(rates), note="; ".join(notes)).draw(table)


_OF_PASSES = ("access_time_us", "bandwidth_mib_s", "score")
_PASS = ["step", "phase", "phase_pass", "repeat"]


def replay_phases(replays: pd.DataFrame, replay_passes: pd.DataFrame) -> Figure:
    """Draw access time, bandwidth and score of each pass in order, with a line for each of a few traces.

    Raises ValueError for unsuitable tables, such as replays without phases or of several recordings.
    """
    selection.require(replays, "replays")
    selection.require_one(replay_passes, "recording", "replay_passes")
    passes = replay_passes[replay_passes["phase"].notna()].reset_index(drop=True)
    if passes.empty:
        raise ValueError("table 'replay_passes' has no phases; this figure is for a protocol that repeats by phase")
    if passes[list(_OF_PASSES)].isna().all(axis=None):
        return nothing("Consistency", "No read or write completed, so access time and busy time are unknown.")
    names = list(replays["trace"].drop_duplicates())
    whole = f"set of {len(names)} traces" if len(names) > 1 else names[0]
    table = passes.assign(place=range(1, len(passes) + 1), line=whole)
    lines = names if 1 < len(names) <= _MOST_LINES else []
    if lines:
        of_traces = replays[replays["phase"].notna()].merge(table[[*_PASS, "place"]], on=_PASS)
        table = pd.concat([table, of_traces.assign(line=of_traces["trace"])])
    colours = style.colours(len(lines))
    looks = {name: Look(colours[place], style.MARKERS[place + 1], "-", 4.0) for place, name in enumerate(lines)}
    looks[whole] = Look(to_rgb(style.INK), "o", "-")

    def phases(panel: Panel) -> Sequence[Artist]:
        for number, (_, part) in enumerate(passes.groupby((passes["phase"] != passes["phase"].shift()).cumsum())):
            name = str(part["phase"].iloc[0]) if panel.is_first else ""
            style.phase(panel.axes, part.index[0] + 0.5, part.index[-1] + 1.5, name, dark=number % 2 == 0)
        return ()

    return Lines(
        "Consistency: pass by pass", _OF_PASSES, X("place", "Pass (number)", "rounds"), stacked=True, row_in=1.8,
        looks=lambda points: looks, linear=_OF_PASSES, marks=phases,
    ).draw(table.drop(columns="drive").astype(dict.fromkeys(_OF_PASSES, float)))  # fmt: skip
