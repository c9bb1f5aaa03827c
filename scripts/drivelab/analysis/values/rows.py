"""Build the common parts of rows of the table `summary`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from drivelab.analysis.verdict import FAULTS, HOST_LIMITED, RSE_OK, RSE_TOO_HIGH, TAINTED, TOO_FEW_RUNS
from drivelab.criteria.host_limit import most_severe
from drivelab.criteria.taint import digest, told
from drivelab.tables.labels import KINDS, UNITS
from drivelab.tables.schemas import KEY


def row(key: dict[str, Any], label: str, metric: str, **value: Any) -> dict[str, Any]:
    """Return a row of the table. `key` is from `key_of`, `value` has all columns of the value."""
    value.setdefault("host_limit", None)
    return {**key, "cell_label": label, "metric": metric, "kind": KINDS[metric], "unit": UNITS[metric], **value}


def key_of(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the key columns of the recording that the rows belong to."""
    return {column: rows[column].iloc[0] for column in KEY}


def odd(count: int) -> int:
    """Return the largest odd number up to `count`."""
    return count if count % 2 else count - 1


def rse_verdict(rse_pct: float | None, threshold_pct: float) -> str:
    """Return the verdict on repeats. Without a relative standard error they are too few."""
    if rse_pct is None:
        return TOO_FEW_RUNS
    return RSE_OK if rse_pct <= threshold_pct else RSE_TOO_HIGH


def gravest(verdicts: list[str]) -> str:
    """Return the gravest of several verdicts, or the first if none is a fault."""
    return next((fault for fault in FAULTS if fault in verdicts), verdicts[0])


def evidence(recording: str, directories: Iterable[str]) -> list[str]:
    """Return the paths of the cells behind a value, each once, in order."""
    return [f"{recording}/{directory}" for directory in dict.fromkeys(directories)]


def faults(rows: pd.DataFrame) -> list[str]:
    """Return the verdicts TAINTED and HOST_LIMITED, if any of the rows of table `cells` or `replays` is so."""
    return [*([TAINTED] if rows["tainted"].any() else []), *([HOST_LIMITED] if host_limit(rows) else [])]


def taint_reason(rows: pd.DataFrame) -> str | None:
    return told(digest(rows["taint_reason"].dropna()))


def host_limit(rows: pd.DataFrame) -> str | None:
    """Return why the host may be the limit of any of the rows; only cells of fio know."""
    return most_severe(rows["host_limit"].dropna()) if "host_limit" in rows.columns else None
