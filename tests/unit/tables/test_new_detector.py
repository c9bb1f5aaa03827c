"""The worked example of docs/how-to/detector.md: one file makes a detector."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
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


def test_the_example_finds_a_slow_first_round(tmp_path: Path) -> None:
    """In one recording each: a slow first round, one like the others, and too few rounds."""
    courses = ([80.0, 100, 101, 102, 100], [97.0, 100, 101, 102, 100], [50.0, 100, 100])
    parts = [rounds_table({"RND 4KiB 100/0": iops}).assign(recording=f"r{n}") for n, iops in enumerate(courses)]
    labelled = [cells.assign(cell_label=cell_labels(cells)) for cells in parts]
    pd.concat(labelled, ignore_index=True).to_pickle(tmp_path / "cells")
    result = json.loads(carried_out("detector.md", tmp_path, STEPS, tmp_path / "cells"))
    assert [(row["found"], row["value"]) for row in result] == [(True, pytest.approx(20)), (False, None)]
    slow, alike = (row["words"] for row in result)
    assert slow.startswith("the first of 5 rounds is 20 % slower than the slowest")
    assert alike.startswith("no slow first round in 1 cells")
