"""The worked example of docs/how-to/figure.md: one file makes a figure."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]
STEPS = """
import sys
import pandas as pd
from pathlib import Path
from drivelab.figures.base.sheets import draw
from drivelab.stages.figure_kinds import FIGURES_OF, figure_code
assert "rate_histogram" in FIGURES_OF["soak"]
assert figure_code(["soak"])["rate_histogram"]
draw({"rate_histogram": Path(sys.argv[2])}, {"cells": pd.read_pickle(sys.argv[1])}, "op7, test")
"""


def test_the_example_of_the_page_is_a_figure_with_values(made: ModuleType, tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/figure.md").read_text(encoding="utf-8")
    (name,) = re.findall(r"Save this as `scripts/(\S+\.py)`", page)
    (module,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    library = tmp_path / "scripts"
    shutil.copytree(ROOT / "scripts", library, ignore=shutil.ignore_patterns("__pycache__"))
    (library / name).write_text(module, encoding="utf-8")
    cells = made.soak()
    cells.to_pickle(tmp_path / "cells")
    command = [sys.executable, "-c", STEPS, str(tmp_path / "cells"), str(tmp_path / "rate_histogram")]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(library)}, cwd=tmp_path)
    svg = (tmp_path / "rate_histogram.svg").read_text(encoding="utf-8")
    assert "How often each I/O rate" in svg
    heights = re.findall(r'"name":"_container0"|"y":\[([\d,]+)\]', svg)
    assert sum(map(int, heights[0].split(","))) == len(cells), "each slice is in a bar"
