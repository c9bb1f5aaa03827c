"""Synthetic tables of loops and soaks outside the PTS grid: sweeps, repeats, idle time, phases, several drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drivelab.core.units import format_size
from drivelab.tables.schemas import SCHEMAS

NO_WINDOWS = pd.DataFrame(columns=SCHEMAS["steady_state"].names)
_WORDS = {"random": "RND", "sequential": "SEQ"}


def key(drive: str = "op7", measurement: str = "test", run: int = 1, **changed: Any) -> dict[str, Any]:
    """Return the columns that every table by recording has."""
    return {
        "recording": f"{drive}/{measurement}/0123456789ab-run{run}", "drive": drive, "serial": f"S-{drive}",
        "protocol": measurement, "measurement": measurement, "run": run, "reduced": False, "virtual": False,
        "clock": "wall", **changed,
    }  # fmt: skip


def cell(
    iops: float, read: int = 0, size: int = 4096, threads: int = 1, depth: int = 1, pattern: str = "random", **more: Any
) -> dict[str, Any]:
    """Return a row of table `cells`; latency by Little's law."""
    latency_us = threads * depth / iops * 1e6
    return {
        **key(), "step": 0, "kind": "loop", "round": 1, "cell": 0, "phase": None, "phase_value": None,
        "phase_pass": None, "point": None, "cold": False, "pause_s": None, "idle_ms": None, "after_gap": False,
        "read_ios": int(iops * read / 100), "write_ios": int(iops * (100 - read) / 100), "user_cpu_pct": 3.0 * threads,
        "system_cpu_pct": 9.0 * threads, "tainted": False, "beside": None, "filled": False, "ended_by": None,
        "in_window": False, "until": "rounds", "workload": f"{_WORDS[pattern]} {format_size(size)} {read}/{100 - read}",
        "pattern": pattern, "read_share_pct": read, "block_size_bytes": size, "threads": threads,
        "queue_depth": depth, "elapsed_s": 0.0, "runtime_s": 1.0, "iops": iops, "bandwidth_mib_s": iops * size / 2**20,
        "mean_latency_us": latency_us, "max_latency_us": 30 * latency_us, "bytes_written": int(iops * size),
        "bytes_written_total": int(iops * size),
        "directory": "cells/0", "unsound": None, "p99999_latency_us": 20 * latency_us,
        "p999999_latency_us": None, **more,
    }  # fmt: skip


def sweep(
    threads: tuple[int, ...] = (1, 2, 4, 8),
    depths: tuple[int, ...] = (1, 2, 4, 8, 16, 32),
    reads: tuple[int, ...] = (100,),
) -> pd.DataFrame:  # fmt: skip
    """Three rounds of a sweep of a drive that serves 16 I/Os at a time, 100 us each, and queues the rest."""
    rows = []
    for number in (1, 2, 3):
        combinations = [(read, t, q) for read in reads for t in threads for q in depths]
        for place, (read, t, q) in enumerate(combinations):
            iops = min(t * q, 16) * 1e4 * (1 + 0.002 * number) / (1 if read else 2)
            rows.append(cell(iops, read, threads=t, depth=q, round=number, cell=place))
    return pd.DataFrame(rows)


def with_pre_writes(table: pd.DataFrame) -> pd.DataFrame:
    """Return a sweep with writes before each round, slower from round to round."""
    rows = [cell(5e4 - 1e3 * number, 0, threads=8, depth=32, round=number, cell=99) for number in (1, 2, 3)]
    return pd.concat([pd.DataFrame(rows), table], ignore_index=True)


def window(values: Sequence[float], start: int, variable: str, **more: Any) -> dict[str, Any]:
    """Return a row of table `steady_state`, computed here by the rule of the PTS."""
    intervals, average = len(values) - 1, float(np.mean(values))
    slope, intercept = np.polyfit(start + np.arange(len(values)), values, 1) if intervals else (np.nan, np.nan)
    data, rise = max(values) - min(values), abs(slope) * intervals
    return {
        **key(), "step": 0, "variable": variable, "metric": "iops", "unit": "",
        "reached": bool(intervals == 4 and data <= 0.2 * average and rise <= 0.1 * average),
        "rounds": start + intervals, "window_start": start, "window_end": start + intervals, "values": list(values),
        "average": average, "allowed_data_excursion": 0.2 * average, "measured_data_excursion": data,
        "allowed_slope_excursion": 0.1 * average, "measured_slope_excursion": rise, "slope": slope,
        "intercept": intercept, "residual_drift_pct": 100 * slope * intervals / average if average else np.nan, **more,
    }  # fmt: skip


