"""Synthetic workloads for replay benchmarks, also in formats of other replayers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from capture_cost import SIZE
from make_trace import RECORD

from drivelab.replay.engine_records import FUA, OPERATION_CODES
from drivelab.trace import records
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS, REQUESTS, write_trace

BLOCK_BYTES = 4096
LATENCY_NS = 60_000
"""Latency of each request in the trace; fio gets as many jobs as requests overlap."""
QUEUED = 1 << (16 + 4)
"""Category of queue events (BLK_TC_QUEUE), which btrecord selects."""
BURST_REQUESTS = 32
BURST_NS = 10_000_000
READ, WRITE, FLUSH, DISCARD = (OPERATION_CODES[name] for name in ("read", "write", "flush", "discard"))
Ints = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]


def workloads(seconds: float) -> dict[str, pa.Table]:
    """Return requests of each workload, 4 KiB each; offsets repeat rarely."""
    dice = np.random.default_rng(1)

    def evenly(rate: int) -> Ints:
        return np.arange(int(rate * seconds), dtype=np.int64) * (1_000_000_000 // rate)

    poisson = np.cumsum(dice.exponential(100_000, int(10_000 * seconds))).astype(np.int64)
    bursts = np.repeat(np.arange(int(seconds * 1e9 / BURST_NS), dtype=np.int64) * BURST_NS, BURST_REQUESTS)
    mixed, kinds = evenly(5000), evenly(2000)
    return {
        "10k IOPS, evenly": _requests(evenly(10_000), np.full(int(10_000 * seconds), READ), dice),
        "10k IOPS, Poisson": _requests(poisson, np.full(len(poisson), READ), dice),
        "5k IOPS, reads and writes": _requests(mixed, dice.choice((READ, WRITE), len(mixed)), dice),
        "32 every 10 ms": _requests(bursts, np.full(len(bursts), READ), dice),
        "2k IOPS, all kinds": _requests(
            kinds, dice.choice((READ, WRITE, FLUSH, DISCARD), len(kinds), p=(0.5, 0.4, 0.05, 0.05)), dice, fua=0.25
        ),
    }


def _requests(queue_ns: Ints, operation: Ints, dice: np.random.Generator, fua: float = 0.0) -> pa.Table:
    rows, places = len(queue_ns), SIZE // BLOCK_BYTES
    rounds = [dice.permutation(places) for _ in range(-(-rows // places))]
    empty = operation == FLUSH
    columns = {
        "queue_ns": queue_ns, "dispatch_ns": queue_ns + 1000, "complete_ns": queue_ns + LATENCY_NS,
        "operation": pa.DictionaryArray.from_arrays(operation.astype(np.int8), list(OPERATIONS)),
        "offset_bytes": np.where(empty, 0, np.concatenate(rounds)[:rows] * BLOCK_BYTES),
        "length_bytes": np.where(empty, 0, BLOCK_BYTES),
        "process": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["made-up"]),
        "dispatch_id": np.arange(rows), "pieces": np.ones(rows, np.int32),
        **dict.fromkeys(FLAGS, np.zeros(rows, np.bool_)),
        **dict.fromkeys(("pid", "cpu", "error", "requeues"), np.zeros(rows, np.int32)),
        "fua": (operation == WRITE) & (dice.random(rows) < fua),
    }  # fmt: skip
    return pa.table({name: columns[name] for name in REQUESTS.names}, schema=REQUESTS)


def write_workload(requests: pa.Table, path: Path) -> None:
    """Write a trace without losses."""
    write_trace(requests, {"source": "made up for a benchmark"}, path)


def write_iolog(plan: Records, device: str, path: Path) -> None:
    """Write a plan (SCHEDULE_RECORD) as an iolog for fio, as far as possible."""
    actions = {READ: "read", WRITE: "write", FLUSH: "sync", DISCARD: "trim"}
    end_us = int(plan["deadline_ns"][-1]) // 1000
    columns = [plan[name].tolist() for name in ("deadline_ns", "operation", "offset_bytes", "length_bytes")]
    with path.open("w", encoding="ascii") as file:
        file.write(f"fio version 3 iolog\n0 {device} add\n0 {device} open\n")
        for deadline_ns, operation, offset, length in zip(*columns, strict=True):
            file.write(f"{deadline_ns // 1000} {device} {actions[operation]} {offset} {length}\n")
        file.write(f"{end_us} {device} close\n")


def write_btreplay(plan: Records, device: str, folder: Path, options: list[str]) -> None:
    """Write a plan (SCHEDULE_RECORD) as input of btreplay to an empty folder.

    btrecord makes it from queue events that name `device` as their source: version 1.2.0 crashes when it reads a map
    file (option -M).
    """
    categories = {
        READ: records.READ, WRITE: records.WRITE, FLUSH: records.WRITE | records.FLUSH,
        DISCARD: records.WRITE | records.DISCARD,
    }  # fmt: skip
    events = np.zeros(len(plan), RECORD)
    events["magic"], events["device"] = records.MAGIC | 7, 259 << 20
    events["sequence"], events["time_ns"] = np.arange(len(plan)) + 1, plan["deadline_ns"] + 1_000_000
    events["sector"] = plan["offset_bytes"] // records.SECTOR_BYTES
    events["bytes"] = plan["length_bytes"]
    action = np.full(len(plan), records.ACTIONS.index("Q") | QUEUED, np.uint32)
    for operation, category in categories.items():
        action[plan["operation"] == operation] |= category
    events["action"] = action | np.where(plan["flags"] & FUA, np.uint32(records.FUA), np.uint32(0))
    name = Path(device).name
    events.tofile(folder / f"{name}.blktrace.0")
    command = ["btrecord", *options, "-d", str(folder), "-D", str(folder), name]
    subprocess.run(command, check=True, capture_output=True)
