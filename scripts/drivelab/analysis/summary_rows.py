"""What all rows of the table `summary` are made of: key, name, kind, verdict and taint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from drivelab.analysis.labels import KINDS, UNITS
from drivelab.analysis.taint import digest, told
from drivelab.analysis.verdict import FAULTS, RSE_OK, RSE_TOO_HIGH, TAINTED, TOO_FEW_RUNS
from drivelab.tables.schemas import KEY


def row(key: dict[str, Any], label: str, metric: str, **found: Any) -> dict[str, Any]:
    """A row of the table; `key` of `key_of`, `found` all that concerns the value.

    `centre` in it says which statistic of its `samples` the value is, see `spread`.
    """
    return {**key, "cell_label": label, "metric": metric, "kind": KINDS[metric], "unit": UNITS[metric], **found}


def key_of(rows: pd.DataFrame) -> dict[str, Any]:
    """Which recording rows are of."""
    return {column: rows[column].iloc[0] for column in KEY}


def odd(count: int) -> int:
    """The largest odd number that is not above."""
    return count if count % 2 else count - 1


def rse_verdict(rse_pct: float | None, threshold_pct: float) -> str:
    """Verdict on repeats; no relative standard error means that they are too few."""
    if rse_pct is None:
        return TOO_FEW_RUNS
    return RSE_OK if rse_pct <= threshold_pct else RSE_TOO_HIGH


def gravest(verdicts: list[str]) -> str:
    """Of several verdicts on one value; the first where none is a fault."""
    return next((fault for fault in FAULTS if fault in verdicts), verdicts[0])


def evidence(recording: str, directories: Iterable[str]) -> list[str]:
    """Where the cells of a recording are that a value stands on, each once, in order."""
    return [f"{recording}/{one}" for one in dict.fromkeys(directories)]


def taint(rows: pd.DataFrame) -> Iterable[str]:
    """Verdict on rows of cells, replays or passes of which one is tainted; empty else."""
    return [TAINTED] if rows["tainted"].any() else []


def taint_reason(rows: pd.DataFrame) -> str | None:
    return told(digest(rows["taint_reason"].dropna()))
