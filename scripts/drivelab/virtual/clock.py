"""A virtual drive on a virtual clock: stands in for fio, deterministic, with a state that outlives the process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from random import Random

from drivelab.errors import UserError
from drivelab.fio.early_end import StopRule
from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell
from drivelab.replay.records import MOST_IN_FLIGHT
from drivelab.replay.streams import composite_text
from drivelab.virtual.evidence import write_evidence
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual.replaying import replay_schedule
from drivelab.virtual.workload import Completion, closed_loop

ENGINE = "virtual-clock"
_FORMAT = 1


class VirtualClockDrive:
    """One drive, used by one process at a time; every method leaves the new state in the file.

    A file with the state of another model is that of another drive: this one starts as never used.
    Raises UserError if the file cannot be read as a state.
    """

    def __init__(self, model: DriveModel, state_file: Path) -> None:
        self.model = model
        self._file = state_file
        self._flash = FlashDrive(model)
        self._now_us = 0.0
        if state_file.exists():
            self._load()

    @property
    def now_us(self) -> float:
        """Virtual time since the drive was new."""
        return self._now_us

    def counters(self) -> dict[str, int]:
        """As `FlashDrive.counters`."""
        return self._flash.counters()

    def run(self, cell: Cell, directory: Path, until: StopRule | None = None) -> None:
        """Run a cell and leave in `directory` (which exists) what fio would leave; with `until`, to the end of the
        slice after which that rule says so.

        Raises UserError if the active range is too small for the cell.
        """
        seed = f"{self.model.seed}/{self._now_us!r}"
        text = job_text if cell.streams is None else composite_text
        place = (self.model.capacity_bytes, self.model.logical_block_bytes)
        job = text(cell, self.model.serial, ENGINE, *place, self.model.seed)
        completions = closed_loop(self._flash, cell, self._now_us, Random(seed))
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
        """Replay a schedule (drivelab.replay.records) and leave `results.bin` in `directory`, which exists.

        The limits and the errors are those of `drivelab.virtual.replaying.replay_schedule`.
        """
        course = replay_schedule(
            self._flash, schedule, directory / "results.bin", self._now_us,
            depth_limit=depth_limit, runtime_s=runtime_s, requests=requests,
        )  # fmt: skip
        self._now_us = max(self._now_us + course.end_ns / 1000, self._flash.active_until_us)
        self._save()

    def purge(self) -> None:
        """As if never written."""
        self._flash.purge(self._now_us)
        self._save()

    def flush(self) -> None:
        """Have what is in the write buffer programmed."""
        self._now_us = self._flash.submit(self._now_us, "flush", 0, 0)
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
        """Let time pass as the completions say; a replay may end with a flush, which is none of them."""
        end_us = write_evidence(directory, completions, start_us=self._now_us, threads=threads, job=job,
                                slice_s=slice_s, until_s=until_s, until=until, least_s=least_s)  # fmt: skip
        self._now_us = max(end_us, self._flash.active_until_us)
        self._save()

    def _save(self) -> None:
        head = {"format": _FORMAT, "model": self.model.to_mapping(), "now_us": self._now_us}
        temporary = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        temporary.write_bytes(json.dumps(head).encode() + b"\n" + self._flash.dump())
        temporary.replace(self._file)

    def _load(self) -> None:
        head, _, flash = self._file.read_bytes().partition(b"\n")
        try:
            facts = json.loads(head)
            if facts["format"] != _FORMAT:
                raise ValueError(f"it is of format {facts['format']}, not {_FORMAT}")
            if facts["model"] == self.model.to_mapping():
                self._flash.load(flash)
                self._now_us = float(facts["now_us"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self._file}: is no state of a virtual drive ({error}); delete it, and the drive counts as new"
            ) from None
