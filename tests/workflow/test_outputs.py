"""Further outputs of a finished study: JSON of every command, notebook, papers, pages and pictures."""

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

from drivelab.cli.introspection import arguments_of, subcommands
from drivelab.cli.main import main, parser
from drivelab.explore import paper
from drivelab.explore.redrawing import places, redraw
from drivelab.figures.base.style import svg
from drivelab.figures.base.svg import values_of, without_values

OF_STUDY = """\
plan config/mini.yaml
study check config/mini.yaml
study status config/mini.yaml
compare op7 op28
query summary
study new another --drives op7 op28
verify results/recordings""".splitlines()
ALONE = """\
doctor
drives
protocol check config/protocols/pts-iops.yaml
protocol list
protocol show pts-latency
protocol show trace-replay --scale demo
virtual status
trace formats
trace info boot-read
trace list
trace decode traces/blktrace-mix -o decoded.parquet
trace filter boot-read --operation read --to 1s --idle-above 1ms -o reads.parquet
trace filter boot-read --times 2 -o twice.parquet
trace synthesise boot-read -o alike.yaml
trace export boot-read --format fio-iolog-v3 -o text.txt
trace import text.txt -o again.parquet""".splitlines()
ELSEWHERE = {
    "archive verify": "workflow/test_archive.py",
    "capture": "drives/test_capture.py",
    "import": "unit/imported/test_cli_import.py",
    "quick": "unit/quick/test_quick_command.py",
    "replay": "drives/test_replay_command.py",
}
"""Tests that check the JSON of commands which need a device or other results."""


@pytest.mark.parametrize("command", OF_STUDY)
def test_output_of_a_study_is_json(command: str, finished: Project) -> None:
    done = finished.drivelab(*command.split(), "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


def test_other_output_is_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("Snakefile", "config", "traces"):
        (tmp_path / name).symlink_to(ROOT / name)
    for command in ALONE:
        status = main([*command.split(), "--json"])
        captured = capsys.readouterr()
        assert status == 0 or command == "doctor", captured.err
        json.loads(captured.out)


def test_every_json_is_tried() -> None:
    with_json = {
        name.removeprefix("drivelab ")
        for name, command, _ in subcommands(parser())
        if any("--json" in argument.option_strings for argument in arguments_of(command)[0])
    }
    lines = [f"{line} " for line in (*OF_STUDY, *ALONE)]
    for test in ELSEWHERE.values():
        text = (ROOT / "tests" / test).read_text()
        assert '"--json"' in text or "replay_commands" in text, test
    tried = {name for name in with_json if any(line.startswith(f"{name} ") for line in lines)}
    assert tried | set(ELSEWHERE) == with_json


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


def test_figures_are_drawn_again_as_they_are(drawn: Project) -> None:
    results = drawn.folder / "results"
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


def test_each_picture_carries_its_values(drawn: Project) -> None:
    pictures = sorted((drawn.folder / "results/figures").glob("**/*.svg"))
    assert pictures
    for picture in pictures:
        values = json.loads(values_of(picture.read_text(encoding="utf-8")))
        assert all(panel["marks"] for panel in values["panels"]), picture


def test_a_deleted_report_is_made_again(copy: Project) -> None:
    (copy.folder / "results/report/index.html").unlink()
    assert copy.to_do() == {"report": 1}
