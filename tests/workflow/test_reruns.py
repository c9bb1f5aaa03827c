"""Reruns: nothing runs twice, no current figure is redrawn, no file of another study is used.

test_rerun_truth.py checks the jobs that each change leads to.
"""

from __future__ import annotations

import os
import re
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from mini_project import Project

from drivelab.figures.registry import ALL


def test_a_dry_run_plans_the_whole_chain(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    jobs = project.to_do()
    assert jobs["purge"] == jobs["precondition"] == 6
    assert (jobs["measure"], jobs["replay"], jobs["tables"], jobs["report"]) == (4, 2, 6, 1)
    assert not (project.folder / "results").exists(), "a dry run writes nothing"


def test_a_finished_study_has_nothing_to_do(finished: Project) -> None:
    assert len(finished.recordings()) == 6
    for file in ("report/index.html", "tables/summary.parquet", "tables/deltas.parquet"):
        assert (finished.folder / "results" / file).stat().st_size > 0
    assert finished.to_do() == {}


MARK = "<!-- drawn before -->"


def marked(project: Project) -> list[Path]:
    """Mark all figures and return them; drawing a figure again removes its mark."""
    figures = sorted((project.folder / "results/figures").rglob("*.svg"))
    for path in figures:
        times = path.stat()
        path.write_text(path.read_text() + MARK)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return figures


def redrawn(figures: list[Path]) -> list[Path]:
    return [path for path in figures if MARK not in path.read_text()]


@pytest.mark.long
def test_a_change_of_a_module_redraws_only_its_figures(copy: Project) -> None:
    figures = marked(copy)
    modules = ("kinds.soak.saturation_bytes", "kinds.trace.trace_heat")
    for module in modules:
        path = copy.folder / f"scripts/drivelab/figures/{module.replace('.', '/')}.py"
        path.write_text(path.read_text() + "\nEXTRA = 1\n")
    assert set(copy.to_do()) <= {
        "figures_1", "figures_2", "figures_3", "comparison_figures_3", "trace_figures", "report", "report_pdf"
    }  # fmt: skip
    copy.run()
    changed = redrawn(figures)
    assert changed == [path for path in figures if path.stem in ALL and ALL[path.stem].module in modules]
    assert {"saturation_time", "saturation_bytes", "trace_heat"} <= {path.stem for path in changed}
    assert copy.to_do() == {}


@pytest.mark.long
def test_a_changed_table_redraws_the_figures_that_read_it(copy: Project) -> None:
    figures = marked(copy)
    copy.edit("config/mini.yaml", "relative_standard_error: 5%", "margin: 1%")
    copy.run()
    assert {path.stem for path in redrawn(figures)} == {"comparison", "normalised"}
    assert copy.to_do() == {}


def test_only_a_missing_figure_is_redrawn(copy: Project) -> None:
    figures = marked(copy)
    svg, png = (
        next(path for path in figures if path.stem == "convergence_mixes"),
        next(path.with_suffix(".png") for path in figures if path.stem == "window"),
    )
    svg.unlink()
    png.unlink()
    copy.run()
    assert png.exists()
    assert redrawn(figures) == sorted([svg, png.with_suffix(".svg")])
    assert copy.to_do() == {}


@pytest.mark.long
def test_a_deleted_manifest_measures_nothing(copy: Project) -> None:
    manifest = next(iter(sorted(copy.recordings())))
    cells = sorted((copy.folder / manifest).parent.rglob("fio.json"))
    times = [p.stat().st_mtime_ns for p in cells]
    (copy.folder / manifest).unlink()
    copy.run()
    assert [p.stat().st_mtime_ns for p in cells] == times
    assert copy.to_do() == {}


def test_a_snakemake_killed_after_a_stage_leads_to_the_report(copy: Project) -> None:
    """The files of the stage are there, but Snakemake still has its mark that they may be incomplete."""
    manifest = sorted(copy.recordings())[0]
    shutil.rmtree((copy.folder / manifest).parent)
    shutil.rmtree(copy.folder / "results/report")
    seal = f"results/seals/{'/'.join(Path(manifest).parent.parts[-3:])}.precondition.json"
    assert copy.snakemake("--until", "plan", "--notemp").returncode == 0
    (copy.folder / seal).parent.mkdir(parents=True)
    (copy.folder / seal).write_text("{}")
    (copy.folder / ".snakemake/incomplete" / urlsafe_b64encode(seal.encode()).decode()).write_text("{}")
    assert {"measure", "report"} <= copy.to_do().keys()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: mini", "name: other", "belongs to study 'mini'"),
        ("drives: [op7, op28]", "drives: [op7, op29]", "op29"),
    ],
)
def test_another_studys_results_and_a_mistake_are_refused(copy: Project, old: str, new: str, words: str) -> None:
    copy.edit("config/mini.yaml", old, new)
    refused = copy.snakemake("--dry-run")
    assert refused.returncode != 0
    assert words in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr


@pytest.mark.long
def test_recordings_of_different_captures_are_not_compared(copy: Project) -> None:
    manifest = next(m for m in sorted(copy.recordings()) if "trace-replay" in m)
    journal = (copy.folder / manifest).with_name("journal.jsonl")
    journal.write_text(re.sub(r'"trace_sha256":"[0-9a-f]+"', '"trace_sha256":"another"', journal.read_text()))
    (copy.folder / "results/tables/traces.parquet").unlink()
    refused = copy.snakemake()
    assert refused.returncode != 0
    log = (copy.folder / "results/logs/inventory.log").read_text()
    assert "used a different capture of trace 'sqlite'" in log
