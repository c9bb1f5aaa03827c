"""A virtual drive on a virtual clock: replaces fio, is deterministic, and keeps its state in a file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from drivelab.core.errors import CellFailed, UserError
from drivelab.core.files import write_atomic
from drivelab.fio.cell_evidence import EPOCH_MS, write_evidence
from drivelab.fio.early_end import StopRule
from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import directions_of, workloads_of
from drivelab.plan.replay_choice import MOST_IN_FLIGHT
from drivelab.telemetry.sampler import FAST_S, NAME, Log, read_lines
from drivelab.virtual.faults import Answering, DriveFailed, FaultyDrive, read_faults
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.workload import closed_loop

SOURCE = "virtual clock"


class Telemetry:
    """Samples from `now_us` on, at the interval of real telemetry and at the end of each cell.

    Samples are written together with the state of the drive. After an interruption, samples later than the restored
    state are removed, because the cell that they belong to was undone. Sampling then continues without a gap.
    """

    def __init__(self, flash: FlashDrive, recording: Path, now_us: float) -> None:
        lines = [line for line in read_lines(recording) if line["at_s"] <= _unix_s(now_us)]
        if lines:
            kept = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
            write_atomic(recording / NAME, kept)
        self._flash, self._log = flash, Log(recording / NAME)
        self._samples: list[dict[str, float]] = []
        self._last_s = max((line["at_s"] for line in lines if "event" not in line), default=-math.inf)
        begin_us = 1e6 * lines[0]["at_s"] - 1e3 * EPOCH_MS if lines else now_us
        self._next_us = begin_us + 1e6 * FAST_S * math.ceil((now_us - begin_us) / (1e6 * FAST_S))
        flash.before_command = self._sample_until
        self._log.append({"at_s": _unix_s(now_us), "event": "begin", "sources": [SOURCE]})
        self.keep(now_us)

    def keep(self, now_us: float) -> None:
        """Write the samples until now."""
        self._sample_until(now_us)
        if self._last_s < _unix_s(now_us):
            self._sample(now_us)
        for sample in self._samples:
            self._log.append(sample)
        self._samples = []

    def close(self, now_us: float) -> None:
        """End the telemetry; drop the samples that were not written, because their work is undone."""
        self._flash.before_command = None
        self._log.append({"at_s": _unix_s(now_us), "event": "end"})
        self._log.close()

    def _sample_until(self, until_us: float) -> None:
        while self._next_us <= until_us:
            if self._last_s < _unix_s(self._next_us):
                self._sample(self._next_us)
            self._next_us += 1e6 * FAST_S

    def _sample(self, at_us: float) -> None:
        self._last_s = _unix_s(at_us)
        self._samples.append({"at_s": self._last_s, **self._flash.told(at_us)})


def _unix_s(at_us: float) -> float:
    return round(EPOCH_MS / 1000 + at_us / 1e6, 6)


ENGINE = "virtual-clock"
_FORMAT = 2


@contextmanager
def _failing() -> Iterator[None]:
    """Turn a fault into the failure of a fio cell."""
    try:
        yield
    except DriveFailed as failure:
        raise CellFailed(str(failure)) from None


class VirtualClockDrive:
    """One drive, used by one process at a time; every method saves the new state in the file.

    If the file holds the state of another model, the drive starts as new. Raises UserError if the file is no valid
    state.

    `place` returns the last line of the journal that the drive is used for, if any. Work after that line has no line
    yet. The state before this work is kept next to the file. If the drive is opened again at the same place, this older
    state applies, so work that the journal does not contain is undone.
    """

    def __init__(self, model: DriveModel, state_file: Path, place: Callable[[], str | None] = lambda: None) -> None:
        self.model = model
        self._file, self._before, self._place = state_file, state_file.with_suffix(".before"), place
        self._flash = FlashDrive(model)
        self._now_us = 0.0
        self.left_at: str | None = None
        """Place in the journal at which the state in the file was saved."""
        self._telemetry: Telemetry | None = None
        if state_file.exists():
            self._load()
            self._undo_unrecorded_work()

    @property
    def now_us(self) -> float:
        """Virtual time since the drive was new."""
        return self._now_us

    def counters(self) -> dict[str, int]:
        """Return `FlashDrive.counters`."""
        return self._flash.counters()

    @contextmanager
    def telling(self, recording: Path) -> Iterator[None]:
        """Record the drive's telemetry in a recording within the context, if the model has an effect that reports."""
        if not self._flash.told(self._now_us):
            yield
            return
        self._telemetry = Telemetry(self._flash, recording, self._now_us)
        try:
            yield
        finally:
            self._telemetry.close(self._now_us)
            self._telemetry = None

    def run(self, cell: Cell, directory: Path, until: StopRule | None = None) -> None:
        """Run a cell and write fio's output files to the existing `directory`.

        With `until`, the run ends with the slice after which that stop rule applies. Raises UserError if the active
        range is too small for the cell.
        """
        seed = f"{self.model.seed}/{self._now_us!r}"
        geometry = (self.model.capacity_bytes, self.model.logical_block_bytes)
        job = job_text(cell, self.model.serial, ENGINE, *geometry, self.model.seed)
        completions = closed_loop(self._answering, cell, self._now_us, Random(seed))
        workloads = workloads_of(cell)
        apart = len(workloads) > 1 and directions_of(cell) is None
        threads = tuple(workload.threads for workload in workloads) if apart else (cell.total_threads,)
        rated = any(workload.rate_iops is not None for workload in workloads) and cell.volume_bytes is None
        least_s = cell.runtime_s if rated and cell.runtime_s is not None else 0.0
        with _failing():
            end_us = write_evidence(directory, completions, start_us=self._now_us, threads=threads, job=job,
                                    slice_s=cell.slice_s, until_s=cell.runtime_s, until=until,
                                    least_s=least_s)  # fmt: skip
        self._now_us = max(end_us, self._flash.active_until_us)
        self._save()

    def replay_schedule(
        self,
        schedule: Path,
        directory: Path,
        *,
        depth_limit: int = MOST_IN_FLIGHT,
        runtime_s: float | None = None,
    ) -> None:
        """Replay a schedule (drivelab.replay.engine_records) and write `results.bin` to the existing `directory`.

        Limits and errors as in `drivelab.virtual_clock.replaying.replay_schedule`.
        """
        from drivelab.virtual_clock.replaying import replay_schedule  # imports pyarrow, which is slow

        with _failing():
            course = replay_schedule(
                self._answering, schedule, directory / "results.bin", self._now_us,
                depth_limit=depth_limit, runtime_s=runtime_s,
            )  # fmt: skip
        self._now_us = max(self._now_us + course.end_ns / 1000, self._flash.active_until_us)
        self._save()

    def purge(self, now_us: float = 0.0) -> None:
        """Reset the drive to new, except for its lifetime counters, and set the clock to `now_us`.

        So nothing after a purge depends on anything before it.
        """
        self._flash.purge(self._now_us)
        self._flash.reset(now_us)
        self._now_us = now_us
        self._save()

    def flush(self) -> None:
        """Program the content of the write buffer; raises CellFailed if a fault hits the flush."""
        with _failing():
            self._now_us = self._answering.submit(self._now_us, "flush", 0, 0)
        self._save()

    def idle(self, seconds: float) -> None:
        """Let time pass without a request."""
        self._now_us += 1e6 * seconds
        self._flash.advance(self._now_us)
        self._save()

    @property
    def _answering(self) -> Answering:
        """The drive with the current faults."""
        faults = read_faults(self._file)
        return FaultyDrive(self._flash, faults) if faults else self._flash

    def _save(self) -> None:
        place = self._place()
        head = {"format": _FORMAT, "model": self.model.to_mapping(), "now_us": self._now_us, "left_at": place}
        if place != self.left_at:  # a kill from here to the last line leaves the old state or the new one
            self._before.unlink(missing_ok=True)
            if self._file.exists():
                os.link(self._file, self._before)
            self.left_at = place
        write_atomic(self._file, json.dumps(head).encode() + b"\n" + self._flash.dump())
        if self._telemetry is not None:
            self._telemetry.keep(self._now_us)

    def _undo_unrecorded_work(self) -> None:
        """Restore the state before the work at the last place; without a file of that state the drive was new."""
        if self.left_at is None or self.left_at != self._place():
            return
        self._flash, self._now_us, self.left_at = FlashDrive(self.model), 0.0, None
        if self._before.exists():
            self._before.replace(self._file)
            self._load()
        else:
            self._file.unlink()

    def _load(self) -> None:
        head, _, flash = self._file.read_bytes().partition(b"\n")
        try:
            facts = json.loads(head)
            if facts["format"] != _FORMAT:
                raise ValueError(f"its format is {facts['format']}, not {_FORMAT}")
            if facts["model"] == self.model.to_mapping():
                self._flash.load(flash)
                self._now_us, self.left_at = float(facts["now_us"]), facts.get("left_at")
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self._file}: is not the state of a virtual drive ({error}); delete it to start with a new drive"
            ) from None
