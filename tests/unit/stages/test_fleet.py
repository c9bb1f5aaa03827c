"""Studies of very many drives: what is planned grows with them, and no faster; when they are run drive by drive."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.errors import UserError
from drivelab.stages import figure_layout
from drivelab.stages.consent import check
from drivelab.stages.fleet import Fleet, outcomes_of, require_complete
from drivelab.stages.fleet_part import reasons
from drivelab.stages.layout import Layout
from drivelab.stages.planning import Campaign

ROOT = Path(__file__).resolve().parents[3]
HEAD = "drive\tdevice\tserial\tdestructive\tnote\n"
STUDY = """\
name: many
results: results
drives_sheet: many.tsv
{more}
drives: [{drives}]
measurements: [{{protocol: pts-iops}}, {{protocol: pts-throughput}}, {{protocol: qos-nines}}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def campaign(project: Path, drives: int, more: str = "") -> Campaign:
    names = [f"d{number}" for number in range(1, drives + 1)]
    rows = [f"{name}\t/dev/disk/by-id/{name}\tS-{name}\tyes\t\n" for name in names]
    (project / "many.tsv").write_text(HEAD + "".join(rows))
    (project / "study.yaml").write_text(STUDY.format(drives=", ".join(names), more=more))
    return Campaign.load("study.yaml")


def looks(project: Path, drives: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a plan is looked at for its figures, by all that the workflow asks."""
    layout = Layout(campaign(project, drives))
    count = 0
    told = figure_layout.figure_kinds

    def counted(subject: Any) -> set[str]:
        nonlocal count
        count += 1
        return told(subject)

    monkeypatch.setattr(figure_layout, "figure_kinds", counted)
    layout.targets()
    for kinds in layout.figure_sets():
        layout.with_figures(kinds)
    for kinds in set(layout.over_drives.values()):
        tables = layout.tables_over_drives(kinds)
        for measurement in layout.over_drives:
            for paths in tables.values():
                paths(SimpleNamespace(measurement=measurement))
    for paths in layout.tables_over_sizes().values():
        for measurement in layout.by_size:
            paths(SimpleNamespace(measurement=measurement))
    return count


def test_each_plan_is_looked_at_once_however_many_files_it_leads_to(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert looks(project, 20, monkeypatch) == 20 * 4  # of pts-throughput there are two


@pytest.mark.parametrize(("drives", "more", "expected"), [
    pytest.param(3, "", False, id="a small study"),
    pytest.param(3, "fleet: true", True, id="a small one that asks for it"),
    pytest.param(84, "runs: 3", True, id="more than a thousand recordings"),
    pytest.param(84, "runs: 3\nfleet: false", False, id="that does not want to be"),
    pytest.param(1, "runs: 99", False, id="of a single drive"),
])  # fmt: skip
def test_large_studies_are_fleets(project: Path, drives: int, more: str, expected: bool) -> None:
    found = campaign(project, drives, more)
    assert found.fleet is expected
    assert {one.plan.context["results"] for one in found.plans if one.plan.drive == "d1"} == {
        "results/drives/d1" if expected else "results"
    }


def test_a_part_is_the_study_of_one_drive_with_the_same_recordings(project: Path) -> None:
    whole = campaign(project, 3, "fleet: true")
    part = Campaign.load("study.yaml", drive="d2")
    of_drive = [one.plan for one in whole.plans if one.plan.drive == "d2"]
    assert not part.fleet
    assert [one.plan.recording_path for one in part.plans] == [plan.recording_path for plan in of_drive]


def test_a_study_that_was_begun_goes_on_as_it_was(project: Path) -> None:
    (project / "results/recordings").mkdir(parents=True)
    assert not campaign(project, 84, "runs: 3").fleet
    with pytest.raises(UserError, match="begun in one piece, which would all be measured again"):
        campaign(project, 3, "fleet: true")
    (project / "results/recordings").rename(project / "results/drives")
    assert campaign(project, 3).fleet
    with pytest.raises(UserError, match="begun drive by drive"):
        campaign(project, 3, "fleet: false")


def test_drives_that_are_measured_at_the_same_time_are_no_fleet(project: Path) -> None:
    campaign(project, 2)
    text = (project / "study.yaml").read_text().replace("qos-nines", "sqlio-head-to-head")
    (project / "study.yaml").write_text(f"fleet: true\n{text}")
    with pytest.raises(UserError, match="measures several drives at the same time"):
        Campaign.load("study.yaml")


def finished(fleet: Fleet, drive: str, **more: Any) -> None:
    """Leave what a part leaves."""
    outcome = {"drive": drive, "subjects": [drive], "state": "measured", "reasons": [], "stamp": fleet.stamps[drive]}
    part = fleet.results / "drives" / drive
    names = ["report/index.html", "report/pts-pages.pdf"]
    names += [f"tables/{name}.parquet" for name in
              ("summary", "exclusions", "conditions", "drives", "hosts", "traces")]  # fmt: skip
    paths = [part / name for name in names] + [one.plan.recording_path / "recording.json" for one in fleet.plans[drive]]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (part / "outcome.1.json").write_text(json.dumps({**outcome, **more}))


def test_what_there_is_to_do_is_told_by_the_files_alone(project: Path) -> None:
    fleet = Fleet(Layout(campaign(project, 3, "fleet: true")))
    assert fleet.stale() == ["d1", "d2", "d3"]
    finished(fleet, "d1")
    finished(fleet, "d2", state="failed")
    finished(fleet, "d3")
    again = Fleet(Layout(campaign(project, 3, "fleet: true")))
    assert again.stale() == ["d2"]
    outcome = "results/drives/{}/outcome.{}.json".format
    assert again.outcomes() == [outcome("d1", 1), outcome("d2", 2), outcome("d3", 1)]
    assert Fleet(again.layout, judges=False).outcomes() == [outcome(one, 1) for one in ("d1", "d2", "d3")]
    (again.plans["d3"][0].plan.recording_path / "recording.json").unlink()
    assert Fleet(Layout(campaign(project, 3, "fleet: true"))).stale() == ["d2", "d3"]
    threshold = "fleet: true\nanalysis: {relative_standard_error: 4%}"
    assert Fleet(Layout(campaign(project, 3, threshold))).stale() == ["d1", "d2", "d3"]


def test_one_more_drive_concerns_no_other(project: Path) -> None:
    fleet = Fleet(Layout(campaign(project, 2, "fleet: true")))
    for drive in ("d1", "d2"):
        finished(fleet, drive)
    assert Fleet(Layout(campaign(project, 3, "fleet: true"))).stale() == ["d3"]


def test_failed_drives_are_named_in_the_end(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(6)]
    for number, path in enumerate(paths):
        state = "failed" if number else "measured"
        path.write_text(json.dumps({"drive": f"d{number}", "state": state, "reasons": ["it hangs"]}))
    with pytest.raises(UserError, match=r"5 of 6 drives were not measured.* Drive 'd1': it hangs\..* 2 more, see R"):
        require_complete(outcomes_of(paths), "R")
    require_complete(outcomes_of(paths[:1]), "R")
    paths[1].write_text("{")
    with pytest.raises(UserError, match=r"1\.json: cannot be read"):
        outcomes_of(paths)


def test_reasons_are_the_sentences_of_the_jobs(tmp_path: Path) -> None:
    log = tmp_path / "measure.log"
    log.write_text("noise\ndrivelab: drive 'd1' is gone; attach it\n")
    job = "Error in rule {}:\n    jobid: 2\n    log: {} (check log file(s) for error details)\n".format
    assert reasons(job("measure", log)) == ["drive 'd1' is gone; attach it"]
    assert reasons(job("purge", "none"))[0].startswith("rule purge ended without a word")
    assert reasons("nothing works\n\n") == ["nothing works"]


def test_consent_to_a_fleet_is_consent_to_its_parts(tmp_path: Path) -> None:
    (tmp_path / "consent.json").write_text('{"S1": {}}')
    check(tmp_path / "drives/d1", "d1", "S1")
    with pytest.raises(UserError, match="nobody has agreed"):
        check(tmp_path / "drives/d2", "d2", "S2")
    with pytest.raises(UserError, match="nobody has agreed"):
        check(tmp_path / "others/d1", "d1", "S1")
