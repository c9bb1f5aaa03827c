"""The idle step: time without I/O, for the drive's background work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.process import Timing
from drivelab.stages.cell import Bench
from drivelab.stages.progress import Progress

PIECE_S = 1.0
"""Seconds between progress messages."""


def run_idle(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Leave the drive idle for `time_s`; an interrupted idle time restarts, so that it is never split."""
    if any(line["event"] == "idle" and line["step"] == step for line in bench.recording.journal()):
        return
    time_s = fields["time_s"]
    virtual = bench.plan.clock == "virtual"

    def wait(folder: Path) -> Timing | None:
        if virtual:
            progress.say(f"idle for {time_s:g} s", 0.0)
            bench.device.idle(time_s)
            return None
        started_s = now_s = time.monotonic()
        while (left_s := started_s + time_s - now_s) > 0:
            progress.say(f"idle, {time_s - left_s:.0f} s of {time_s:g} s", 1 - left_s / time_s)
            bench.device.idle(min(left_s, PIECE_S))
            now_s = time.monotonic()
        return Timing(started_s, now_s)

    _, facts = bench.run(f"cells/{step}-idle", wait)
    phase = {key: fields[key] for key in ("phase", "phase_pass") if key in fields}
    bench.recording.append("idle", step=step, idle_s=time_s, **phase, **facts)
