"""A virtual drive on a virtual clock: replaces fio, is deterministic, and keeps its state in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from drivelab.errors import UserError
from drivelab.fio.document import CellFailed
from drivelab.fio.early_end import StopRule
from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell
from drivelab.replay.records import MOST_IN_FLIGHT
from drivelab.replay.streams import composite_text
from drivelab.virtual.evidence import write_evidence
from drivelab.virtual.faults import Answering, DriveFailed, FaultyDrive, read_faults
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual.replaying import replay_schedule
from drivelab.virtual.telemetry import Telemetry
from drivelab.virtual.workload import Completion, closed_loop

ENGINE = "virtual-clock"
_FORMAT = 1


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
        text = job_text if cell.streams is None else composite_text
        geometry = (self.model.capacity_bytes, self.model.logical_block_bytes)
        job = text(cell, self.model.serial, ENGINE, *geometry, self.model.seed)
        completions = closed_loop(self._answering, cell, self._now_us, Random(seed))
        rated = cell.rate_iops is not None and cell.volume_bytes is None
        least_s = cell.runtime_s if rated and cell.runtime_s is not None else 0.0
        self._record(
            completions, directory, cell.total_threads, job, cell.slice_s, cell.runtime_s, until, least_s=least_s
        )

    def replay_schedule(
        self,
        schedule: Path,
        directory: Path,
        *,
        depth_limit: int = MOST_IN_FLIGHT,
        runtime_s: float | None = None,
        requests: int | None = None,
    ) -> None:
        """Replay a schedule (drivelab.replay.records) and write `results.bin` to the existing `directory`.

        Limits and errors as in `drivelab.virtual.replaying.replay_schedule`.
        """
        with _failing():
            course = replay_schedule(
                self._answering, schedule, directory / "results.bin", self._now_us,
                depth_limit=depth_limit, runtime_s=runtime_s, requests=requests,
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

    def _record(
        self,
        completions: Iterable[Completion],
        directory: Path,
        threads: int,
        job: str,
        slice_s: float | None = None,
        until_s: float | None = None,
        until: StopRule | None = None,
        least_s: float = 0.0,
    ) -> None:
        """Write the evidence and advance the clock; a replay may end with a flush, which is not a completion."""
        with _failing():
            end_us = write_evidence(directory, completions, start_us=self._now_us, threads=threads, job=job,
                                    slice_s=slice_s, until_s=until_s, until=until, least_s=least_s)  # fmt: skip
        self._now_us = max(end_us, self._flash.active_until_us)
        self._save()

    @property
    def _answering(self) -> Answering:
        """The drive with the current faults."""
        faults = read_faults(self._file)
        return FaultyDrive(self._flash, faults) if faults else self._flash

    def _save(self) -> None:
        place = self._place()
        head = {"format": _FORMAT, "model": self.model.to_mapping(), "now_us": self._now_us, "left_at": place}
        temporary = self._file.with_name(f".{self._file.name}.part")
        temporary.write_bytes(json.dumps(head).encode() + b"\n" + self._flash.dump())
        if place != self.left_at:  # a kill from here to the last line leaves the old state or the new one
            self._before.unlink(missing_ok=True)
            if self._file.exists():
                os.link(self._file, self._before)
            self.left_at = place
        temporary.replace(self._file)
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
