"""The worked example of docs/how-to/detector.md: one file makes a detector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from detector_tables import rounds_table
from doors import carried_out

from drivelab.tables.labels import cell_labels

STEPS = """
import sys
import pandas as pd
from drivelab.analysis.detectors import DETECTORS, findings_table
assert list(DETECTORS)[-1] == "warm-up"
found = findings_table({"cells": pd.read_pickle(sys.argv[1])})
print(found[found["detector"] == "warm-up"][["found", "value", "words"]].to_json(orient="records"))
"""


@pytest.mark.parametrize(
    ("iops", "rows"),
    [
        (
            [80.0, 100, 101, 102, 100],
            [(True, pytest.approx(20), "the first of 5 rounds is 20 % slower than the slowest")],
        ),
        ([97.0, 100, 101, 102, 100], [(False, None, "no slow first round in 1 cells")]),
        ([50.0, 100, 100], []),
    ],
    ids=["slow", "like the others", "too few rounds"],
)
def test_the_example_finds_a_slow_first_round(
    tmp_path: Path, iops: list[float], rows: list[tuple[bool, object, str]]
) -> None:
    cells = rounds_table({"RND 4KiB 100/0": iops})
    cells.assign(cell_label=cell_labels(cells)).to_pickle(tmp_path / "cells")
    result = json.loads(carried_out("detector.md", tmp_path, STEPS, tmp_path / "cells"))
    assert [(row["found"], row["value"]) for row in result] == [(is_found, value) for is_found, value, _ in rows]
    assert all(row["words"].startswith(words) for row, (_, _, words) in zip(result, rows, strict=True))
