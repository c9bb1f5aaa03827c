"""Synthetic tables of the PTS tests, in the shape of the real ones, around printed TKperf results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import protocol_frames as frames
import replay_frames
from protocol_frames import key, window

from drivelab.core.units import format_size

MIXES = (100, 95, 65, 50, 35, 5, 0)
# Intel DC S4600 960 GB, TKperf 2.1 report, 3.3: window averages by block size, mixes as above
S4600_IOPS = {
    512: (80532.6, 74927.0, 60760.2, 57696.4, 55877.2, 56019.2, 57542.0),
    4096: (80928.6, 77497.2, 66664.6, 62314.0, 60703.4, 60581.8, 61265.2),
    8192: (46198.6, 45111.4, 42267.8, 42166.4, 40700.6, 41827.2, 41829.4),
    16384: (25422.0, 25858.6, 25359.4, 24916.2, 24519.8, 24495.8, 25494.6),
    32768: (10539.8, 10944.6, 11464.8, 12170.6, 12348.0, 13107.8, 13850.4),
    65536: (7139.2, 6724.8, 6172.8, 6530.0, 6250.4, 6765.2, 7270.8),
    131072: (3479.2, 3316.6, 3003.0, 3063.0, 3056.8, 3474.4, 3783.0),
    1048576: (513.2, 489.0, 425.0, 411.2, 421.4, 465.6, 485.2),
}
S4600_WINDOW = (60546.0, 60013.0, 62932.0, 61774.0, 61061.0)
LONG_NAME = "nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0R504321_namespace-1"
IOPS = "pts-iops"


def _cell(iops: float, share: int, size: int, threads: int, depth: int, **more: Any) -> dict[str, Any]:
    """Return a row of table `cells` with the results of each direction; latencies follow from the rate."""
    bandwidth, latency, reads = iops * size / 2**20, threads * depth / max(iops, 1e-9) * 1e6, share / 100
    return frames.cell(
        iops, share, size, threads, depth,
        **{"read_iops": iops * reads, "write_iops": iops * (1 - reads), "read_bandwidth_mib_s": bandwidth * reads,
           "write_bandwidth_mib_s": bandwidth * (1 - reads), "min_latency_us": latency / 3,
           "max_latency_us": latency * 40, "p99999_latency_us": latency * 30, "p99_latency_us": latency * 6,
           "user_cpu_pct": 2.0, "system_cpu_pct": 6.0, "step": 1, **more},
    )  # fmt: skip


def cells(
    rounds: int = 7,
    drive: str = "op7",
    sizes: tuple[int, ...] = tuple(S4600_IOPS),
    mixes: tuple[int, ...] = MIXES,
    factor: float = 1.0,
    drift: float = 0.0,
    **changed: Any,
) -> pd.DataFrame:
    """Return a random-access loop that settles after two rounds, or drifts by `drift` each round."""
    random, rows = np.random.default_rng(7), []
    for number in range(1, rounds + 1):
        fresh = 1 + 0.5 * np.exp(-(number - 1) / 0.7) + drift * number
        for order, (share, size) in enumerate((share, size) for share in mixes for size in sizes):
            iops = S4600_IOPS[size][MIXES.index(share)] * factor * (fresh if share < 100 else 1)
            rows.append(_cell(iops * random.normal(1, 0.012), share, size, 4, 32, round=number, cell=order,
                              elapsed_s=60.0 * len(rows), **key(drive, IOPS, **changed)))  # fmt: skip
    return pd.DataFrame(rows)


def steady_state(
    values: tuple[float, ...] = S4600_WINDOW,
    start: int = 3,
    metric: str = "iops",
    variable: str = "RND 4KiB 0/100",
    **changed: Any,
) -> pd.DataFrame:
    """Return one window of the drive op7."""
    return pd.DataFrame([window(values, start, variable, metric=metric, step=1, **key(measurement=IOPS, **changed))])


def soak(
    drive: str = "op7",
    slices: int = 40,
    slice_s: float = 1.0,
    fresh: float = 9000.0,
    settled: float = 1500.0,
    cliff: float = 0.25,
    measurement: str = "pts-write-saturation",
    **changed: Any,
) -> pd.DataFrame:
    """Return a soak of a fresh drive with a write cliff after a share `cliff` of the slices."""
    random, rows, total = np.random.default_rng(len(drive)), [], 0
    for number in range(1, slices + 1):
        position = number / slices - cliff
        rate = fresh if position < 0 else settled + 0.35 * (fresh - settled) * np.exp(-position * 9)
        iops = rate * random.normal(1, 0.03)
        written = int(iops * slice_s) * 4096
        total += written
        rows.append(_cell(iops, 0, 4096, 2, 8, kind="soak", round=number, elapsed_s=5.0 + (number - 1) * slice_s,
                          runtime_s=slice_s, write_ios=int(iops * slice_s), bytes_written=written,
                          bytes_written_total=total, **key(drive, measurement, **changed)))  # fmt: skip
    return pd.DataFrame(rows)


def drives(**capacities: int) -> pd.DataFrame:
    return pd.DataFrame([{"drive": drive, "capacity_bytes": size} for drive, size in capacities.items()])


def latency_bins(
    drive: str = "op7",
    median_us: float = 90.0,
    ios: int = 2_000_000,
    kind: str = "soak",
    share: int = 0,
    size: int = 4096,
    measurement: str = "pts-latency",
    **changed: Any,
) -> pd.DataFrame:
    """Return bins 1.5 % wide: a bell on a logarithmic scale, with a rare slow mode."""
    centre = np.arange(-60, 380) * 0.0155
    shape = np.exp(-((centre / 0.16) ** 2) / 2) + 2e-4 * np.exp(-(((centre - 2.8) / 0.7) ** 2) / 2)
    counts = np.floor(ios * shape / shape.sum()).astype(int)
    row = {**key(drive, measurement, **changed), "step": 2, "kind": kind, "round": 1, "cell": 0,
           "workload": f"RND {format_size(size)} {share}/{100 - share}", "phase": None, "phase_value": None,
           "phase_pass": None, "point": None, "pattern": "random", "read_share_pct": share,
           "block_size_bytes": size}  # fmt: skip
    bins = {"latency_ns": (median_us * 1e3 * np.exp(centre)).astype(int), "count": counts}
    directions = ["read"] * (share == 100) + ["write"] * (share == 0) or ["read", "write"]
    return pd.concat([pd.DataFrame(row | {"direction": name} | bins) for name in directions], ignore_index=True)


def replayed(*drives: str, **changed: Any) -> dict[str, pd.DataFrame]:
    """Return the REPLAY tables of a recording of each drive, by default op7; see `replay_frames.tables`."""
    return replay_frames.together(
        *(replay_frames.tables(drive, requests=600, **changed) for drive in drives or ("op7",))
    )


def deltas(
    names: tuple[str, ...] = ("op28",),
    sizes: tuple[int, ...] = (4096, 65536, 1048576),
    mixes: tuple[int, ...] = (100, 65, 0),
) -> pd.DataFrame:
    """Return deltas of IOPS cells and a replay against op7; those within 5 % have no verdict."""
    random, result = np.random.default_rng(5), []
    cells = [(IOPS, f"RND {format_size(size)} {share}/{100 - share}", "iops", "speed", "IOPS", share)
             for share in mixes for size in sizes]  # fmt: skip
    for measurement, cell, metric, kind, unit, share in (
        *cells, ("trace-replay", "sqlite-inserts", "mean_latency_us", "time", "us", 30)
    ):  # fmt: skip
        for number, name in enumerate(names):
            delta = (100 - share) * (0.6 + 0.2 * number) * random.normal(1, 0.2) - 4 * number
            verdict = "faster beyond the margin" if delta > 0 else "slower (size unsure)"
            result.append({
                "measurement": measurement, "protocol": measurement, "cell_label": cell, "metric": metric,
                "kind": kind, "unit": unit, "basis": "op7", "comparison": name, "basis_value": 100.0,
                "comparison_value": 100 + delta, "delta_pct": delta,
                "interval_low_pct": delta - 0.2 * abs(delta) - 0.1,
                "interval_high_pct": delta + 0.2 * abs(delta) + 0.1, "margin_pct": 5.0,
                "verdict": "cannot tell" if abs(delta) < 6 else verdict, "reduced": True, "virtual": True,
                "clock": "wall", "doubts": [], "remarks": [],
            })  # fmt: skip
    return pd.DataFrame(result)


def summary(**changed: Any) -> pd.DataFrame:
    return pd.DataFrame(
        [{"drive": drive, "reduced": False, "virtual": False, "clock": "wall"} | changed for drive in ("op7", "op28")]
    )
