"""The tables `summary` and `deltas` of many drives with known differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from rows import table

from drivelab.analysis.deltas.deltas import deltas_table

_METRICS = (("iops", "speed", "IOPS", 50_000.0), ("bandwidth_mib_s", "speed", "MiB/s", 195.0),
            ("mean_latency_us", "time", "us", 640.0))  # fmt: skip


def many_drives(count: int) -> dict[str, pd.DataFrame]:
    """Return the tables of drives d1, d2 …, which scatter by 1 %; d7 is 20 % slower. The basis is d1.

    Each has three recordings of two measurements, with a cell of three metrics.
    """
    random = np.random.default_rng(8)
    rows: list[dict[str, Any]] = []
    for drive in (f"d{number}" for number in range(1, count + 1)):
        level = (0.8 if drive == "d7" else 1.0) * float(random.lognormal(0, 0.01))
        for name in ("pts-iops", "pts-latency"):
            recordings = [f"{drive}/{name}/{'0' * 12}-run{run}" for run in (1, 2, 3)]
            for metric, kind, unit, usual in _METRICS:
                value = usual * (level if kind == "speed" else 1 / level)
                samples = sorted(value * random.lognormal(0, 0.002, 3))
                rows.append(
                    {"drive": drive, "measurement": name, "protocol": name, "cell_label": "RND 4KiB 0/100",
                     "metric": metric, "kind": kind, "unit": unit, "value": samples[1], "n": 3, "samples": samples,
                     "scope": "recordings", "interval_low": samples[0], "interval_high": samples[2],
                     "asymptote_pct": 0.0, "statistic": "median of 3 recordings", "verdict": "steady", "clock": "wall",
                     "recordings": recordings, "evidence": [f"{recording}/cells/0" for recording in recordings]}
                )  # fmt: skip
    summary = table("summary", rows)
    return {"summary": summary, "deltas": deltas_table(summary, "d1", margin_pct=5.0, confidence_pct=95.0)}
