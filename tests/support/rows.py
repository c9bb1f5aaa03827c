"""Make complete, typed rows of tables: each passes through the schema of its table."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa

from drivelab.plan.cell import Cell
from drivelab.tables.labels import cell_labels
from drivelab.tables.schemas import SCHEMAS

_ZERO: dict[str, Any] = {"string": "", "bool": False, "list<item: double>": [], "list<item: string>": []}


@cache
def _empty(name: str) -> dict[str, Any]:
    return {f.name: None if f.nullable else _ZERO.get(str(f.type), 0) for f in SCHEMAS[name]}


def table(name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return table `name`; columns missing in a row are null, zero or empty; `cell_label` is computed."""
    empty = _empty(name)
    for row in rows:
        assert not row.keys() - empty.keys(), row.keys() - empty.keys()
    result = pa.Table.from_pylist([{**empty, **row} for row in rows], schema=SCHEMAS[name]).to_pandas()
    return result.assign(cell_label=cell_labels(result)) if name == "cells" else result


def key(drive: str = "op7", measurement: str = "pts-iops", run: int = 1, **changed: Any) -> dict[str, Any]:
    return {
        "recording": f"{drive}/{measurement}/0123456789ab-run{run}", "drive": drive, "serial": f"S-{drive}",
        "protocol": measurement, "measurement": measurement, "run": run, "clock": "wall", **changed,
    }  # fmt: skip


def cell(iops: float, *, read_share: int = 0, size: int = 4096, runtime_s: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return metrics of a random cell with 2 threads at queue depth 8."""
    ios = round(iops * runtime_s)
    return {
        "workload": Cell("random", read_share, size, 2, 8).workload, "pattern": "random", "read_share_pct": read_share,
        "block_size_bytes": size, "threads": 2, "queue_depth": 8, "runtime_s": runtime_s, "write_ios": ios,
        "iops": iops, "bandwidth_mib_s": iops * size / 2**20, "mean_latency_us": 16e6 / iops, **more,
    }  # fmt: skip


def loop(
    values: list[float], *, step: int = 0, where: dict[str, Any] | None = None, **more: Any
) -> list[dict[str, Any]]:
    """Return the rows of a loop of one cell; `values` has the IOPS of each round."""
    return [
        {**(where or key()), "step": step, "kind": "loop", "round": number, **cell(iops, **more)}
        for number, iops in enumerate(values, 1)
    ]


def soak(
    values: list[float], *, step: int = 0, where: dict[str, Any] | None = None, **more: Any
) -> list[dict[str, Any]]:
    """Return the rows of a soak; `values` has the IOPS of each slice."""
    return [
        {**(where or key()), "step": step, "kind": "soak", "round": number, **cell(iops, **more)}
        for number, iops in enumerate(values, 1)
    ]
