"""Write the results of a fleet with known differences between its drives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

PROTOCOLS = (
    "pts-iops", "pts-throughput", "pts-latency", "pts-write-saturation", "pts-idle-recovery", "qos-nines",
    "pts-cross-stimulus-recovery", "pts-demand-intensity", "stec-read-shares", "pts-composite-block-workload",
)  # fmt: skip
METRICS = (("iops", "speed", "IOPS", 50_000.0), ("bandwidth_mib_s", "speed", "MiB/s", 195.0),
           ("mean_latency_us", "time", "us", 640.0))  # fmt: skip


def made_fleet(folder: Path, count: int, cells: int = 6, slow: Sequence[int] = (7,)) -> list[dict[str, Any]]:
    """Write the parts of drives d1, d2 … below `folder` and return their outcomes.

    A drive has `cells` cells by METRICS for each of PROTOCOLS, each value the median of three recordings. Drives
    scatter by 1 %; those in `slow` are 20 % slower.
    """
    random = np.random.default_rng(8)
    return [
        _part(
            folder / f"drives/d{number}",
            f"d{number}",
            f"host-{number % 4}",
            0.8 if number in slow else 1.0,
            cells,
            random,
        )
        for number in range(1, count + 1)
    ]


def _part(part: Path, drive: str, host: str, speed: float, cells: int, random: np.random.Generator) -> dict[str, Any]:
    rows, conditions = [], []
    level = speed * float(random.lognormal(0, 0.01))
    for protocol in PROTOCOLS:
        recordings = [f"{drive}/{protocol}/{'0' * 12}-run{run}" for run in (1, 2, 3)]
        for recording in recordings:
            key = {"recording": recording, "drive": drive, "measurement": protocol}
            facets = {"serial": ("drive", f"S{drive}"), "host": ("host", host), "kernel": ("host", "6.1")}
            conditions += [
                {**key, "facet": name, "kind": kind, "value": value} for name, (kind, value) in facets.items()
            ]
        for cell in range(cells):
            for metric, kind, unit, usual in METRICS:
                value = usual * (level if kind == "speed" else 1 / level) / (cell + 1)
                samples = sorted(value * random.lognormal(0, 0.002, 3))
                rows.append(
                    {"drive": drive, "measurement": protocol, "protocol": protocol, "metric": metric, "kind": kind,
                     "cell_label": f"RND {4 << cell}KiB 0/100", "unit": unit, "value": samples[1], "n": 3,
                     "rse_pct": 0.2, "spread_low": samples[0], "spread_high": samples[2], "samples": samples,
                     "scope": "recordings", "mad": 0.1, "interval_low": samples[0], "interval_high": samples[2],
                     "asymptote_pct": 0.0, "disturbance_pct": None,
                     "statistic": "median of 3 recordings", "verdict": "steady" if cell == 0 else "in steady window",
                     "taint_reason": None, "host_limit": None, "reduced": False, "virtual": False, "clock": "wall",
                     "recordings": recordings, "evidence": [f"{recording}/cells/{cell}" for recording in recordings]}
                )  # fmt: skip
    tables = {
        "summary": pd.DataFrame(rows),
        "conditions": pd.DataFrame(conditions),
        "drives": pd.DataFrame([{**dict.fromkeys(SCHEMAS["drives"].names), "drive": drive, "serial": f"S{drive}",
                                 "model": "Made 1", "firmware": "F1", "virtual": False, "device": f"/dev/{drive}"}]),
        "hosts": pd.DataFrame([{**dict.fromkeys(SCHEMAS["hosts"].names), "host": host, "cpu": "known",
                                "cores": 8, "memory_bytes": 1 << 34,
                                **dict.fromkeys(("kernel", "os", "fio", "drivelab", "python"), "known")}]),
        **{name: SCHEMAS[name].empty_table().to_pandas() for name in ("exclusions", "traces")},
    }  # fmt: skip
    for name, table in tables.items():
        io.write(table, part / f"tables/{name}.parquet", name)
    count = 3 * len(PROTOCOLS)
    return {"drive": drive, "subjects": [drive], "state": "measured", "reasons": [], "recordings": count,
            "planned": count, "results": str(part)}  # fmt: skip
