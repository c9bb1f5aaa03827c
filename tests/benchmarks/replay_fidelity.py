"""Measure the fidelity of replays: drivelab's engine, fio's read_iolog and btreplay.

Run as root: python tests/benchmarks/replay_fidelity.py [--seconds 10] [--repeats 3]. Each repeat replays each workload
with each replayer, one after the other, on the same loop device over a file in memory. The first replayer changes with
every repeat. The plan is compared with the requests that the kernel's tracer saw queued (k-th of an operation, offset
and length), and with the engine's own results. Prints Markdown: medians over the repeats.

Only drivelab's engine reports its start, so its errors are relative to its plan. For the others, the median of their
offsets from the plan counts as their start, so only deviations from it are errors; this favours them. A row "same rule"
applies this to drivelab's engine too. Errors are absolute, by percentile. The tables also show this host's wake-up
delay, measured by the engine before each replay and by this program between replays.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from capture_cost import SIZE, loop_device
from replay_workloads import (
    BURST_REQUESTS,
    DISCARD,
    FLUSH,
    READ,
    WRITE,
    workloads,
    write_btreplay,
    write_iolog,
    write_workload,
)  # fmt: skip

from drivelab.core.errors import UserError
from drivelab.drives.target import named
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay import native
from drivelab.replay.engine_records import FUA, NOT_ISSUED, make_results, open_results, open_schedule
from drivelab.replay.native import EngineOptions
from drivelab.replay.prepare import Prepared, prepare
from drivelab.trace.capturing.capture import capture
from drivelab.trace.decode import FIRST_EVENT_MONOTONIC, decode
from drivelab.trace.parquet_schema import OPERATIONS, read_trace

CLOSE_US = 50
SPREADS_US = (100, 200)
BUSY = ("another drivelab", "another program")
"""Parts of the errors of a capture while another tracer is active."""
QUIET_LOAD = 1.5
PATIENCE_S = 300.0
PR_SET_TIMERSLACK = 29
FINE = ["--max-bunch-time=10000", "--max-pkts=256"]
"""Options of btrecord: bunches of requests within 10 us, instead of 8 within 10 ms."""
Values = dict[str, float]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class Case:
    """One workload, prepared for all replayers."""

    prepared: Prepared
    plan: Records
    device: str
    folder: Path


@dataclass(frozen=True)
class Replay:
    """Lateness of each request in ns, shape (plan,), NaN: never queued; and counts."""

    late_ns: Floats
    counts: Mapping[str, float]


def fio_plain(case: Case, folder: Path) -> list[str]:
    write_iolog(case.plan, case.device, folder / "plan.iolog")
    return ["fio", "--name=replay", "--read_iolog=plan.iolog", "--ioengine=libaio", "--iodepth=64", "--direct=1",
            "--allow_file_create=0", "--output=fio.txt"]  # fmt: skip


def btreplay(case: Case, folder: Path, options: list[str]) -> list[str]:
    """Return btreplay's command with a timeout: it sometimes hangs after the end."""
    write_btreplay(case.plan, case.device, folder, options)
    longest_s = 5 + 1.2 * case.prepared.issue_span_s
    return ["timeout", "--signal=KILL", f"{longest_s:.0f}", "btreplay", "-W", "-d", ".", Path(case.device).name]


OTHERS: dict[str, Callable[[Case, Path], list[str]]] = {
    "fio --read_iolog, libaio, depth 64": fio_plain,
    "btreplay": lambda case, folder: btreplay(case, folder, []),
    "btreplay, fine bunches": lambda case, folder: btreplay(case, folder, FINE),
}


