"""Tables of recovery: from another workload, and in idle time."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from drivelab.analysis.recovery import CrossStimulus, StimulusRecovery, cross_stimulus, idle_recovery
from drivelab.report.inputs import Inputs, Key
from drivelab.report.number_cells import duration_cell, number_cell, size_cell, value_cell
from drivelab.report.numbers import DASH, duration, is_missing, quantity
from drivelab.report.taint import taint_note
from drivelab.report.view import Cell, Column, Table


def recovery_tables(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Both kinds, of every recording; none where a test has no such steps."""
    every = inputs.frame_of("cells", key)
    for _, cells in every.groupby("recording", sort=False) if len(every) else ():
        suffix = "" if cells["run"].iloc[0] == 1 else f"-run{cells['run'].iloc[0]}"
        yield from _stimulus(inputs, key, cells, suffix)
        yield from _idle(inputs, key, cells, suffix)


def _stimulus(inputs: Inputs, key: Key, cells: pd.DataFrame, suffix: str) -> Iterator[Table]:
    found = cross_stimulus(cells)
    if not found:
        return
    soaks = cells[(cells["kind"] == "soak")].sort_values(["step", "round"])
    parts = [part for _, part in soaks.groupby("step")]
    names = ("Part", "Duration", "Written", "Mean throughput, MiB/s", "First slice, MiB/s", "Last slice, MiB/s",
             "Mean latency, last slice, µs", "Maximum latency, µs")  # fmt: skip
    yield Table(
        id=f"{inputs.anchors[key]}-stimulus{suffix}",
        caption="Recovery from another workload",
        columns=tuple(Column(name, numeric=place > 0) for place, name in enumerate(names)),
        rows=tuple(
            (
                Cell(f"Part {place}", small=str(part["workload"].iloc[0])),
                duration_cell(part["runtime_s"].sum()),
                size_cell(part["bytes_written"].sum()),
                value_cell((part["bandwidth_mib_s"] * part["runtime_s"]).sum() / part["runtime_s"].sum()),
                value_cell(part["bandwidth_mib_s"].iloc[0]),
                value_cell(part["bandwidth_mib_s"].iloc[-1]),
                value_cell(part["mean_latency_us"].iloc[-1]),
                value_cell(part["max_latency_us"].max()),
            )
            for place, part in enumerate(parts, start=1)
        ),
        note=" ".join(map(_words, found)),
        sources=inputs.sources(cells["recording"]),
    )


def _words(one: CrossStimulus) -> str:
    """Of both levels: the mean of the PTS, and what the drive had settled at."""
    mean = f"its mean throughput of before ({quantity(one.level, 'MiB/s')}, the fresh start counted)"
    usual = f"what it had settled at ({quantity(one.usual, 'MiB/s')} or more)"
    by_mean = f"recovered to {mean} {_within(one.recovery)}" if one.recovery else f"NOT recovered to {mean}"
    as_usual = f"back at {usual} {_within(one.settled)}" if one.settled else f"NOT back at {usual}"
    return f"{one.workload} after {one.stimulus}: {by_mean}; {as_usual}."


def _within(recovery: StimulusRecovery) -> str:
    left_out = ", or before, in one that is left out" * recovery.at_most
    return f"within {duration(recovery.time_s)}, in slice {recovery.slice_number}{left_out}"


def _idle(inputs: Inputs, key: Key, cells: pd.DataFrame, suffix: str) -> Iterator[Table]:
    waits = idle_recovery(cells[cells["phase_value"].notna() | (cells["kind"] == "soak")])
    waits = waits[waits["phase_value"].notna()]
    if waits.empty:
        return
    names = ("Idle before each burst", "Bursts", "Mean of the bursts, IOPS", "First burst, IOPS", "Last burst, IOPS",
             "Baseline before, IOPS", "Mean to baseline")  # fmt: skip
    yield Table(
        id=f"{inputs.anchors[key]}-idle{suffix}",
        caption="Recovery in idle time",
        columns=tuple(Column(name, numeric=place > 0) for place, name in enumerate(names)),
        rows=tuple(
            (
                duration_cell(row.wait_s),
                number_cell(row.bursts),
                value_cell(row.mean_iops),
                value_cell(row.first_iops),
                value_cell(row.last_iops),
                value_cell(row.baseline_iops),
                Cell(DASH if is_missing(row.ratio) else f"{row.ratio:.2f}"),
            )
            for row in waits.itertuples()
        ),
        note="The burst that follows the baseline at once, without idle time before it, is left out. Baseline: what "
        "the stretch without pauses before settled at, its last fifth. A ratio above 1 is what the drive gained in "
        "idle time. " + taint_note(cells.to_dict("records")),
        sources=inputs.sources(cells["recording"]),
    )
