"""Write a results folder that grows as during a run, without a drive."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.plan.plan import Plan
from drivelab.run.progress import Status
from drivelab.trace.capturing.capture_report import boot_id, started
from drivelab.watch.study_view import StudyFacts

CELLS = [
    {"pattern": "random", "block_size_bytes": 4096, "read_share": share, "threads": 2, "queue_depth": 8,
     "runtime_s": 60.0} for share in (0, 100)
]  # fmt: skip
UNTIL = {"window": 5, "data_excursion": 0.2, "slope_excursion": 0.1, "max_rounds": 25,
         "track": [{"read_share": 0, "block_size_bytes": 4096, "metric": "iops"}]}  # fmt: skip
NOW_S = 1_800_000_000.0


class MadeDrive:
    """Writes the files of the stages of one drive."""

    def __init__(
        self, results: Path, drive: str, clock: str = "wall", at_s: float = NOW_S, measurement: str = "pts-iops"
    ) -> None:
        self.results, self.drive = results, drive
        subject = {
            "clock": clock, "protocol": "pts-iops", "drive": {"serial": "S1"},
            "measure": [{"loop": {"cells": CELLS, "until": UNTIL}}],
        }  # fmt: skip
        context = {"drive": drive, "measurement": measurement, "run": 1, "results": str(results), "device": "/dev/sdz"}
        self.plan = Plan(subject, context)
        self.recording = self.plan.recording
        self.final = self.plan.recording_path
        self.part = self.final.with_name(self.final.name + ".part")
        self.counters = dict.fromkeys(
            ("reads", "writes", "sectors_read", "sectors_written", "read_ms", "write_ms"), 0.0
        )
        self.at_s = at_s
        self.place = "telemetry.jsonl"
        """Path of the telemetry file in the recording."""

    def precondition(self, seconds: int = 3, writes: int = 500) -> MadeDrive:
        """Write the files of the stages before the measurement, with `writes` writes per second."""
        self.part.mkdir(parents=True)
        (self.part / "plan.json").write_text(self.plan.to_json())
        self.journal("purge", method="auto")
        self.place = "condition/telemetry.jsonl"
        self.telemetry(event="begin", sources=["host", "sectors"])
        for _ in range(seconds + 1):
            self.second(writes)
        self.telemetry(event="end")
        self.place = "telemetry.jsonl"
        return self

    def begin(self) -> MadeDrive:
        self.part.mkdir(parents=True, exist_ok=True)
        (self.part / "plan.json").write_text(self.plan.to_json())
        self.telemetry(event="begin", sources=["host", "sectors"])
        self.journal("measure")
        return self

    def status(self, text: str = "round 1", fraction: float = 0.1, **changes: Any) -> None:
        """Write a status; by default it is that of this process, which is running."""
        process = f"{started(os.getpid())}@{Path('/proc/self/ns/pid').stat().st_ino}"
        status = Status(self.recording, "measure", text, fraction, os.getpid(), time.time(), since_s=time.time() - 10,
                        host=os.uname().nodename, boot_id=boot_id(), process=process)  # fmt: skip
        path = self.results / "status" / f"{self.drive}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{self.drive}")
        temporary.write_text(json.dumps({**asdict(status), **changes}))
        temporary.replace(path)

    def telemetry(self, **fields: Any) -> None:
        path = self.part / self.place
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps({"at_s": self.at_s, **fields}) + "\n")

    def second(self, writes: int = 1000, block_bytes: int = 4096, latency_ms: float = 2.0, **fields: float) -> None:
        """Advance by a second in which `writes` writes complete."""
        self.at_s += 1
        self.counters["writes"] += writes
        self.counters["sectors_written"] += writes * block_bytes / 512
        self.counters["write_ms"] += writes * latency_ms
        self.telemetry(**self.counters, **fields)

    def journal(self, event: str, **fields: Any) -> None:
        self.part.mkdir(parents=True, exist_ok=True)
        at = datetime.fromtimestamp(self.at_s, UTC).isoformat(timespec="milliseconds")
        with (self.part / "journal.jsonl").open("a") as file:
            file.write(json.dumps({"event": event, "at": at, **fields}) + "\n")

    def cell(self, round_number: int, cell: int, iops: float, **fields: Any) -> None:
        metrics = {"iops": iops, "bandwidth_mib_s": iops / 256, "mean_latency_us": 1e6 * 16 / iops}
        self.journal("cell", step=0, round=round_number, cell=cell, workload=CELLS[cell], metrics=metrics, **fields)

    def complete(self) -> None:
        self.journal("complete")
        (self.part / "recording.json").write_text("{}")
        self.part.rename(self.final)
        self.status("done", 1.0, state="done")


def facts(results: Path, *drives: MadeDrive) -> StudyFacts:
    """Return the facts of a study with one recording per argument; a drive may occur several times."""
    return StudyFacts("made", "A made study", results, tuple(dict.fromkeys(made.drive for made in drives)),
                      {made.recording: True for made in drives})  # fmt: skip
