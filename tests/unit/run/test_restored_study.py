"""A restored study is data: it may not use paths outside of its folder, or run its own commands."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.campaign import capture
from drivelab.campaign.capture import refuse_foreign_campaign
from drivelab.campaign.planning import Campaign
from drivelab.campaign.subjects import approve
from drivelab.campaign.traces import StudyTraces
from drivelab.cli.measure.run import in_project
from drivelab.cli.measure.study import all_in_project
from drivelab.core.errors import UserError
from drivelab.plan.places import RESTORED_MARKER, ROOT, restored_folder
from drivelab.plan.plan import Plan
from drivelab.plan.study import load_study
from drivelab.plan.yaml_file import load_yaml
from drivelab.run import device
from drivelab.run.consent import refuse_foreign_commands, snakemake_arguments
from drivelab.trace.capturing import applications

DRIVES = "name: x\ndrives: [op7]\nmeasurements: [{protocol: pts-iops, scale: demo}]\n"


@pytest.fixture
def folder(project: Path) -> Path:
    """A restored folder, which is the current folder."""
    (project / RESTORED_MARKER).write_text("{}")
    return project


def study(folder: Path, more: str = "") -> Path:
    path = folder / "config/x.yaml"
    path.write_text(DRIVES + more)
    return Path("config/x.yaml")


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("drives_sheet: /etc/drives.tsv\n", "drives_sheet"),
        ("drives_sheet: ../../config/drives.tsv\n", "drives_sheet"),
        ("drives_sheet: config/link.tsv\n", "drives_sheet"),
        ("traces: {t: {file: /data/t.parquet}}\n", "traces.t.file"),
        ("traces: {t: {file: traces/../../t.parquet}}\n", "traces.t.file"),
        ("meter: {csv: /dev/zero}\n", "meter.csv"),
    ],
)
def test_a_path_outside_of_the_folder_is_refused(more: str, key: str, folder: Path) -> None:
    (folder / "config/link.tsv").symlink_to(ROOT / "config/drives.tsv")
    with pytest.raises(UserError, match=rf"key '{key}' is .*, outside the folder .* that the study was restored"):
        load_study(study(folder, more))
    (folder / RESTORED_MARKER).unlink()
    load_study(study(folder, more))


@pytest.mark.parametrize("sheet", ["config/sheet.yaml", "results/recordings/a/m/k/stdout", "traces/drives"])
def test_a_restored_drive_sheet_must_be_a_tsv_file(sheet: str, folder: Path) -> None:
    with pytest.raises(UserError, match=r"must be a \.tsv file, in which 'archive restore' has set destructive: no"):
        load_study(study(folder, f"drives_sheet: {sheet}\n"))


def plan(folder: Path, application_body: dict[str, Any] | None = None, **context: Any) -> Plan:
    subject: dict[str, Any] = {"drive": {"serial": "S1"}, "clock": "wall"}
    about = {"drive": "a", "measurement": "m", "run": 1, "results": str(folder / "results"), **context}
    if application_body is not None:
        spec = applications.from_mapping("evil", application_body, "test")
        subject["application"] = spec.to_mapping()
        about["application"] = {"title": spec.title, "requires": {}}
    return Plan(subject, about)


EVIL = {"title": "x", "file_system": "ext4", "size": "64MiB", "command": ["sh", "-c", "id \x1b[2J"]}


def test_a_command_of_the_archive_is_not_run(folder: Path) -> None:
    with pytest.raises(
        UserError, match=r"application 'evil' .* would run \['sh', '-c', 'id \\x1b.*copy its entry into"
    ):
        refuse_foreign_commands(plan(folder, EVIL))
    with pytest.raises(UserError, match=r"power meter with the command \['id'\]. .* is not run"):
        refuse_foreign_commands(plan(folder, meter={"command": ["id"]}))
    (folder / RESTORED_MARKER).unlink()
    refuse_foreign_commands(plan(folder, EVIL, meter={"command": ["id"]}))


def test_the_same_command_of_the_project_is_run(folder: Path) -> None:
    name = "sqlite-inserts"
    body = load_yaml(ROOT / "config/applications.yaml")[name]
    for changed in ({}, {"set_up": [["id"]]}, {"tear_down": [["id"]]}, {"command": ["id"]}):
        spec = applications.from_mapping(name, {**body, **changed}, "test")
        about = {"title": spec.title, "requires": {}}
        foreign = plan(folder, application=about)
        foreign = Plan({**foreign.subject, "application": spec.to_mapping()}, foreign.context)
        if changed:
            with pytest.raises(UserError, match="is not run"):
                refuse_foreign_commands(foreign)
        else:
            refuse_foreign_commands(foreign)


def test_a_stage_refuses_a_command_of_the_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage may run without `drivelab run`, with a plan of the archive."""

    def never(*arguments: object) -> None:
        pytest.fail("the stage continued")

    monkeypatch.setattr(device, "_ready_to_mount", never)
    serial = {"serial": "VIRTUAL-OP7"}
    foreign = plan(folder, EVIL, drives_sheet="config/drives.tsv")
    foreign = Plan({**foreign.subject, "drive": serial}, {**foreign.context, "drive": "op7"})
    with pytest.raises(UserError, match="A command from an archive is not run"), device.open_device(foreign):
        pass


