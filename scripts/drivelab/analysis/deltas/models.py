"""Compare models of drives: the unit of replication is the specimen, and its value the mean of its recordings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import CONFIDENCE_PCT, MARGIN_PCT, deltas_table
from drivelab.analysis.values.summary import pooled
from drivelab.tables.schemas import SCHEMAS


def model_deltas(
    summary: pd.DataFrame,
    models: Mapping[str, str],
    basis: str,
    *,
    margin_pct: float = MARGIN_PCT,
    confidence_pct: float = CONFIDENCE_PCT,
) -> pd.DataFrame:
    """Make a table like `deltas` of the other models against that of the drive `basis`.

    `summary` has all drives; `models` has the model of each drive that has one. A verdict needs three specimens a side.
    `basis_n` and `comparison_n` count specimens, and so do `recordings_needed`, doubts and remarks. Empty without a
    second model.
    """
    of_models = summary[summary["drive"].isin(models)].to_dict("records")
    values = pooled(_specimen({str(name): value for name, value in row.items()}, models) for row in of_models)
    if values["drive"].nunique() < 2 or models.get(basis) not in set(values["drive"]):
        return pd.DataFrame(columns=SCHEMAS["deltas"].names)
    deltas = deltas_table(values, models[basis], margin_pct=margin_pct, confidence_pct=confidence_pct)
    for column in ("doubts", "remarks"):
        deltas[column] = [[words.replace("recordings", "specimens") for words in of_one] for of_one in deltas[column]]
    return deltas


def _specimen(row: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of `summary` as one value of a model, for `pooled`."""
    known = row["asymptote_pct"] if row["asymptote_pct"] == row["asymptote_pct"] else None
    return {
        **row, "drive": models[row["drive"]], "recording": row["drive"], "run": 1, "samples": [row["value"]], "n": 1,
        "scope": "recordings", "evidence": list(row["evidence"]), "asymptote_pct": known,
    }  # fmt: skip
