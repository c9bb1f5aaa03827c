"""Replays and applications: their runs, operations and latencies."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import LATENCY, elapsed, format_latency, format_number, quantity
from drivelab.figures.families.curves import Curve, Curves, exceedance
from drivelab.figures.families.rows import Across, Rows, dot
from drivelab.figures.kinds.trace import DIRECTIONS, nothing
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
        "replay_operations", "Operations, planned and replayed",
        "Requests planned, issued and completed in the median run, by operation, and their mean latency in the "
        "replay and in the trace.",
        tables=("replays", "replay_operations"), when=("replay",), place=280,
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
)  # fmt: skip

RUN = ["recording", "step", "phase", "phase_pass", "trace", "repeat"]
"""Columns that identify a replay."""
PLANNED = "#9a9a9a"
MOST_LINES = 6
"""With more traces, single traces have no lines."""


def counted(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the rows of counted runs; raises ValueError if there are none."""
    rows = frame[frame["counted"].astype(bool)]
    if rows.empty:
        raise ValueError(f"table '{table}' has no counted run; a figure of a replay needs one")
    return rows


def traces(frame: pd.DataFrame) -> list[str]:
    return list(frame["trace"].drop_duplicates())


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
    wanted = set(map(_key, runs[RUN].itertuples(index=False, name=None)))
    mine = [_key(row) in wanted for row in frame[RUN].itertuples(index=False, name=None)]
    return frame[np.array(mine, np.bool_)]


def _key(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return a key in which nulls are equal."""
    return tuple(None if value is None or value != value else value for value in values)


def run_name(run: pd.Series) -> str:
    """Return the name of a replay, such as `sqlite, run 3` or `sqlite, degradation, pass 2`."""
    if pd.isna(run["phase"]):
        return f"{run['trace']}, run {run['repeat']}"
    return f"{run['trace']}, {run['phase']}, pass {int(run['phase_pass'])}"


_METRICS = {"access_time_us": "← better", "bandwidth_mib_s": "better →", "score": "better →"}
_SPREAD = 0.7
"""Lines over which the runs of a row are spread in their order."""


@style.styled
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
    metrics = [metric for metric in _METRICS if replays[metric].notna().any()]
    if not metrics:
        return nothing(title, "No read or write completed, so access time and busy time are unknown.")
    looks = overlay.looks(replays["drive"])
    runs["text"] = rows["row"].transform("first").map({name: _text(str(name), part) for name, part in rows})
    runs["colour"] = [looks[drive].colour for drive in runs["drive"]]
    parts, across = [], {}
    for metric in metrics:
        scale = quantity(metric, float(runs[metric].max()))
        across[metric] = Across(scale.label.replace(" (", "\n(", 1) + f"\n{_METRICS[metric]}")
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


_STAGES = {"planned": PLANNED, "issued": "#0173b2", "completed": "#56b4e9"}
_LATENCIES = {
    "trace_mean_latency_us": {"marker": "D", "colour": style.MUTED, "hollow": True, "name": "latency in the trace"},
    "mean_latency_us": {"marker": "o", "colour": "#d55e00", "hollow": False, "name": "latency replayed"},
}


@style.styled
def replay_operations(replays: pd.DataFrame, replay_operations: pd.DataFrame) -> Figure:
    """Draw requests by operation and stage, and mean latencies, of the median run of each trace.

    Raises ValueError for unsuitable tables.
    """
    selection.require(replays, "replays")
    runs = median_runs(replays)
    rows = of_runs(replay_operations, runs, "replay_operations")
    selection.require(rows, "replay_operations")
    marks: list[dict[str, Any]] = []
    for operation in DIRECTIONS:
        part = rows[rows["operation"] == operation]
        counts = {stage: int(part[f"{stage}_requests"].sum()) for stage in _STAGES}
        if not counts["planned"]:
            continue
        marks += [
            {"row": operation, "line": stage, "panel": "counts", "value": count, "name": stage, "gid": stage,
             "number": f"{count:,}" if stage == "planned" or count != counts["planned"] else "", "bar": True,
             "colour": _STAGES[stage], "marker": "o", "hollow": False}
            for stage, count in counts.items()
        ]  # fmt: skip
        means = {column: _mean(part, column) for column in _LATENCIES}
        marks += [
            {"row": operation, "line": "issued", "panel": "latency", "value": means[column], "gid": column,
             "number": "", "bar": False, **look}
            for column, look in _LATENCIES.items() if means[column] == means[column]
        ]  # fmt: skip
    across = {"counts": Across("Requests (number)")}
    if any(mark["panel"] == "latency" for mark in marks):
        across["latency"] = Across("Mean latency\n(µs, ms, s), log scale", True, LATENCY)
    failed = int(rows["failed_requests"].sum())
    shown = run_name(runs.iloc[0]) if len(runs) == 1 else f"the median run of each of {len(runs)} traces"
    return Rows("Operations, planned and replayed", across).draw(
        pd.DataFrame(marks), notes=[f"Shown: {shown}" + (f"; {failed:,} requests failed" if failed else "")]
    )


def _mean(rows: pd.DataFrame, column: str) -> float:
    """Return the mean over all requests of an operation in all traces."""
    known = rows[rows[column].notna() & (rows["completed_requests"] > 0)]
    weights = known["completed_requests"].to_numpy(float)
    return float((known[column].to_numpy(float) * weights).sum() / weights.sum()) if len(known) else float("nan")


_DASHES = {"replay": "-", "trace": ":"}
_TAIL = 0.01
_TITLE = "Latency of the replay and of the trace"


@style.styled
def replay_latency(replays: pd.DataFrame, replay_latency: pd.DataFrame) -> Figure:
    """Draw exceedance curves of reads and writes over all counted runs and traces; both axes logarithmic.

    Raises ValueError for unsuitable tables.
    """
    selection.require(replays, "replays")
    bins = of_runs(replay_latency, counted(replays, "replays"), "replay_latency")
    bins = bins[bins["operation"].isin(["read", "write"])]
    if bins.empty:
        return nothing(_TITLE, "No read or write completed, so the distribution is unknown.")
    curves = []
    for (operation, source), part in bins.groupby(["operation", "source"]):
        share = exceedance(part["latency_ns"].clip(lower=100.0) / 1e3, part["count"])
        tail = format_latency(float(share.index[share > _TAIL][-1]))
        curves.append(Curve(f"{operation}, {source}: 99 % in {tail}", share, DIRECTIONS[operation], _DASHES[source],
                            gid=f"{operation} {source}"))  # fmt: skip
    figure = Curves("Latency (µs, ms, s), log scale", "Faster requests (% of all), log scale").draw(_TITLE, curves)
    known = (bins["source"] == "trace").any()
    whose = "latency is of the drive and system on which the trace was captured"
    style.note(figure, f"The trace's {whose}" if known else "The trace has no latencies")
    return figure


@style.styled
def application_durations(application_runs: pd.DataFrame) -> Figure:
    """Draw the duration of each run, a row per application, phase and drive; less is better.

    Filled dots count, hollow ones were cold. The bar is the median of the counted runs, with their number on the right.
    Raises ValueError for unsuitable tables.
    """
    selection.require_one(application_runs, "measurement", "application_runs")
    runs = application_runs.assign(what=[_name(run) for run in application_runs.itertuples()])
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


def _name(run: object) -> str:
    """Return the application, with the turn of a repeated step."""
    value = run.phase_value  # type: ignore[attr-defined]
    application = str(run.application)  # type: ignore[attr-defined]
    return f"{application}, {run.phase} {value}" if isinstance(value, str) else application  # type: ignore[attr-defined]
