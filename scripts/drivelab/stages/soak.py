"""The soak step: one workload without a pause, cut into slices, until a volume or a time is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drivelab.fio.result import CellFailed, FioResult, complete_slices, read_slices
from drivelab.plan.cell import Cell
from drivelab.recording.writer import Recording
from drivelab.stages.cell import Bench
from drivelab.stages.progress import Progress


def run_soak(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Run one fio process for the whole soak; its cumulative status documents are the slices.

    An interrupted soak keeps the slices that fio had printed and goes on with what is left in a further process, so
    `parts` may be several; the journal has a gap between them. Raises CellFailed when the evidence does not hold.
    """
    plan, device, recording = bench.plan, bench.device, bench.recording
    parts = _recover(recording, step)
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
    try:
        directory, facts = bench.run(name, lambda folder: device.run(cell, folder, plan.seed(name), tick))
        slices = read_slices(directory, cell)
    except CellFailed as failure:
        raise CellFailed(f"soak {cell.label} in {name}: {failure}") from None
    recording.append("soak", step=step, first_slice=_next_slice(parts), slices=len(slices), finished=True,
                     workload=cell.to_mapping(), **_amount(slices), **facts)  # fmt: skip


def soak_cell(fields: Mapping[str, Any], capacity_bytes: int, parts: Sequence[Mapping[str, Any]] = ()) -> Cell:
    """What is left of a soak after the parts that the journal has."""
    wanted, until = Cell(**fields["cell"]), fields["until"]
    volume_bytes, runtime_s = None, until.get("time_s")
    if "capacity_multiple" in until:
        whole = int(until["capacity_multiple"] * capacity_bytes)
        volume_bytes = max(whole - sum(part["bytes"] for part in parts), wanted.largest_block_bytes)
    if runtime_s is not None:
        runtime_s = max(runtime_s - sum(part["runtime_s"] for part in parts), wanted.slice_s or 1.0)
    return replace(wanted, volume_bytes=volume_bytes, runtime_s=runtime_s)


def _next_slice(parts: list[dict[str, Any]]) -> int:
    """Number, from 1, of the slice that follows the parts so far."""
    return 1 + sum(int(part["slices"]) for part in parts)


def _amount(slices: list[FioResult]) -> dict[str, Any]:
    return {
        "bytes": sum(one.read.bytes + one.write.bytes for one in slices),
        "runtime_s": round(sum(one.runtime_s for one in slices), 3),
    }


def _recover(recording: Recording, step: int) -> list[dict[str, Any]]:
    """Parts of this soak so far; one that was interrupted is entered into the journal with the slices it had."""
    journal = recording.journal()
    parts = [line for line in journal if line["event"] == "soak" and line["step"] == step]
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
