"""A finished recording that lost files is measured again by the next run, also of plain Snakemake."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.plan.places import RESTORED_MARKER
from drivelab.plan.plan import Plan
from drivelab.recording.folders import is_recorded
from drivelab.recording.writer import Recording
from drivelab.workflow.load import load

STUDY = """\
name: torn
results: results
clock: virtual
drives: [op7, op28]
measurements: [{protocol: pts-iops, scale: demo}]
"""


@pytest.fixture
def plans(project: Path) -> list[Plan]:
    """Two recorded plans; the checksums of the first are empty."""
    (project / "study.yaml").write_text(STUDY)
    plans = [planned.plan for planned in Campaign.load("study.yaml").plans]
    for plan in plans:
        recording = Recording(plan)
        recording.open()
        recording.append("cell", step=0)
        recording.finish()
    (plans[0].recording_path / "SHA256SUMS").write_bytes(b"")
    return plans


def test_it_is_set_aside_and_named(plans: list[Plan], capsys: pytest.CaptureFixture[str]) -> None:
    layout, _, _ = load({"study": "study.yaml"})  # a job, or a look at the study
    assert list(map(is_recorded, plans)) == [True, True]
    with pytest.raises(UserError, match="start again to measure them again"):
        layout.claim()
    assert list(map(is_recorded, plans)) == [False, True]
    assert load({"study": "study.yaml"})[0].campaign.to_do == plans[:1]
    name = plans[0].recording
    assert capsys.readouterr().err == (
        f"drivelab: {name}: is not whole: SHA256SUMS is empty, as after a loss of power. It is measured again; the "
        f"rest is in results/recordings/{name}.abandoned-1.\n"
    )


def test_that_of_an_archive_stays(plans: list[Plan], project: Path) -> None:
    (project / RESTORED_MARKER).touch()
    load({"study": "study.yaml"})[0].claim()
    assert list(map(is_recorded, plans)) == [True, True]