def replay_natively(case: Case, folder: Path, *, watched: bool) -> dict[str, Replay]:
    """Replay with drivelab; compare the engine's and, if watched, the kernel's times."""
    results = folder / native.RESULTS
    with named(Path(case.device), destroy=True) as target:
        if watched:
            header = open_schedule(case.prepared.schedule).header
            make_results(results, header["count"], header["checksum"])
            command = native.command(target.path, target.identity, case.prepared.schedule, results, EngineOptions())
            queue_ns, counts = watch(case, command, folder)
        else:
            native.run_engine(target.path, target.identity, case.prepared.schedule, folder, EngineOptions())
    mapped = open_results(results)
    wakeup = {f"wakeup_{name}_us": mapped.header[f"wakeup_{name}_ns"] / 1000 for name in ("p50", "p99", "max")}
    own = mapped.records["issue_ns"] - case.plan["deadline_ns"].astype(np.float64)
    own[mapped.records["state"] == NOT_ISSUED] = np.nan
    name = "drivelab, by its records"
    if not watched:
        return {f"{name}, unwatched": Replay(own, wakeup)}
    seen = queue_ns - mapped.header["start_monotonic_ns"] - case.plan["deadline_ns"]
    return {
        "drivelab": Replay(seen, counts | wakeup),
        "drivelab, same rule": Replay(seen - np.nanmedian(seen), counts),
        name: Replay(own, {}),
    }


def replay_otherwise(case: Case, way: str, folder: Path) -> dict[str, Replay]:
    queue_ns, counts = watch(case, OTHERS[way](case, folder), folder)
    late_ns = queue_ns - case.plan["deadline_ns"]
    return {way: Replay(late_ns - np.nanmedian(late_ns), counts)}


def watch(case: Case, command: list[str], folder: Path) -> tuple[Floats, Values]:
    """Return queue times of the plan's requests (CLOCK_MONOTONIC, ns), and counts."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            report = capture(case.device, command, folder / "raw", cwd=folder, backend="ftrace")
            break
        except UserError as error:
            if time.monotonic() > until_s or not any(cause in str(error) for cause in BUSY):
                raise
            time.sleep(2)
    decode(folder / "raw", folder / "seen.parquet")
    table, about = read_trace(folder / "seen.parquet")
    operation = np.array([OPERATIONS.index(name) for name in table["operation"].to_pylist()], np.int64)
    offset, length = (table[name].to_numpy() for name in ("offset_bytes", "length_bytes"))
    planned = case.plan["operation"]
    first = _first_seen([case.plan[name] for name in ("operation", "offset_bytes", "length_bytes")],
                        [operation, offset, length])  # fmt: skip
    at_ns = table["queue_ns"].to_numpy().astype(np.float64) + about[FIRST_EVENT_MONOTONIC]
    fua = table["fua"].to_numpy()
    wants_fua = case.plan["flags"] & FUA != 0
    kinds = {"read": READ, "write": WRITE, "flush": FLUSH, "discard": DISCARD}
    lost = {f"lost {name}": float((first[planned == code] < 0).sum()) for name, code in kinds.items()}
    counts = {
        **lost,
        "lost FUA": float((wants_fua & ~((first >= 0) & fua[first])).sum()),
        "extra": float((operation <= WRITE).sum() - ((first >= 0) & (planned <= WRITE)).sum()),
        "events lost": float(sum(about["lost"].values())),
        "failed": float(report.exit_status != 0),
    }
    return np.where(first < 0, np.nan, at_ns[first]), counts


def _first_seen(planned: Sequence[Ints], seen: Sequence[Ints]) -> Ints:
    """Return the row of the k-th seen request for the k-th planned one of its extent; -1: none."""
    rows: dict[tuple[int, ...], deque[int]] = {}
    for row, extent in enumerate(zip(*(column.tolist() for column in seen), strict=True)):
        rows.setdefault(extent, deque()).append(row)
    extents = zip(*(column.tolist() for column in planned), strict=True)
    return np.array([found.popleft() if (found := rows.get(extent)) else -1 for extent in extents], np.int64)


def measures(case: Case, replay: Replay) -> Values:
    """Return all metrics of one replay."""
    moves = (case.plan["operation"] <= WRITE) & ~np.isnan(replay.late_ns)
    late_us, deadline_ns = replay.late_ns[moves] / 1000, case.plan["deadline_ns"][moves].astype(np.float64)
    queued_ns, error_us = deadline_ns + replay.late_ns[moves], np.abs(late_us)
    percentiles = dict(zip(("p50", "p95", "p99", "max"), np.percentile(error_us, (50, 95, 99, 100)), strict=True))
    values = {
        "duration ratio": float(np.ptp(queued_ns) / np.ptp(deadline_ns)),
        **{f"{name} us": float(value) for name, value in percentiles.items()},
        "within 50 us %": 100 * float((error_us <= CLOSE_US).mean()),
        **replay.counts,
    }
    times, size = np.unique(case.plan["deadline_ns"], return_counts=True)
    if (size == BURST_REQUESTS).all():
        spread_us = np.ptp(replay.late_ns.reshape(len(times), BURST_REQUESTS), axis=1) / 1000
        values["spread p50 us"] = float(np.nanmedian(spread_us))
        values |= {f"kept {limit} us %": 100 * float((spread_us < limit).mean()) for limit in SPREADS_US}
    return values


def own_wakeups_us(sleeps: int = 2000) -> Values:
    """Return the wake-up delay of 500 us sleeps on this host."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    late_us = np.empty(sleeps)
    for index in range(sleeps):
        due_ns = time.monotonic_ns() + 500_000
        time.sleep(500e-6)
        late_us[index] = (time.monotonic_ns() - due_ns) / 1000
    return {f"p{percent}": float(np.percentile(late_us, percent)) for percent in (50, 95, 99, 100)}


