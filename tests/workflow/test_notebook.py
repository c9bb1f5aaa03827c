"""The example notebook, cell by cell, on a finished study."""

from __future__ import annotations

import ast
import json
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from mini_project import ROOT, Project


def test_every_notebook_cell_runs_and_shows_its_result(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((ROOT / "docs/explore.ipynb").read_text(encoding="utf-8"))
    (finished.folder / "docs").mkdir(exist_ok=True)
    monkeypatch.chdir(finished.folder / "docs")
    names: dict[str, Any] = {}
    shown = [run("".join(cell["source"]), names) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in notebook["cells"]), "the example must not contain outputs"
    frames = [value for value in shown if isinstance(value, pd.DataFrame)]
    assert set(frames[0]["drive"]) == {"op7", "op28"}
    assert set(names["rounds"]["drive"]) == {"op7", "op28"}
    assert (names["rounds"]["mean_iops"] > 0).all()
    assert isinstance(shown[-1], Figure)
    assert shown[-1].axes


def run(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; return the value of its last expression, which a notebook shows, or None."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
