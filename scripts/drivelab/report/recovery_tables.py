"""Recovery tables: cross stimulus recovery (XSR) and host idle recovery (HIR)."""

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
    """Yield both kinds of tables for every recording; nothing for a test without such steps."""
    all_cells = inputs.frame_of("cells", key)
    for _, cells in all_cells.groupby("recording", sort=False) if len(all_cells) else ():
        suffix = "" if cells["run"].iloc[0] == 1 else f"-run{cells['run'].iloc[0]}"
        yield from _stimulus(inputs, key, cells, suffix)
        yield from _idle(inputs, key, cells, suffix)


def _stimulus(inputs: Inputs, key: Key, cells: pd.DataFrame, suffix: str) -> Iterator[Table]:
    recoveries = cross_stimulus(cells)
    if not recoveries:
        return
    soaks = cells[(cells["kind"] == "soak")].sort_values(["step", "round"])
    parts = [part for _, part in soaks.groupby("step")]
    names = ("Part", "Duration", "Written", "Mean throughput, MiB/s", "First slice, MiB/s", "Last slice, MiB/s",
             "Mean latency, last slice, µs", "Maximum latency, µs")  # fmt: skip
    yield Table(
        id=f"{inputs.anchors[key]}-stimulus{suffix}",
        caption="Cross stimulus recovery (XSR)",
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
        note=" ".join(map(_sentence, recoveries)),
        sources=inputs.sources(cells["recording"]),
    )


def _sentence(recovery: CrossStimulus) -> str:
    """Describe the recovery to both levels: the mean of the PTS, and the settled level."""
    mean = f"its earlier mean throughput ({quantity(recovery.level, 'MiB/s')}, fresh start included)"
    settled = f"its settled level ({quantity(recovery.usual, 'MiB/s')} or more)"
    to_mean = f"recovered to {mean} {_within(recovery.recovery)}" if recovery.recovery else f"NOT recovered to {mean}"
    to_settled = f"back at {settled} {_within(recovery.settled)}" if recovery.settled else f"NOT back at {settled}"
    return f"{recovery.workload} after {recovery.stimulus}: {to_mean}; {to_settled}."


def _within(recovery: StimulusRecovery) -> str:
    earlier = ", or earlier in an excluded slice" * recovery.at_most
    return f"within {duration(recovery.time_s)}, in slice {recovery.slice_number}{earlier}"


def _idle(inputs: Inputs, key: Key, cells: pd.DataFrame, suffix: str) -> Iterator[Table]:
    waits = idle_recovery(cells[cells["phase_value"].notna() | (cells["kind"] == "soak")])
    waits = waits[waits["phase_value"].notna()]
    if waits.empty:
        return
    names = ("Idle before each burst", "Bursts", "Mean of the bursts, IOPS", "First burst, IOPS", "Last burst, IOPS",
             "Baseline before, IOPS", "Mean to baseline")  # fmt: skip
    yield Table(
        id=f"{inputs.anchors[key]}-idle{suffix}",
        caption="Host idle recovery (HIR)",
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
        note="The first burst follows the baseline without idle time and is excluded. Baseline: average of the last "
        "fifth of the preceding stretch without pauses. A ratio above 1 shows what the drive gained in idle time. "
        + taint_note(cells.to_dict("records")),
        sources=inputs.sources(cells["recording"]),
    )
