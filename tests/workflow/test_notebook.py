"""The example notebook and the figures and tables for papers, on a finished study."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from mini_project import ROOT, Project
from pypdf import PdfReader

from drivelab.explore import paper
from drivelab.explore.redrawing import places, redraw
from drivelab.figures.base.style import svg
from drivelab.figures.base.svg import without_values


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "tools/notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_notebook_cell_shows_what_is_stored(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((ROOT / "docs/explore.ipynb").read_text(encoding="utf-8"))
    (finished.folder / "docs").mkdir(exist_ok=True)
    monkeypatch.chdir(finished.folder / "docs")
    stored = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = []
    for old, (new, value) in zip(stored, tool().executed(notebook, ("../results/tutorial", "../results")), strict=True):
        assert old["execution_count"] == new["execution_count"]
        assert [kinds(output) for output in old["outputs"]] == [kinds(output) for output in new["outputs"]], old
        if isinstance(value, pd.DataFrame) and value.columns.name is None:
            head = "".join(next(output["data"]["text/plain"] for output in old["outputs"] if "data" in output))
            assert all(column in head for column in value.columns), "the stored table has these columns"
        shown.append(value)
    assert set(shown[0]["drive"]) == {"op7", "op28"}
    assert isinstance(shown[-1], Figure)


def kinds(output: dict[str, Any]) -> list[str]:
    return sorted(output.get("data", {"stream": ""}))


def test_figures_are_drawn_again_as_they_are(finished: Project) -> None:
    results = finished.folder / "results"
    known = places(results)
    of_drives = next(place for place in known if place.endswith("/comparison"))
    of_recording = next(place for place in known if place.startswith("op7/") and place.endswith("/window"))
    for place in (of_drives, of_recording):
        stored = (results / f"figures/{place}.svg").read_text(encoding="utf-8")
        assert without_values(svg(redraw(results, place))) == without_values(stored)


def test_a_paper_gets_figures_tables_and_captions(
    finished: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, of_study = finished.folder / "results", tmp_path / "paper"
    monkeypatch.setattr(paper, "places", lambda _: ["comparison/pts-iops/comparison"])
    figure, *tables, captions = paper.write_for_paper(results, of_study, "pdf", "latex")
    assert figure == of_study / "figures/comparison-pts-iops-comparison.pdf"
    page = PdfReader(figure).pages[0]
    fonts = page["/Resources"]["/Font"].values()
    assert {font.get_object()["/Subtype"] for font in fonts} <= {"/Type0", "/TrueType"}, "no Type 3 fonts"
    assert "REDUCED protocol" in page.extract_text()
    assert [path.name for path in tables] == ["values.tex", "comparison.tex"]
    table = tables[1].read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.endswith(r"\\")]
    assert len({line.replace(r"\&", "").count("&") for line in rows}) == 1
    assert table.isascii()
    for text in (table, captions.read_text(encoding="utf-8")):
        assert "reduced" in text
        assert "SHA-256" in text
    for form, begin in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        path, _ = paper.write_for_paper(results, of_study, form, None)
        assert path.read_bytes().startswith(begin)


def test_the_report_command_writes_tables_for_a_paper(copy: Project) -> None:
    done = copy.drivelab("report", "config/mini.yaml", "--tables", "csv")
    assert done.returncode == 0, done.stderr
    assert "results/report/captions.md" in done.stdout
    values = pd.read_csv(copy.folder / "results/report/tables/values.csv")
    assert {"value", "verdict", "reduced"} <= set(values)
    refused = copy.drivelab("report", "config/mini.yaml", "--output", "elsewhere")
    assert refused.returncode == 2
    assert "--output needs --figures or --tables" in refused.stderr
