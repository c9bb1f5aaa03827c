"""Replay on a target with verification of what its reads return."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from made_traces import Row
from prepared_replays import prepare_rows
from replay_files import BLOCK, capacity, identity

from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay import native
from drivelab.replay.engine_records import open_schedule
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.replay.outcome import OUTCOME_FILE, write_outcome
from drivelab.replay.prefill import check_prefill, prefill_options, prefill_schedule
from drivelab.replay.prepare import Prepared
from drivelab.replay.verify.data_requests import DATA, PREFILLED
from drivelab.replay.verify.read_origins import ORIGINS, read_origins
from drivelab.replay.verify.verification import verify
from drivelab.replay.volumes import ONLY

SEED = 2**63 + 11
OPTIONS = EngineOptions(watchdog_s=60, seed=SEED, exact_data=True)


class Bench:
    """Runs verified replays on one target, with files in one folder."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder, self.target = folder, target

    def prepare(self, rows: list[Row], choice: ReplayChoice, block_bytes: int = BLOCK) -> Prepared:
        return prepare_rows(self.folder, rows, choice, capacity(self.target), block_bytes)

    def run(self, prepared: Prepared, options: EngineOptions = OPTIONS, **more: Any) -> None:
        native.run_engine(str(self.target), identity(self.target), prepared.schedule, self.folder, options, **more)

    def words(self, prepared: Prepared) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return read_origins(self.folder / ORIGINS, prepared.requests)

    def prefill(self, prepared: Prepared, options: EngineOptions = OPTIONS) -> EngineOptions:
        """Write what the schedule reads; return the options for its replay."""
        folder = self.folder / "prefill"
        folder.mkdir()
        prefill_schedule(prepared.schedule, folder / "schedule")
        first = prefill_options(options, {"seed": SEED}, prepared.schedule)
        native.run_engine(str(self.target), identity(self.target), folder / "schedule", folder, first)
        check_prefill(folder)
        assert not list(folder.glob("*.bin"))
        return replace(options, prefilled=open_schedule(folder / "schedule").header["count"])

    def verified(self, prepared: Prepared, block_bytes: int = BLOCK, *, prefilled: bool = False) -> dict[str, Any]:
        made = {"seed": SEED, "block_bytes": block_bytes, **({PREFILLED: [ONLY]} if prefilled else {})}
        about = {"engine": "native", DATA: made}
        write_outcome(prepared.planned, self.folder / RESULTS, self.folder / OUTCOME_FILE, about)
        return verify({ONLY: str(self.target)}, self.folder / OUTCOME_FILE)[ONLY]