def sweep_window() -> pd.DataFrame:
    """Return the window of `sweep`: rounds 2 and 3 of the cell with the most outstanding I/Os."""
    return pd.DataFrame([window((160640.0, 160960.0), 2, "RND 4KiB 100/0 T8Q32", unit="IOPS", reached=True)])


def with_points(table: pd.DataFrame) -> pd.DataFrame:
    """Return a sweep with soaks at three of its points."""
    rows = [
        cell(9e4, 100, threads=t, depth=q, kind="soak", step=step, phase="point", phase_value=name, phase_pass=step,
             point=name)
        for step, (name, t, q) in enumerate((("max", 4, 4), ("mid", 2, 4), ("min", 1, 1)), start=1)
    ]  # fmt: skip
    return pd.concat([table, pd.DataFrame(rows)], ignore_index=True)


def repeated(names: int = 4, rounds: int = 5, cold: int = 1) -> pd.DataFrame:
    """Cells of different speed; a cold round is a third slower."""
    random = np.random.default_rng(3)
    return pd.DataFrame([
        cell(10.0 ** (2 + place % 4) * (0.66 if number <= cold else float(random.normal(1, 0.02))), 100,
             size=4096 << place, cell=place, round=number, cold=number <= cold)
        for number in range(1, rounds + cold + 1) for place in range(names)
    ])  # fmt: skip


def idle(waits: tuple[int, ...] = (5, 10, 50), bursts: int = 6) -> pd.DataFrame:
    """A baseline, then for each wait bursts (the longer the wait, the faster) and the baseline again."""
    rows, now, step = [], 0.0, 0

    def soak(phase: dict[str, Any]) -> None:
        nonlocal now, step
        for number in range(1, 11):
            rows.append(cell(2000.0, kind="soak", step=step, round=number, elapsed_s=now, **phase))
            now += 1.0
        step += 1

    soak({})
    for turn, wait in enumerate(waits, start=1):
        phase = {"phase": "wait", "phase_value": f"{wait}s", "phase_pass": turn}
        for number in range(1, bursts + 1):
            iops = 2000.0 if number == 1 else 2000.0 + 100 * wait
            idle_ms = None if number == 1 else 1000.0 * wait
            rows.append(cell(iops, step=step, round=number, elapsed_s=now, pause_s=float(wait), idle_ms=idle_ms,
                             **phase))  # fmt: skip
            now += 1.0 + wait
        step += 1
        soak(phase)
    return pd.DataFrame(rows)


CACHE_BYTES, FAST_MIB_S, SLOW_MIB_S = 1000 << 20, 500.0, 100.0


def cached(free: tuple[float, ...] = (1.0, 0.0, 0.4, 1.0), slices: int = 10, scatter: float = 0.0) -> pd.DataFrame:
    """Bursts of writes, at first and after waits of 1, 2 ... minutes, that find these shares of a cache free."""
    rng, rows, now = np.random.default_rng(1), [], 0.0
    for step, share in enumerate(free):
        phase = {"phase": "idle", "phase_value": f"{step}min", "phase_pass": step} if step else {}
        left = share * CACHE_BYTES
        for number in range(1, slices + 1):
            factor = float(np.exp(scatter * rng.standard_normal()))
            fast, slow = (rate * factor * (1 << 20) for rate in (FAST_MIB_S, SLOW_MIB_S))
            at_fast_s = min(left / fast, 1.0)
            written = at_fast_s * fast + (1 - at_fast_s) * slow
            left -= at_fast_s * fast
            rows.append(cell(written / 131072, 0, 131072, 1, 32, "sequential", kind="soak", step=step, round=number,
                             elapsed_s=now, runtime_s=1.0, bytes_written=int(written),
                             bandwidth_mib_s=written / (1 << 20), **phase))  # fmt: skip
            now += 1.0
        now += 60.0
    return pd.DataFrame(rows)


