"""What runs again after which change: measurements only when their plan changed, analysis only where it depends."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from mini_project import Project

pytestmark = pytest.mark.xdist_group("workflow")

MEASURING = {"purge", "precondition", "measure", "replay", "capture"}


def measured(jobs: dict[str, int]) -> dict[str, int]:
    return {rule: count for rule, count in jobs.items() if rule in MEASURING}


def test_a_dry_run_plans_the_whole_chain(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    jobs = project.to_do()
    assert jobs["purge"] == jobs["precondition"] == 6
    assert (jobs["measure"], jobs["replay"], jobs["tables"], jobs["report"]) == (4, 2, 6, 1)
    assert not (project.folder / "results").exists(), "a dry run writes nothing"


def test_everything_is_there_and_a_second_run_does_nothing(finished: Project) -> None:
    assert len(finished.recordings()) == 6
    for file in ("report/index.html", "tables/summary.parquet", "tables/deltas.parquet"):
        assert (finished.folder / "results" / file).stat().st_size > 0
    assert finished.to_do() == {}


def test_an_rse_threshold_reruns_analysis_only(copy: Project) -> None:
    copy.edit("config/mini.yaml", "relative_standard_error: 5%", "relative_standard_error: 0.001%")
    jobs = copy.to_do()
    assert jobs
    assert not measured(jobs)
    assert "tables" not in jobs
    assert jobs["summary"] == 1
    before = copy.recordings()
    copy.run()
    assert copy.recordings() == before
    assert copy.to_do() == {}


def test_a_margin_reruns_the_deltas_and_what_shows_them_only(copy: Project) -> None:
    copy.edit("config/mini.yaml", "relative_standard_error: 5%", "margin: 1%")
    jobs = copy.to_do()
    assert jobs["deltas"] == 1
    assert not {"tables", "steady_state", "summary", "differences", "exclusions"} & set(jobs)
    assert not measured(jobs)


def test_a_block_size_reruns_that_drive_and_protocol_only(copy: Project) -> None:
    entry = copy.folder / "config/mini.yaml"
    text = entry.read_text()
    head, one, rest = text.partition("  - protocol: pts-iops\n")
    body, _, rest = rest.partition("  - protocol: pts-write")
    entry.write_text(
        head + one + "    drives: [op28]\n" + body + one + "    drives: [op7]\n"
        + body.replace("&short", "").replace("block_size: [4KiB]", "block_size: [8KiB, 4KiB]")
        + "  - protocol: pts-write" + rest
    )  # fmt: skip
    jobs = copy.to_do()
    assert measured(jobs) == {"purge": 1, "precondition": 1, "measure": 1}
    assert jobs["tables"] == 1
    before = copy.recordings()
    copy.run()
    assert copy.recordings().items() > before.items(), "the old recording stays, nothing else is touched"
    assert copy.to_do() == {}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("config/protocols/pts-iops.yaml", "  - loop:", "  # a remark\n  - loop:"),
        ("config/protocols/pts-iops.yaml", "runtime: 60s", "runtime: 60s   # one minute"),
        ("config/mini.yaml", "basis: op7\n", "basis: op7   # the smaller one\n"),
        ("scripts/drivelab/stages/loop.py", '"""The loop step', '"""The loop step, edited'),
        ("workflow/rules/measure.smk", "rule measure:", "# measuring\nrule measure:"),
        ("Snakefile", "rule all:", "# everything\nrule all:"),
    ],
)
def test_comments_rerun_nothing(copy: Project, file: str, old: str, new: str) -> None:
    copy.edit(file, old, new)
    assert copy.to_do() == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [("title: IOPS", "title: Input and output"), ("runtime: 60s", "runtime: 61s")],
    ids=["title", "parameter that the study overrides"],
)
def test_words_of_a_protocol_measure_nothing(copy: Project, old: str, new: str) -> None:
    copy.edit("config/protocols/pts-iops.yaml", old, new)
    assert not measured(copy.to_do())


def test_a_checkout_reruns_nothing(copy: Project) -> None:
    for path in copy.folder.rglob("*"):
        if path.is_file() and "results" not in path.parts and ".snakemake" not in path.parts:
            os.utime(path)
    assert copy.to_do() == {}


def test_losing_snakemakes_memory_measures_nothing(copy: Project) -> None:
    shutil.rmtree(copy.folder / ".snakemake")
    assert measured(copy.to_do()) == {}


def test_imported_code_of_an_analysis_reruns_it(copy: Project) -> None:
    path = copy.folder / "scripts/drivelab/analysis/deltas.py"
    path.write_text(path.read_text() + "\nEXTRA = 1\n")
    jobs = copy.to_do()
    assert jobs["deltas"] == 1
    assert not measured(jobs)
    assert "summary" not in jobs


def test_deleted_tables_come_back_from_recordings(copy: Project) -> None:
    shutil.rmtree(copy.folder / "results/tables")
    jobs = copy.to_do()
    assert not measured(jobs)
    assert jobs["tables"] == 6
    copy.run()
    assert copy.to_do() == {}


def test_a_deleted_recording_is_measured_again_alone(copy: Project) -> None:
    manifest = next(iter(sorted(copy.recordings())))
    shutil.rmtree((copy.folder / manifest).parent)
    assert measured(copy.to_do()) == {"purge": 1, "precondition": 1, "measure": 1}


def test_a_deleted_manifest_measures_nothing(copy: Project) -> None:
    manifest = next(iter(sorted(copy.recordings())))
    cells = sorted((copy.folder / manifest).parent.rglob("fio.json"))
    times = [p.stat().st_mtime_ns for p in cells]
    (copy.folder / manifest).unlink()
    copy.run()
    assert [p.stat().st_mtime_ns for p in cells] == times
    assert copy.to_do() == {}


def test_another_studys_results_are_refused(copy: Project) -> None:
    copy.edit("config/mini.yaml", "name: mini", "name: other")
    refused = copy.snakemake("--dry-run")
    assert refused.returncode != 0
    assert "holds study 'mini'" in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr


def test_a_mistake_is_a_sentence_and_no_traceback(copy: Project) -> None:
    copy.edit("config/mini.yaml", "drives: [op7, op28]", "drives: [op7, op29]")
    refused = copy.snakemake("--dry-run")
    assert refused.returncode != 0
    assert "op29" in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr


def test_recordings_of_different_captures_are_not_compared(copy: Project) -> None:
    manifest = next(m for m in sorted(copy.recordings()) if "trace-replay" in m)
    journal = (copy.folder / manifest).with_name("journal.jsonl")
    journal.write_text(re.sub(r'"trace_sha256":"[0-9a-f]+"', '"trace_sha256":"another"', journal.read_text()))
    (copy.folder / "results/tables/traces.parquet").unlink()
    refused = copy.snakemake()
    assert refused.returncode != 0
    log = (copy.folder / "results/logs/inventory.log").read_text()
    assert "used another capture of trace 'sqlite'" in log
