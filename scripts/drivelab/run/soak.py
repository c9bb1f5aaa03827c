"""The soak step: one continuous workload, cut into slices, until a volume, a time or steady state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed, UserError
from drivelab.criteria.steady_state import is_steady
from drivelab.criteria.taint import own_writes
from drivelab.fio.document import Direction, FioResult, from_document
from drivelab.fio.early_end import ended_early
from drivelab.fio.result import complete_slices, read_slices
from drivelab.fio.series import boundaries, completed, difference
from drivelab.plan.cell import TRIM, Cell
from drivelab.recording.writer import Recording
from drivelab.run.fio_cell import Bench, metrics
from drivelab.run.points import resolved
from drivelab.run.progress import Progress

STEADY_STATE = "steady state"


class SteadySlices:
    """A stop rule (drivelab.fio.early_end) for one fio process: steady state over a window of its slices.

    Each `every_s` gives one value, that of its last slice. Slices from before the process, or before a gap in an
    interrupted soak, are never in the window.
    """

    def __init__(self, criterion: Mapping[str, Any], slice_s: float) -> None:
        """Start with the `criterion` of a plan: every_s, window, data_excursion, slope_excursion, metric.

        Raises ValueError if `every_s` is not a multiple of `slice_s`.
        """
        self._criterion, self._minimum_s = criterion, slice_s / 2
        every = criterion["every_s"] / slice_s
        self._every = round(every)
        if not self._every or not math.isclose(every, self._every, rel_tol=1e-6):
            raise ValueError(f"{criterion['every_s']:g} s is not a multiple of a slice of {slice_s:g} s")
        self._results: list[FioResult] = []
        self._runtimes_s: list[float] = []
        self.window: dict[int, float] = {}
        """Window of a steady soak: values by slice number, from 1 in this process."""

    def __call__(self, document: Mapping[str, Any]) -> str | None:
        """Return STEADY_STATE if the soak is steady, else None; raises CellFailed for a document with an error."""
        result = completed(_without_bins(from_document(document)))
        self._results.append(result)
        self._runtimes_s.append(result.runtime_s)
        ends = boundaries(self._runtimes_s, self._minimum_s)
        rounds, rest = divmod(len(ends), self._every)
        if rest or rounds < self._criterion["window"]:
            return None
        numbers = [self._every * (number + 1) for number in range(rounds - self._criterion["window"], rounds)]
        values = [metrics(self._slice(ends, number))[self._criterion["metric"]] for number in numbers]
        if not all(math.isfinite(value) and value > 0 for value in values):
            return None  # a slice without I/O is not steady, and an average of 0 allows no relative excursion
        if not is_steady({self._criterion["metric"]: values}, self._criterion):
            return None
        self.window = dict(zip(numbers, values, strict=True))
        return STEADY_STATE

    def _slice(self, ends: list[int], number: int) -> FioResult:
        new = self._results[ends[number - 1]]
        return new if number == 1 else difference(self._results[ends[0]], self._results[ends[number - 2]], new)


def _without_bins(result: FioResult) -> FioResult:
    """Remove latency bins: they fill most of a document, no metric needs them, and thousands would be kept."""
    return replace(result, read=_lean(result.read), write=_lean(result.write))


def _lean(direction: Direction) -> Direction:
    return replace(direction, bins={})


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
        directory, facts = bench.run(
            name, lambda folder: device.run(cell, folder, plan.seed(name), tick, rule), counted=not cell.nvme
        )
        slices = read_slices(directory, cell)
    except CellFailed as failure:
        raise CellFailed(f"soak {cell.label} in {name}: {failure}") from None
    first = _next_slice(parts)

    def moved(direction: str) -> int:
        return sum(getattr(part, direction).bytes for part in slices)

    recording.append("soak", step=step, first_slice=first, slices=len(slices), finished=True,
                     workload=cell.to_mapping(), **_amount(slices), **_end(rule, directory, cell, slices, first),
                     **own_writes(*(moved(name) for name in ("write", TRIM)), read=moved("read")),
                     **facts)  # fmt: skip


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
        "bytes": sum(part.bytes for part in slices),
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