def zoned(positions: int = 5) -> pd.DataFrame:
    """Return three rounds of sequential reads and writes from the outer zone to the inner one."""
    rows = []
    for number in (1, 2, 3):
        for place in range(positions):
            start = place / positions
            for read in (100, 0):
                row = cell(200 - 100 * start, read, 1 << 20, 1, 8, "sequential", round=number,
                           cell=2 * place + (not read), range_start=start, range_share=0.01)  # fmt: skip
                rows.append({**row, "workload": row["workload"] + (f", from {100 * start:g}%" if start else "")})
    return pd.DataFrame(rows)


def states() -> pd.DataFrame:
    """Four cells of a new drive, and again of the drive at work, at a tenth of the rate for writes."""
    rows = []
    for step, phase in enumerate(("new", "working")):
        for place, (pattern, size) in enumerate((("random", 4096), ("sequential", 131072))):
            for share in (100, 0):
                iops = 1e4 / (1 + 3 * place) * (0.1 if step and not share else 1.0)
                rows.append(cell(iops, share, size, 1, 32, pattern, step=step, round=1, cell=2 * place + share // 100,
                                 phase=phase, phase_pass=1))  # fmt: skip
    return pd.DataFrame(rows)


def crossed(recovers: bool = True, slices: int = 20) -> pd.DataFrame:
    """Sequential, random, sequential writes; the rate recovers half-way through the third part, or never."""
    rows, now = [], 0.0
    for step, (pattern, size) in enumerate((("sequential", 1 << 20), ("random", 8192), ("sequential", 1 << 20))):
        for number in range(1, slices + 1):
            iops = 900.0 if step == 1 else 200.0 if step == 0 or (recovers and number > slices // 2) else 120.0
            rows.append(cell(iops, 0, size, 1, 32, pattern, kind="soak", step=step, round=number, elapsed_s=now))
            now += 1.0
    return pd.DataFrame(rows)


def bins(median_us: float = 90.0, ios: int = 2_000_000, **place: Any) -> pd.DataFrame:
    """Return latency bins of a log-normal distribution."""
    edges = median_us * 1e3 * np.exp(np.arange(-60, 200) * 0.0155)
    shape = np.exp(-((np.log(edges / median_us / 1e3) / 0.3) ** 2) / 2)
    row = {**key(), "step": 0, "kind": "soak", "round": 1, "cell": 0, "workload": "RND 4KiB 100/0", "phase": None,
           "phase_value": None, "phase_pass": None, "direction": "read"} | place  # fmt: skip
    counts = np.floor(ios * shape / shape.sum()).astype(int)
    return pd.DataFrame({**row, "latency_ns": edges.astype(int), "count": counts})


def turns() -> dict[str, pd.DataFrame]:
    """Latency bins and cells of three points, each after a soak that only prepares."""
    frames, rows = [], []
    for place, (name, t, q) in enumerate((("max", 4, 4), ("mid", 2, 4), ("min", 1, 1))):
        for part, kind in enumerate(("prepares", "measures")):
            turn = {"phase": "point", "phase_value": name, "phase_pass": place + 1, "step": 2 * place + part}
            frames.append(bins(5e4 if kind == "prepares" else 100.0 * (3 - place), **turn))
            rows.append(cell(1e4, 100, threads=t, depth=q, kind="soak", point=name, **turn))
    return {"latency_bins": pd.concat(frames, ignore_index=True), "cells": pd.DataFrame(rows)}


def together(drives: int = 3, seconds: int = 60, directions: tuple[str, ...] = ("write",)) -> dict[str, pd.DataFrame]:
    """Series and cells of drives that started a tenth of a second apart; two slices each."""
    series, cells = [], []
    began = pd.Timestamp("2026-01-01T00:00:00Z").as_unit("ms")
    for place in range(drives):
        for number in (1, 2):
            start = began + pd.Timedelta(milliseconds=100 * place) + pd.Timedelta(seconds=(number - 1) * seconds)
            where = {**key(f"drive-{place}"), "step": 0, "kind": "soak", "round": number, "cell": 0}
            cells.append(cell(1000.0, started=start, **where))
            for direction in directions:
                series += [{**where, "time_s": float(second), "direction": direction, "iops": 1000.0 * (place + 1),
                            "bandwidth_mib_s": 4.0, "mean_latency_us": 100.0}
                           for second in range(1, seconds + 1)]  # fmt: skip
    return {"series": pd.DataFrame(series), "cells": pd.DataFrame(cells)}
