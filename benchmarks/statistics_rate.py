"""Measure the statistics of many cells on one core: from `cells` to deltas.

    python benchmarks/statistics_rate.py [CELLS]

Generates loops in steady state and loops of repeats, with half of the cells each, and long soaks, of two drives. Then
computes windows, summary with intervals, and deltas with tests, in a process with one core.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.summary import summary_table
from drivelab.plan.cell import Cell
from drivelab.tables.schemas import SCHEMAS
from drivelab.tables.windows import windows_table

DRIVES = ("basis", "other")
CELLS_OF_A_LOOP = 100
ROUNDS = 5
TRACK = {"window": ROUNDS, "data_excursion": 0.2, "slope_excursion": 0.1,
         "track": [{"block_size_bytes": 4096, "threads": 1, "queue_depth": 1, "metric": "iops"}]}  # fmt: skip
_ZERO: dict[str, Any] = {"string": "", "bool": False, "timestamp[ms, tz=UTC]": 0}


def synthetic(cells: int) -> pd.DataFrame:
    """Return table `cells` of both drives with about `cells` rows, 2 % soak slices."""
    random, parts = np.random.default_rng(1), []
    recordings = max(cells // (len(DRIVES) * CELLS_OF_A_LOOP * ROUNDS), 1)
    for drive in DRIVES:
        for number in range(recordings):
            measurement = f"test-{number}"
            key = {"recording": f"{drive}/{measurement}/0123456789ab-run1", "drive": drive, "serial": drive,
                   "protocol": "test", "measurement": measurement, "run": 1, "clock": "wall"}  # fmt: skip
            until = "steady state" if number % 2 else "rounds"
            parts.append(pd.DataFrame({**key, **_loop(random), "until": until}))
            if number % 10 == 0:
                parts.append(pd.DataFrame({**key, **_soak(random, slices=CELLS_OF_A_LOOP), "until": "time"}))
    return _whole(pd.concat(parts, ignore_index=True))


def _loop(random: np.random.Generator) -> dict[str, Any]:
    count = CELLS_OF_A_LOOP * ROUNDS
    place = np.tile(np.arange(CELLS_OF_A_LOOP), ROUNDS)
    threads, depth = 1 << (place // 10) % 10, 1 << place % 10
    iops = 1000.0 * threads * depth * random.lognormal(0, 0.02, count)
    cells = [Cell("random", 0, 4096, int(t), int(q)) for t, q in zip(threads, depth, strict=True)]
    return {"step": 0, "kind": "loop", "round": np.repeat(np.arange(1, ROUNDS + 1), CELLS_OF_A_LOOP), "cell": place,
            "workload": [cell.workload for cell in cells], "threads": threads, "queue_depth": depth,
            "directory": [f"cells/0-round{n // CELLS_OF_A_LOOP}-cell{n % CELLS_OF_A_LOOP}" for n in range(count)],
            **_measured(iops)}  # fmt: skip


def _soak(random: np.random.Generator, slices: int) -> dict[str, Any]:
    return {"step": 1, "kind": "soak", "round": np.arange(1, slices + 1), "cell": 0, "workload": "RND 4KiB 0/100",
            "threads": 1, "queue_depth": 32, "directory": "cells/1-soak-part1",
            **_measured(1e5 * random.lognormal(0, 0.05, slices))}  # fmt: skip


def _measured(iops: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    return {"pattern": "random", "block_size_bytes": 4096, "runtime_s": 1.0, "iops": iops, "write_iops": iops,
            "write_ios": iops.astype(np.int64), "bandwidth_mib_s": iops / 256, "mean_latency_us": 1e6 / iops,
            "p99_latency_us": 2e6 / iops}  # fmt: skip


def _whole(rows: pd.DataFrame) -> pd.DataFrame:
    """Add missing columns and convert to the table's types."""
    schema = SCHEMAS["cells"]
    empty = {field.name: None if field.nullable else _ZERO.get(str(field.type), 0) for field in schema}
    missing = {name: value for name, value in empty.items() if name not in rows}
    return pa.Table.from_pandas(rows.assign(**missing)[schema.names], schema=schema).to_pandas()


def main(count: int) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    cells = synthetic(count)
    until_steady = cells[cells["until"] == "steady state"]
    empty = {name: SCHEMAS[name].empty_table().to_pandas() for name in ("replays", "application_runs")}
    passes = pd.DataFrame(columns=["recording", "traces", "phase", "step", "counted"])
    took = {}

    def lap(name: str, began_s: float) -> None:
        took[name] = time.process_time() - began_s

    began_s = time.process_time()
    windows = windows_table(until_steady, {0: TRACK})
    lap("windows", began_s)
    began_s = time.process_time()
    summary = summary_table(cells, windows, empty["replays"], passes, application_runs=empty["application_runs"])
    lap("summary with intervals", began_s)
    began_s = time.process_time()
    deltas = deltas_table(summary, DRIVES[0])
    lap("deltas with tests", began_s)
    statistics_s = took["summary with intervals"] + took["deltas with tests"]
    print(
        f"{len(cells):,} cells, {len(summary):,} values, {len(deltas):,} deltas: {statistics_s:.1f} s of CPU on one "
        f"core; " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items())
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
