"""The soak step: one continuous workload, cut into slices, until a volume, a time or steady state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from drivelab.analysis.foreign_writes import own_writes
from drivelab.errors import UserError
from drivelab.fio.early_end import ended_early
from drivelab.fio.result import CellFailed, FioResult, complete_slices, read_slices
from drivelab.plan.cell import Cell
from drivelab.recording.writer import Recording
from drivelab.stages.cell import Bench
from drivelab.stages.points import resolved
from drivelab.stages.progress import Progress
from drivelab.stages.steady_soak import SteadySlices


def run_soak(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Run one fio process for the whole soak.

    Its cumulative status documents are the slices. An interrupted soak keeps the slices that fio had printed, and
    another process continues with the rest. So there may be several `parts`, with a gap in the journal between them. On
    the virtual clock an interruption is undone, and the soak restarts. Steady state ends the process early; its window
    lies within one part. Raises CellFailed when the evidence is invalid.
    """
    fields = resolved(bench, fields)
    plan, device, recording = bench.plan, bench.device, bench.recording
    parts = _recover(recording, step, undone=device.undoes)
    if any(part["finished"] for part in parts):
        return
    cell = soak_cell(fields, device.capacity_bytes, parts)
    name = f"cells/{step}-soak-part{len(parts) + 1}"
    written_before = device.sectors_written()

    def tick(elapsed_s: float) -> None:
        shares = [elapsed_s / cell.runtime_s] if cell.runtime_s else []
        if cell.volume_bytes and cell.read_share == 0:
            shares.append((device.sectors_written() - written_before) * 512 / cell.volume_bytes)
        progress.say(f"soak {cell.label}, {elapsed_s:.0f} s, {max(shares, default=0.0):.0%}", max(shares, default=0.0))

    progress.say(f"soak {cell.label}", 0.0)
    recording.append("soak-begins", step=step, directory=name, workload=cell.to_mapping(),
                     started_s=bench.telemetry.now_s())  # fmt: skip
    rule = _rule(fields["until"], cell)
    try:
        directory, facts = bench.run(name, lambda folder: device.run(cell, folder, plan.seed(name), tick, rule))
        slices = read_slices(directory, cell)
    except CellFailed as failure:
        raise CellFailed(f"soak {cell.label} in {name}: {failure}") from None
    first = _next_slice(parts)
    recording.append("soak", step=step, first_slice=first, slices=len(slices), finished=True,
                     workload=cell.to_mapping(), **_amount(slices), **_end(rule, directory, cell, slices, first),
                     **own_writes(sum(part.write.bytes for part in slices)), **facts)  # fmt: skip


def soak_cell(fields: Mapping[str, Any], capacity_bytes: int, parts: Sequence[Mapping[str, Any]] = ()) -> Cell:
    """Return the cell for the rest of a soak after the journal's `parts`."""
    wanted, until = Cell(**fields["cell"]), fields["until"]
    volume_bytes, runtime_s = None, until.get("time_s")
    if "capacity_multiple" in until:
        whole = int(until["capacity_multiple"] * capacity_bytes)
        volume_bytes = max(whole - sum(part["bytes"] for part in parts), wanted.largest_block_bytes)
    if volume_bytes is None and runtime_s is None:
        raise UserError(
            f"soak {wanted.label}: without steady state this soak would wear the drive for ever; "
            "add a time or a capacity_multiple to `until`"
        )
    if runtime_s is not None:
        runtime_s = max(runtime_s - sum(part["runtime_s"] for part in parts), wanted.slice_s or 1.0)
    return replace(wanted, volume_bytes=volume_bytes, runtime_s=runtime_s)


def _rule(until: Mapping[str, Any], cell: Cell) -> SteadySlices | None:
    if "steady_state" not in until:
        return None
    if cell.slice_s is None:
        raise ValueError(f"soak {cell.label}: steady state needs slices")
    return SteadySlices(until["steady_state"], cell.slice_s)


def _end(
    rule: SteadySlices | None, directory: Path, cell: Cell, slices: Sequence[FioResult], first_slice: int
) -> dict[str, Any]:
    """Return the journal's facts on the end of a soak with a steady-state rule: reason, and window by slice number."""
    if rule is None:
        return {}
    if (reason := ended_early(directory)) is not None:
        window = [{"slice": first_slice + number - 1, "value": value} for number, value in rule.window.items()]
        return {"ended_by": reason, "window": window}
    volume = cell.volume_bytes is not None and _amount(slices)["bytes"] > cell.volume_bytes - (
        cell.total_threads * cell.largest_block_bytes
    )
    return {"ended_by": "volume" if volume else "time"}


def _next_slice(parts: Sequence[Mapping[str, Any]]) -> int:
    """Return the number, from 1, of the first slice after `parts`."""
    return 1 + sum(int(part["slices"]) for part in parts)


def _amount(slices: Sequence[FioResult]) -> dict[str, Any]:
    return {
        "bytes": sum(part.read.bytes + part.write.bytes for part in slices),
        "runtime_s": round(sum(part.runtime_s for part in slices), 3),
    }


def _recover(recording: Recording, step: int, *, undone: bool) -> list[dict[str, Any]]:
    """Return the parts of this soak so far.

    Append an interrupted part with its slices to the journal. If the interruption was `undone`, nothing is appended.
    """
    journal = recording.journal()
    parts = [line for line in journal if line["event"] == "soak" and line["step"] == step]
    if undone:
        return parts
    known = {part["directory"] for part in parts}
    for line in journal:
        if line["event"] == "soak-begins" and line["step"] == step and line["directory"] not in known:
            slices = complete_slices(recording.part / line["directory"])
            part = {"step": step, "first_slice": _next_slice(parts), "slices": len(slices), "finished": False,
                    "directory": line["directory"], "workload": line["workload"],
                    "started_s": line.get("started_s"), **_amount(slices)}  # fmt: skip
            recording.append("soak", **part)
            parts.append(part)
    return parts
