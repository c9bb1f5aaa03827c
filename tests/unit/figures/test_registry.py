"""Figures by name: their modules are loaded late, and change only the digests of their jobs."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pts_frames as pts
import pytest
from doors import carried_out

from drivelab.figures.base.sheets import ROWS
from drivelab.figures.of_recording import FIGURES_OF
from drivelab.figures.registry import ALL, FIGURES, TRACE_FIGURES, discovered

LIBRARY = Path(__file__).resolve().parents[3] / "scripts"


def test_every_figure_of_a_plan_is_known() -> None:
    names = {name for kind in FIGURES_OF for name in FIGURES_OF[kind]}
    assert names == set(FIGURES) | set(TRACE_FIGURES), "each is declared for conditions that there are"
    for kind in ALL.values():
        assert set(kind.when) <= set(FIGURES_OF)
        assert kind.rows in ROWS
        assert kind.title
        assert kind.caption.endswith(".")


def test_a_declaration_is_what_the_module_holds() -> None:
    """Declarations are read without running the module, so both could differ."""
    for name, kind in ALL.items():
        module = import_module(f"drivelab.figures.{kind.module}")
        assert kind in [replace(declared, module=kind.module) for declared in module.FIGURES], name


@pytest.mark.parametrize("declared", ["FigureKind(name=NAME)", "FigureKind(name='a')", "[]"])
def test_a_declaration_that_cannot_be_read_is_refused(tmp_path: Path, declared: str) -> None:
    (tmp_path / "new.py").write_text(f"\nFIGURES = (\n    {declared},\n)\n")
    with pytest.raises(ValueError, match="literal"):
        discovered(tmp_path)


def test_a_name_is_declared_once(tmp_path: Path) -> None:
    text = (LIBRARY / "drivelab/figures/kinds/latency.py").read_text()
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match="declared by one as well"):
        discovered(tmp_path)


def test_naming_figures_loads_nothing_that_draws() -> None:
    code = (
        "import sys; from drivelab.figures.of_recording import FIGURES_OF; FIGURES_OF['steady']; "
        "print([name for name in ('matplotlib', 'pandas', 'numpy') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(LIBRARY)})
    assert result.stdout.strip() == "[]"


STEPS = """
import sys
import pandas as pd
from pathlib import Path
from drivelab.figures.base.sheets import draw
from drivelab.figures.of_recording import FIGURES_OF
assert "rate_histogram" in FIGURES_OF["soak"]
draw(["rate_histogram"], {"cells": pd.read_pickle(sys.argv[1])}, "op7, test", Path(sys.argv[2]))
"""


def test_the_example_of_the_page_is_a_figure_with_values(tmp_path: Path) -> None:
    cells = pts.soak()
    cells.to_pickle(tmp_path / "cells")
    carried_out("figure.md", tmp_path, STEPS, tmp_path / "cells", tmp_path)
    svg = (tmp_path / "rate_histogram.svg").read_text(encoding="utf-8")
    assert "How often each I/O rate" in svg
    heights = re.findall(r'"name":"_container0"|"y":\[([\d,]+)\]', svg)
    assert sum(map(int, heights[0].split(","))) == len(cells), "each slice is in a bar"