def wait_for_quiet() -> None:
    """Wait until the load is low, at most PATIENCE_S, and print it."""
    until_s = time.monotonic() + PATIENCE_S
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < until_s:
        time.sleep(2)
    loads = os.getloadavg()
    print(f"load {loads[0]:.2f} at the start{'' if loads[0] <= QUIET_LOAD else ': NOT QUIET'}", flush=True)


def print_table(title: str, runs_by_way: Mapping[str, list[Values]]) -> None:
    """Print a row for each replayer: medians over the repeats."""
    columns = list(dict.fromkeys(name for runs in runs_by_way.values() for run in runs for name in run))
    used = [name for name in columns if not name.startswith(("lost", "extra", "failed", "events"))
            or any(run.get(name) for runs in runs_by_way.values() for run in runs)]  # fmt: skip
    print(f"\n### {title}\n\n| way | " + " | ".join(used) + " |\n|---|" + "---:|" * len(used))
    for way, runs in runs_by_way.items():
        known = [[run[name] for run in runs if name in run] for name in used]
        cells = [
            _number(name, float(np.median(values))) if values else "" for name, values in zip(used, known, strict=True)
        ]
        print(f"| {way} | " + " | ".join(cells) + " |", flush=True)


def _number(name: str, value: float) -> str:
    return f"{value:.4f}" if name == "duration ratio" else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare replayers.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    wait_for_quiet()
    results: dict[str, dict[str, list[Values]]] = {}
    wakeups: list[Values] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, loop_device() as device:
        subprocess.run(["dd", "if=/dev/zero", f"of={device}", "bs=1M", f"count={SIZE >> 20}", "oflag=direct",
                        "status=none"], check=True)  # fmt: skip
        for title, requests in workloads(chosen.seconds).items():
            own = Path(folder) / f"{len(results)}"
            own.mkdir()
            write_workload(requests, own / "trace.parquet")
            prepared = prepare(own / "trace.parquet", own / "plan", ReplayChoice(), SIZE, 4096)
            case = Case(prepared, open_schedule(prepared.schedule).records, device, own)
            rows = results.setdefault(title, {})
            for repeat in range(chosen.repeats):
                wakeups.append(own_wakeups_us())
                ways = ["watched", "unwatched", *OTHERS]
                turn = repeat * 2 % len(ways)
                for way in ways[turn:] + ways[:turn]:
                    with tempfile.TemporaryDirectory(dir=own) as run:
                        native_way = way in ("watched", "unwatched")
                        replays = (replay_natively(case, Path(run), watched=way == "watched") if native_way
                                   else replay_otherwise(case, way, Path(run)))  # fmt: skip
                        for name, replay in replays.items():
                            rows.setdefault(name, []).append(measures(case, replay))
            print_table(f"{title}, {len(case.plan)} requests, {chosen.repeats} repeats", dict(sorted(rows.items())))
    delays = ", ".join(f"{name} {np.median([wakeup[name] for wakeup in wakeups]):.0f} us" for name in wakeups[0])
    print(f"\nsleeps of 500 us end late by (medians of {len(wakeups)} rounds): {delays}")


if __name__ == "__main__":
    main()
