from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from rows import table

from drivelab.analysis.deltas.deltas import model_deltas
from drivelab.analysis.verdict import CANNOT_TELL, FASTER_BEYOND

MODELS = {f"a{number}": "Model A" for number in (1, 2, 3)} | {f"b{number}": "Model B" for number in (1, 2, 3)}


def _row(drive: str, value: float, cell: int, **changed: Any) -> dict[str, Any]:
    return {
        "drive": drive, "measurement": "m", "protocol": "m", "cell_label": str(cell), "metric": "iops", "kind": "speed",
        "unit": "IOPS", "value": value, "n": 3, "samples": [0.99 * value, value, 1.01 * value], "scope": "recordings",
        "statistic": "window average, geometric mean of 3 recordings", "verdict": "steady", "clock": "wall",
        "recordings": [f"{drive}/m/0-run{run}" for run in (1, 2, 3)], "asymptote_pct": 0.0, **changed,
    }  # fmt: skip


def _summary(levels: dict[str, float], **changed: Any) -> pd.DataFrame:
    return table("summary", [_row(drive, level * (cell + 1), cell, **changed) for drive, level in levels.items()
                             for cell in range(4)])  # fmt: skip


LEVELS = {"a1": 99.0, "a2": 100.0, "a3": 101.0, "b1": 119.0, "b2": 121.0, "b3": 120.0}


def test_the_specimens_of_a_model_are_its_values() -> None:
    deltas = model_deltas(_summary(LEVELS), MODELS, "a2")
    assert deltas[["basis", "comparison"]].drop_duplicates().values.tolist() == [["Model A", "Model B"]]
    assert set(deltas["verdict"]) == {FASTER_BEYOND}
    assert set(deltas["basis_n"]) == set(deltas["comparison_n"]) == {3}
    expected = 100 * (np.prod([119, 121, 120]) / np.prod([99, 100, 101])) ** (1 / 3) - 100
    assert deltas["delta_pct"].tolist() == pytest.approx([expected] * 4)


def test_two_specimens_give_no_verdict_however_many_recordings_they_have() -> None:
    deltas = model_deltas(_summary({name: level for name, level in LEVELS.items() if name[1] != "3"}), MODELS, "a1")
    assert set(deltas["verdict"]) == {CANNOT_TELL}
    assert list(deltas["doubts"].iloc[0]) == ["too few specimens (2 a side; a verdict needs 3)"]
    assert set(deltas["recordings_needed"]) == {3}


def test_drives_without_a_model_and_a_single_model_have_no_claim() -> None:
    assert model_deltas(_summary(LEVELS), {}, "a1").empty
    assert model_deltas(_summary(LEVELS), dict.fromkeys(MODELS, "Model A"), "a1").empty
    assert model_deltas(_summary(LEVELS), MODELS, "c1").empty


def test_a_fault_of_one_specimen_is_a_doubt_about_its_model() -> None:
    summary = _summary(LEVELS)
    summary.loc[summary["drive"] == "b2", "verdict"] = "not steady"
    deltas = model_deltas(summary, MODELS, "a1")
    assert set(deltas["verdict"]) == {CANNOT_TELL}
    assert "Model B: not steady" in deltas["doubts"].iloc[0]
