"""A chain of stages on the virtual clock, run without Snakemake in about half a second."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from made_plans import made_plan

from drivelab.plan.plan import Plan
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure

WRITE = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 4}
STEPS: list[dict[str, Any]] = [
    {"loop": {"cells": [{**WRITE, "runtime_s": 0.02}, {**WRITE, "read_share": 100, "runtime_s": 0.02}],
              "until": {"rounds": 2}, "cold_rounds": 1, "pause_s": 1.5}},
    {"soak": {"cell": {**WRITE, "slice_s": 0.02}, "until": {"time_s": 0.06}}},
    {"idle": {"time_s": 2.5}},
]  # fmt: skip
CONDITION = {"fill": {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 8, "capacity_multiple": 0.5},
             "settle_s": 0.5, "rest_s": 0.5}  # fmt: skip
MODEL = {
    "capacity": "1MiB", "over_provisioning": "50%", "pages_per_block": 16, "slc_cache": "128KiB",
    "throttle": {"ambient_c": 30, "limit_c": 31, "resume_c": 30.5, "heat_c_per_mib": 1, "cooling_s": 40, "slowdown": 4},
}  # fmt: skip


def plan_in(folder: Path, steps: Sequence[dict[str, Any]] = STEPS) -> Plan:
    folder.mkdir()
    return made_plan(folder, steps, CONDITION, model=MODEL)


def chain(plan: Plan, folder: Path) -> None:
    """Run the stages like the workflow: a finished stage does not run again, and an unfinished one loses its output."""
    purged, conditioned, manifest = folder / "purged.json", folder / "conditioned.json", folder / "manifest"
    stages: list[tuple[Path, Callable[[], None]]] = [
        (purged, lambda: purge(plan, purged)),
        (conditioned, lambda: precondition(plan, purged, conditioned)),
        (manifest, lambda: measure(plan, conditioned)),
    ]
    for output, act in stages:
        ended = folder / f"{output.name}.ended"
        if not ended.exists():
            output.unlink(missing_ok=True)
            act()
            ended.touch()


def started(act: Callable[[], None]) -> int:
    """Run `act` in a child process, whose exit status is 1 if it fails; return its process number."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return child


def in_a_process(act: Callable[[], None]) -> int:
    """Run `act` in a child process and return its wait status."""
    return os.waitpid(started(act), 0)[1]
