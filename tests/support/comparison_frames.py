"""Synthetic tables of several drives, for figures that compare them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import protocol_frames as frames
import pts_frames as pts

from drivelab.analysis.values.quick_look import SHOWN

Draw = Callable[[], dict[str, pd.DataFrame]]
Case = tuple[str, Draw] | tuple[str, Draw, dict[str, Any]]
"""Name of a figure, its tables, and options."""
DRIVES = ("op7", "op28", "op7-512e")
_BEGAN = pd.Timestamp("2026-01-01T00:00:00Z").as_unit("ms")


def of_drives(make: Callable[[], pd.DataFrame], drives: tuple[str, ...] = DRIVES, gain: float = 0.2) -> pd.DataFrame:
    """Return `make()` for each drive, each faster than the one before by a share `gain` of the first."""
    parts = []
    for place, drive in enumerate(drives):
        part = make().assign(**frames.key(drive))
        parts.append(part.assign(iops=part["iops"] * (1 + gain * place)))
    return pd.concat(parts, ignore_index=True)


def looked(drives: tuple[str, ...] = ("op7",), *, writes: bool = True) -> dict[str, pd.DataFrame]:
    """Quick looks: three rounds of each test, and a sustained write whose rate falls after 10 s; or reads alone."""
    cells, bins = [], []
    for drive in drives:
        place = frames.key(drive, "quick")
        shown = [test for test in SHOWN if writes or test.read_share == 100]
        for number, (place_in_round, test) in product((1, 2, 3), enumerate(shown)):
            iops = 1000.0 * (1 + place_in_round) * (1 + 0.01 * number)
            row = frames.cell(iops, test.read_share, test.block_size_bytes, 1, test.queue_depth, test.pattern,
                              round=number, cell=place_in_round, **place, p50_latency_us=90.0)  # fmt: skip
            cells.append({**row, "workload": row["workload"] + (", fsync" if test.synchronous else "")})
            if test.is_time:
                bins.append(frames.bins(ios=100_000, **place, kind="loop", round=number, cell=place_in_round))
        for number in range(1, 31) if writes else ():
            rate = 2000.0 if number <= 10 else 400.0
            cells.append(frames.cell(rate, 0, 1 << 20, 1, 8, "sequential", kind="soak", step=2, round=number, **place,
                                     bandwidth_mib_s=rate, bytes_written=int(rate) << 20))  # fmt: skip
    return {"cells": pd.DataFrame(cells), "latency_bins": pd.concat(bins, ignore_index=True)}


def mixes(shares: tuple[int, ...] = (100, 60, 20, 0), sizes: tuple[int, ...] = (4096,)) -> pd.DataFrame:
    """Three rounds of mixes: reads 10,000 IOPS, writes 2,000, mixes half of the line between the two."""
    rows = []
    for number in (1, 2, 3):
        for place, (size, share) in enumerate((size, share) for size in sizes for share in shares):
            line = 2000 + 80 * share
            iops = line if share in (0, 100) else line / 2
            rows.append(frames.cell(iops, share, size, 1, 32, round=number, cell=place))
    return pd.DataFrame(rows)


def bins(drives: tuple[str, ...] = DRIVES, ios: int = 20_000_000) -> pd.DataFrame:
    """Latencies of a soak per drive, each drive slower than the one before."""
    parts = [frames.bins(90 + 30 * place, ios, **frames.key(drive)) for place, drive in enumerate(drives)]
    return pd.concat(parts, ignore_index=True)


def soaks(drives: tuple[str, ...] = DRIVES, seconds: int = 120, directions: tuple[str, ...] = ("write",),
          workloads: tuple[str, ...] = ("RND 4KiB 0/100",)) -> dict[str, pd.DataFrame]:  # fmt: skip
    """Series and cells of consecutive soaks per drive, one for each workload."""
    series, cells = [], []
    for place, drive in enumerate(drives):
        for step, workload in enumerate(workloads):
            where = {**frames.key(drive), "step": step, "kind": "soak", "round": 1, "cell": 0, "phase": None,
                     "workload": workload}  # fmt: skip
            cells.append(frames.cell(1000.0, elapsed_s=50.0 + seconds * step, **where))
            series += [{**where, "time_s": float(second), "direction": direction, "iops": 1000.0 * (place + 1) + second,
                        "bandwidth_mib_s": 4.0 * (place + 1), "mean_latency_us": 100.0}
                       for second in range(1, seconds + 1) for direction in directions]  # fmt: skip
    return {"series": pd.DataFrame(series), "cells": pd.DataFrame(cells)}


def heated(seconds: int = 300, sampled: bool = True) -> dict[str, pd.DataFrame]:
    """A soak of one drive that throttles in its seventh tenth, with or without telemetry samples."""
    tenth = seconds / 10
    cells = [frames.cell(5000.0, kind="soak", round=number + 1, elapsed_s=tenth * number, runtime_s=tenth,
                         started=_BEGAN + pd.Timedelta(seconds=tenth * number), throttled=number == 6)
             for number in range(10)]  # fmt: skip
    at_s = np.arange(seconds)
    slow = (at_s >= 6 * tenth) & (at_s < 7 * tenth)
    place = {name: cells[0][name] for name in ("recording", "step", "round", "cell")}
    series = pd.DataFrame({**place, "time_s": at_s + 1.0, "direction": "write", "iops": np.where(slow, 2500.0, 5000.0)})
    telemetry = pd.DataFrame({
        "recording": place["recording"], "time": _BEGAN + pd.to_timedelta(at_s, unit="s"),
        "temperature_c": 35 + 45 * (1 - np.exp(-at_s / 100)), "temperature_limit_c": 75.0,
        "thermal_1_s": np.cumsum(slow).astype(float), "thermal_2_s": 0.0, "cpu_pct": 12.0, "load_pct": 1.0,
        "steal_pct": 0.5,
    })  # fmt: skip
    cells_table = pd.DataFrame(cells)
    return {"telemetry": telemetry if sampled else telemetry.iloc[:0], "series": series, "cells": cells_table}


def applications(drives: tuple[str, ...] = DRIVES, names: tuple[str, ...] = ("sqlite-inserts",),
                 simulated_from: str | None = None) -> pd.DataFrame:  # fmt: skip
    """A cold run of 15 s, then counted runs of 11, 10 and 12 s; each drive is a second faster than the one before."""
    return pd.DataFrame([
        {**frames.key(drive), "application": name, "phase": None, "phase_value": None, "repeat": number + 1,
         "cold": number == 0, "counted": number > 0, "duration_s": duration_s - place, "simulated_from": simulated_from}
        for place, drive in enumerate(drives) for name in names for number, duration_s in enumerate((15, 11, 10, 12))
    ])  # fmt: skip


def loads(drives: tuple[str, ...] = DRIVES, capacity_iops: float = 10_000, undecided: bool = False) -> pd.DataFrame:
    """Rates of a load with p99 below 1 ms; each drive serves twice the rate of the one before.

    Eight tenths of the capacity pass and nine tenths fail, or are `undecided`; at all of it, p99 is infinite.
    """
    rows = []
    for place, drive in enumerate(drives):
        for rate, share in enumerate((0.1, 0.2, 0.4, 0.8, 0.9, 1.0), start=1):
            response_us = 100 / (1 - share) if share < 1 else math.nan
            outcome = "passes" if share <= 0.8 else "fails" if share == 1 or not undecided else "undecided"
            rows.append(
                {**frames.key(drive, "test"), "step": 1, "workload": "RND 4KiB 70/30", "phase": None,
                 "phase_value": None, "phase_pass": None, "arrivals": "poisson", "trace": None, "percentile": 99.0,
                 "limit_us": 700.0, "rate": rate, "rate_iops": share * capacity_iops * 2**place,
                 "achieved_iops": share * capacity_iops * 2**place, "outcome": outcome, "response_us": response_us,
                 "low_us": 0.8 * response_us, "high_us": math.nan if outcome == "undecided" else 1.2 * response_us,
                 "p50_response_us": 80.0, "p99_response_us": response_us, "max_response_us": 3 * response_us,
                 "requests": 90_000, "effective_requests": 9000, "late_issue_us": 2.0, "depth_limited_pct": 0.0,
                 "most_in_flight": 20, "doubts": ["too few requests: 200"] if outcome == "undecided" else [],
                 "counted": True, "directories": [f"cells/1-load-rate{rate}-1"], "tainted": False,
                 "taint_reason": None}
            )  # fmt: skip
    return pd.DataFrame(rows)


def single_sizes(
    sizes: tuple[int, ...] = (1024 * 1024, 128 * 1024), drives: tuple[str, ...] = DRIVES
) -> dict[str, pd.DataFrame]:
    """Sequential reads and writes, a measurement per block size: three rounds, the last two are the window.

    Reads are twice as fast as writes, each drive 10 % faster than the one before, large blocks faster than small ones.
    """
    rows, windows = [], []
    for place, drive in enumerate(drives):
        for size in sizes:
            where = frames.key(drive, f"throughput.{size // 1024}KiB")
            mib_s = 100 * (1 + place / 10) * (size / 2**20) ** 0.1
            for number, share in ((number, share) for number in (1, 2, 3) for share in (100, 0)):
                value = mib_s * (2 if share else 1) * (3 if number == 1 else 1)  # fast before the window
                rows.append(frames.cell(value * 2**20 / size, share, size, 1, 32, "sequential", round=number,
                                        cell=1 - share // 100, **where))  # fmt: skip
            windows.append(frames.window((mib_s, mib_s), 2, f"SEQ {size // 1024}KiB 0/100", **where, reached=True,
                                         metric="bandwidth_mib_s", unit="MiB/s"))  # fmt: skip
    return {"cells": pd.DataFrame(rows), "steady_state": pd.DataFrame(windows)}


def grid() -> dict[str, pd.DataFrame]:
    """Sequential reads and writes of two block sizes in one measurement on each drive."""
    tables = single_sizes((1024 * 1024,))
    cells = tables["cells"]
    small = cells.assign(block_size_bytes=4096, cell=cells["cell"] + 2, iops=cells["iops"] * 100,
                         workload=cells["workload"].str.replace("1024KiB", "4KiB"))  # fmt: skip
    return {**tables, "cells": pd.concat([cells, small], ignore_index=True)}


def compared(deltas: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {"deltas": deltas, "summary": pts.summary()}


def any_loop(cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {"cells": cells, "steady_state": frames.NO_WINDOWS}


_EIGHT = tuple(f"drive-{place}" for place in range(8))
CASES: Mapping[str, Case] = {
    "grid of drives": ("sizes_of_drives", lambda: grid()),
    "2 sizes, 3 drives": ("sizes_of_drives", lambda: single_sizes()),
    "5 sizes, 8 drives": ("sizes_of_drives", lambda: single_sizes((1 << 20, 1 << 16, 1 << 13, 1 << 12, 512), _EIGHT)),
    "ramp, one drive": ("depth_ramp", lambda: any_loop(frames.sweep())),
    "ramp, 3 drives": ("depth_ramp", lambda: any_loop(of_drives(frames.sweep))),
    "ramp, 8 drives": ("depth_ramp", lambda: any_loop(of_drives(frames.sweep, _EIGHT))),
    "ramp, threads": ("depth_ramp", lambda: any_loop(of_drives(lambda: frames.sweep(depths=(4,))))),
    "bathtub, 3 drives": ("bathtub", lambda: any_loop(of_drives(mixes))),
    "bathtub, 8 sizes": (
        "bathtub",
        lambda: any_loop(mixes((100, 95, 65, 50, 35, 5, 0), tuple(512 << place for place in range(8)))),
    ),
    "exceeded, 8 drives, few I/Os": ("latency_distribution", lambda: {"latency_bins": bins(_EIGHT, 3000)}),
    "exceeded, 3 drives": ("latency_distribution", lambda: {"latency_bins": bins()}),
    "strip, 3 drives": ("strip_chart", lambda: soaks()),
    "strip, 600 s of reads and writes": ("strip_chart", lambda: soaks(DRIVES, 600, ("read", "write"))),
    "telemetry": ("telemetry_strip", lambda: heated()),
    "telemetry, none sampled": ("telemetry_strip", lambda: heated(sampled=False)),
    "load": ("load_curve", lambda: {"load_rates": loads(("op7",), undecided=True)}),
    "load, 3 drives": ("load_curve", lambda: {"load_rates": loads()}),
    "application, 3 drives": ("application_durations", lambda: {"application_runs": applications()}),
    "applications, simulated": (
        "application_durations",
        lambda: {"application_runs": applications(names=("sqlite-inserts", "git-checkout"), simulated_from="sqlite")},
    ),
}
"""Figures that `render` draws, by name of the case."""
