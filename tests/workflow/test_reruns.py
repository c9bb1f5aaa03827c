"""Reruns: nothing runs twice, and no file of another study is used.

test_rerun_truth.py checks the jobs that each change leads to.
"""

from __future__ import annotations

import re
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from mini_project import Project


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
    log = (copy.folder / "results/logs/analysis.log").read_text()
    assert "used a different capture of trace 'sqlite'" in log
