"""The worked example of docs/how-to/figure.md: one file makes a figure."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from doors import carried_out

STEPS = """
import sys
import pandas as pd
from pathlib import Path
from drivelab.figures.base.sheets import draw
from drivelab.figures.of_recording import FIGURES_OF
assert "rate_histogram" in FIGURES_OF["soak"]
draw({"rate_histogram": Path(sys.argv[2])}, {"cells": pd.read_pickle(sys.argv[1])}, "op7, test")
"""


def test_the_example_of_the_page_is_a_figure_with_values(made: ModuleType, tmp_path: Path) -> None:
    cells = made.soak()
    cells.to_pickle(tmp_path / "cells")
    carried_out("figure.md", tmp_path, STEPS, tmp_path / "cells", tmp_path / "rate_histogram")
    svg = (tmp_path / "rate_histogram.svg").read_text(encoding="utf-8")
    assert "How often each I/O rate" in svg
    heights = re.findall(r'"name":"_container0"|"y":\[([\d,]+)\]', svg)
    assert sum(map(int, heights[0].split(","))) == len(cells), "each slice is in a bar"
