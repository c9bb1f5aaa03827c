"""Write a long synthetic block trace in blktrace's format, for benchmarks.

Processes with plugs on a multi-queue drive: P, Q, G or M, U, I, D, C of reads and writes of 4 KiB to 128 KiB, some
sequential, about 32 in flight, with an occasional fsync. About six events per request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from drivelab.trace import records

RECORD = np.dtype(
    [
        ("magic", "<u4"), ("sequence", "<u4"), ("time_ns", "<u8"), ("sector", "<u8"), ("bytes", "<u4"),
        ("action", "<u4"), ("pid", "<u4"), ("device", "<u4"), ("cpu", "<u4"), ("error", "<u2"), ("pdu_bytes", "<u2"),
    ]
)  # fmt: skip
"""Record of version 7."""
WORDS = RECORD.itemsize // 8
BATCHES = 100_000
"""Plugs that the generator holds in memory."""
LARGEST_BATCH = 4
PROCESSES = 16
REQUEST_NS = 10_000
IN_FLIGHT = 32
SECTORS = 1 << 31
EVENTS_PER_BATCH = 14
"""Approximate; only the number of chunks depends on it."""
Q, M, G, D, C, P, U, I = (records.ACTIONS.index(letter) for letter in "QMGDCPUI")  # noqa: E741
Events = npt.NDArray[np.void]


def make_trace(folder: Path, events: int, cpus: int = 8, seed: int = 1) -> int:
    """Write a capture of `events` or a few thousand more events; return the number."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = np.random.default_rng(seed)
    files = [(folder / f"trace.blktrace.{cpu}").open("wb") for cpu in range(cpus)]
    numbers, written, start_ns = [0] * cpus, 0, 1_000_000
    late = _notes(cpus)
    try:
        while written + len(late) < events:
            batches = min(BATCHES, max(100, (events - written - len(late)) // EVENTS_PER_BATCH))
            chunk, end_ns = _chunk(dice, batches, cpus, start_ns)
            late, start_ns = np.concatenate([late, chunk]), end_ns
            early = late[late["time_ns"] < end_ns]
            late = late[late["time_ns"] >= end_ns]
            written += _write(early, files, numbers)
        written += _write(late, files, numbers)
    finally:
        for file in files:
            file.close()
    return written


def _events(count: int, action: npt.ArrayLike, time_ns: npt.ArrayLike, **columns: npt.ArrayLike) -> Events:
    rows = np.zeros(count, RECORD)
    rows["magic"], rows["device"], rows["action"], rows["time_ns"] = records.MAGIC | 7, 259 << 20, action, time_ns
    for name, values in columns.items():
        rows[name] = values
    return rows


def _notes(cpus: int) -> Events:
    """Return a note of every process name for the file of every CPU."""
    pids = 1000 + np.tile(np.arange(PROCESSES), cpus)
    cpu = np.repeat(np.arange(cpus), PROCESSES)
    return _events(len(pids), records.NOTIFY, np.arange(len(pids)), pid=pids, cpu=cpu, pdu_bytes=16)


def _chunk(dice: np.random.Generator, batches: int, cpus: int, start_ns: int) -> tuple[Events, int]:
    """Return unsorted events of plugs, and the start time of the next chunk.

    Completions may be later than that time.
    """
    sizes = dice.integers(1, LARGEST_BATCH, batches, endpoint=True)
    gaps_ns = dice.exponential(REQUEST_NS * sizes.mean(), batches).astype(np.int64) + 100
    plug_ns = start_ns + np.cumsum(gaps_ns)
    process, cpu = dice.integers(0, PROCESSES, batches), dice.integers(0, cpus, batches)

    batch = np.repeat(np.arange(batches), sizes)
    nth = np.arange(len(batch)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    requests = len(batch)
    length = 4096 << dice.integers(0, 5, requests, endpoint=True)
    word = np.where(dice.random(batches) < 0.7, records.READ, records.WRITE | records.SYNC).astype(np.uint32)[batch]
    sector = dice.integers(0, SECTORS // 8, requests) * 8
    follows = (nth > 0) & (dice.random(requests) < 0.4)
    follows[1:] &= ~follows[:-1]
    after = np.flatnonzero(follows)
    sector[after] = sector[after - 1] + length[after - 1] // records.SECTOR_BYTES
    merged = follows & (dice.random(requests) < 0.25)
    heads = np.flatnonzero(~merged)
    whole = length.copy()
    np.add.at(whole, np.flatnonzero(merged) - 1, length[merged])

    queue_ns = plug_ns[batch] + 1500 * nth + 300
    unplug_ns = plug_ns + 1500 * sizes + 300
    insert_ns = unplug_ns[batch] + 400 * nth + 200
    latency_ns = dice.gamma(4, REQUEST_NS * IN_FLIGHT / 4, requests).astype(np.int64) + 5_000

    def of_requests(
        action: int, time_ns: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> Events:
        plug = batch[chosen]
        return _events(
            len(chosen), word[chosen] | np.uint32(action), time_ns[chosen], sector=sector[chosen], bytes=sizes[chosen],
            pid=1000 + process[plug], cpu=cpu[plug],
        )  # fmt: skip

    def of_batches(action: int, time_ns: npt.NDArray[np.int64], **columns: npt.ArrayLike) -> Events:
        return _events(batches, action, time_ns, pid=1000 + process, cpu=cpu, **columns)

    done = of_requests(C, insert_ns + 200 + latency_ns, heads, whole)
    done["pid"] = 0
    events = [
        of_batches(P, plug_ns),
        of_requests(Q, queue_ns, np.arange(requests), length),
        of_requests(G, queue_ns + 400, heads, length),
        of_requests(M, queue_ns + 400, np.flatnonzero(merged), length),
        of_batches(U, unplug_ns, pdu_bytes=8),
        of_requests(I, insert_ns, heads, whole),
        of_requests(D, insert_ns + 200, heads, whole),
        done,
        *_flushes(dice, max(1, requests // 1000), cpus, start_ns, int(plug_ns[-1])),
    ]
    return np.concatenate(events), int(plug_ns[-1]) + 100


def _flushes(dice: np.random.Generator, count: int, cpus: int, start_ns: int, end_ns: int) -> list[Events]:
    """Return fsyncs: the empty flush, the drive's flush, and the end of both."""
    queue_ns = start_ns + np.arange(count) * ((end_ns - start_ns) // count) + 700
    flush, cpu, pid = records.FLUSH, dice.integers(0, cpus, count), 1000
    write = records.WRITE | records.SYNC
    steps = ((Q | write | flush, 0), (G | write | flush, 500), (D | records.READ | flush, 3000),
             (C | records.READ | flush, 300_000), (C | write, 301_000))  # fmt: skip
    return [_events(count, action, queue_ns + delay, cpu=cpu, pid=pid) for action, delay in steps]


def _write(events: Events, files: Sequence[BinaryIO], numbers: list[int]) -> int:
    events = events[np.argsort(events["time_ns"], kind="stable")]
    for cpu, file in enumerate(files):
        cpu_events = events[events["cpu"] == cpu]
        is_note = (cpu_events["action"] & records.NOTIFY) != 0
        counted = np.cumsum(~is_note)
        cpu_events["sequence"] = np.where(is_note, 0, numbers[cpu] + counted)
        numbers[cpu] += int(counted[-1]) if len(cpu_events) else 0
        _packed(cpu_events).tofile(file)
    return len(events)


def _packed(events: Events) -> npt.NDArray[np.uint64]:
    """Return records with payloads of whole words: process names and plug depths."""
    sizes = WORDS + events["pdu_bytes"].astype(np.int64) // 8
    ends = np.cumsum(sizes)
    packed = np.zeros(int(ends[-1]) if len(events) else 0, np.uint64)
    starts = ends - sizes
    packed[starts[:, None] + np.arange(WORDS)] = events.view(np.uint64).reshape(-1, WORDS)
    for at in np.flatnonzero(events["pdu_bytes"] == 16):
        name = f"worker{events['pid'][at] - 1000}".encode().ljust(16, b"\0")
        packed[starts[at] + WORDS : ends[at]] = np.frombuffer(name, np.uint64)
    packed[starts[events["pdu_bytes"] == 8] + WORDS] = LARGEST_BATCH << 56  # big-endian
    return packed
