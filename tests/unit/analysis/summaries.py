"""What tests of the table `summary` share: one of its values, and cells with two workloads at the same time."""

from __future__ import annotations

from typing import Any

import pandas as pd


def value(summary: pd.DataFrame, metric: str = "iops", label: str = "RND 4KiB 0/100") -> dict[str, Any]:
    """Return the only row of a metric and cell."""
    (row,) = summary[(summary["metric"] == metric) & (summary["cell_label"] == label)].to_dict("records")
    return dict(row)


def beside(rows: list[dict[str, Any]], reads: list[float]) -> list[dict[str, Any]]:
    """Add simultaneous reads of 8 KiB to the writes in `rows`: `reads` a second, which take 50 ms in all."""
    return [
        row | {
            "beside": "RND 8KiB 100/0 T1Q1", "workload": "RND 4KiB 0/100, beside RND 8KiB 100/0 T1Q1",
            "write_iops": row["iops"], "read_iops": read, "iops": row["iops"] + read,
            "write_bandwidth_mib_s": row["bandwidth_mib_s"], "read_bandwidth_mib_s": read / 128,
            "bandwidth_mib_s": row["bandwidth_mib_s"] + read / 128, "write_mean_latency_us": row["mean_latency_us"],
            "read_mean_latency_us": 5e4 / read, "read_ios": round(read * row["runtime_s"]),
            "workloads": ["writes", "reads"],
            "workload_iops": [row["iops"], read], "workload_ios": [row["write_ios"], read * row["runtime_s"]],
            "workload_bandwidth_mib_s": [row["bandwidth_mib_s"], read / 128],
            "workload_mean_latency_us": [row["mean_latency_us"], 5e4 / read], "workload_max_latency_us": [9e6, 60.0],
        }
        for row, read in zip(rows, reads, strict=True)
    ]  # fmt: skip


WRITES, READS = (f"RND 4KiB 0/100, beside RND 8KiB 100/0 T1Q1, {direction}" for direction in ("writes", "reads"))
"""Labels of the workloads of `beside`."""
