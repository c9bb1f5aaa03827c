"""The truth table of reruns: each change leads to exactly the listed jobs."""

from __future__ import annotations

import pytest
import rerun_changes as after
from mini_project import Project
from rerun_cases import CASES, OTHER_RECORDINGS, Case, measured, of

from drivelab.tables import io

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
