"""Reruns: nothing runs twice, each change leads to exactly the listed jobs, and no file of another study is used."""

from __future__ import annotations

import re
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
import rerun_changes as after
from mini_project import Project
from rerun_cases import CASES, OTHER_RECORDINGS, Case, measured, of

from drivelab.tables import io


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
    assert copy.snakemake("--until", "purge", "--notemp").returncode == 0
    (copy.folder / seal).parent.mkdir(parents=True, exist_ok=True)
    (copy.folder / seal).write_text("{}")
    (copy.folder / ".snakemake/incomplete" / urlsafe_b64encode(seal.encode()).decode()).write_text("{}")
    assert {"measure", "report"} <= copy.to_do().keys()


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


HARMLESS = [case for case in CASES if not (case.jobs or case.alone)]
ALONE = [case for case in CASES if case.jobs or case.alone]


@pytest.mark.long
@pytest.mark.parametrize("case", ALONE, ids=[case.change for case in ALONE])
def test_a_change_leads_to_exactly_these_jobs(case: Case, copy: Project) -> None:
    case.make(copy)
    before = copy.evidence()
    assert copy.jobs() == case.jobs
    if case.runs:
        copy.run()
        assert copy.jobs() == {}, "nothing is left to do"
        assert copy.evidence().items() >= before.items(), "recordings stay unchanged"


@pytest.mark.long
def test_harmless_changes_lead_to_no_job(copy: Project) -> None:
    assert copy.jobs() == {}, "a finished study"
    for case in HARMLESS:
        case.make(copy)
    assert copy.jobs() == {}


@pytest.mark.long
def test_a_firmware_update_keeps_earlier_recordings_and_mixes_nothing(copy: Project) -> None:
    after.PINNED(copy)
    copy.run()
    after.updated(after.FIRMWARE_B)(copy)
    refused = copy.snakemake("--dry-run")
    assert f"drive 'op7' is pinned to firmware {after.FIRMWARE_A}" in refused.stdout + refused.stderr
    before = copy.evidence()

    after.sheet(after.FIRMWARE_A, after.FIRMWARE_B)(copy)
    assert copy.jobs() == measured(of(["op7"])) | OTHER_RECORDINGS
    copy.run()
    assert copy.jobs() == {}
    assert copy.evidence().items() > before.items()
    tables = copy.folder / "results/tables"
    drives = io.read(tables / "drives.parquet", "drives")
    assert dict(zip(drives["drive"], drives["firmware"], strict=True)) == {
        "op7": after.FIRMWARE_B, "op28": after.FIRMWARE_A
    }  # fmt: skip
    conditions = io.read(tables / "conditions.parquet", "conditions")
    of_op7 = conditions[(conditions["facet"] == "firmware") & (conditions["drive"] == "op7")]
    assert set(of_op7["value"]) == {after.FIRMWARE_B}