def captured(folder: Path) -> Campaign:
    """Write a study that captures a trace with its own application."""
    text = (folder / "config/applications.yaml").read_text()
    (folder / "config/applications.yaml").write_text(
        f"{text}\nevil:\n  title: x\n  file_system: ext4\n  size: 32MiB\n  command: [sh, -c, 'touch {folder}/owned']\n"
    )
    path = study(folder, "traces: {t: {capture: evil, origin: trace-origin, shipped: sqlite-inserts}}\n")
    return Campaign.load(path)


def test_a_capture_by_a_command_of_the_archive_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = captured(folder)
    monkeypatch.setattr(capture.manage, "borrowed", lambda *arguments: pytest.fail("the capture continued"))
    with pytest.raises(UserError, match=r"application 'evil' .* A command from an archive is not run"):
        capture.capture_trace(campaign, "t", Path("results/traces/t.parquet"))
    monkeypatch.setattr(StudyTraces, "is_captured", lambda self, name: True)
    with pytest.raises(UserError, match="A command from an archive is not run"):
        refuse_foreign_campaign(campaign)
    assert not (folder / "owned").exists()


def test_a_restored_study_can_be_inspected_but_not_measured(folder: Path) -> None:
    sheet = folder / "config/drives.tsv"
    sheet.write_text(sheet.read_text().replace("\tyes\t", "\tno\t"))
    campaign = Campaign.load(study(folder, "clock: virtual\n"))
    assert campaign.to_do
    with pytest.raises(UserError, match="destructive: no, but the study measures it"):
        approve(campaign)
    (folder / RESTORED_MARKER).unlink()
    with pytest.raises(UserError, match="destructive: no, but the study measures it"):
        Campaign.load(study(folder, "clock: virtual\n"))


@pytest.fixture
def restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A restored folder below a project; the project is the current folder."""
    folder = tmp_path / "restored/mini"
    shutil.copytree(ROOT / "config", folder / "config")
    (folder / RESTORED_MARKER).write_text("{}")
    (tmp_path / "config").mkdir()
    (tmp_path / "config/own.yaml").touch()
    monkeypatch.setattr("drivelab.cli.measure.run.ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("given", ["restored/mini/config/demo.yaml", "config/demo.yaml", "absolute"])
def test_commands_work_in_the_folder_of_a_restored_study(given: str, restored: Path, tmp_path: Path) -> None:
    if given == "config/demo.yaml":
        os.chdir(restored)
    name = str(restored / "config/demo.yaml") if given == "absolute" else given
    assert (in_project(name), Path.cwd()) == (Path("config/demo.yaml"), restored)
    assert restored_folder(Path.cwd()) == restored
    assert in_project("config/own.yaml") == Path("config/own.yaml")
    assert Path.cwd() == tmp_path


def test_studies_of_two_folders_are_refused_together(restored: Path) -> None:
    with pytest.raises(UserError, match="name the studies of one folder at a time"):
        all_in_project(["restored/mini/config/demo.yaml", "config/own.yaml"])


def test_snakemake_runs_no_code_of_a_restored_folder(restored: Path) -> None:
    assert snakemake_arguments() == []
    os.chdir(restored)
    words = SimpleNamespace(**dict(zip(("a", "snakefile", "b", "profile"), snakemake_arguments(), strict=True)))
    assert (words.snakefile, words.profile) == (str(ROOT / "Snakefile"), str(ROOT / "profiles/default"))
