"""`drivelab study new` and `check`: valid drafts, invalid studies, and conflicts between studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.campaign.check import check, clashes
from drivelab.campaign.new_study import Wish, write_study
from drivelab.campaign.planning import Campaign
from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.plan.file_system import FileSystem
from drivelab.plan.study import load_study
from drivelab.virtual import manage

STUDY = """\
name: {name}
clock: {clock}
drives: [{drive}]
measurements: [{{protocol: pts-write-saturation, scale: demo}}]
"""


def write(name: str, drive: str = "op7", clock: str = "virtual", more: str = "") -> str:
    path = f"config/{name}.yaml"
    Path(path).write_text(STUDY.format(name=name, drive=drive, clock=clock) + more)
    return path


def test_draft_is_a_valid_study(project: Path) -> None:
    path = write_study("mine", ["op28", "op7"], ["pts-throughput", "pts-write-saturation"])
    study = load_study(path)
    assert (study.name, study.drives, study.basis, study.runs, study.order) == (
        "mine",
        ("op28", "op7"),
        "op28",
        3,
        1,
    )
    assert [measurement.protocol for measurement in study.measurements] == ["pts-throughput", "pts-write-saturation"]
    assert study.results == Path("results/mine")
    check(path)


def test_commented_keys_of_a_draft_are_valid(project: Path) -> None:
    path = write_study("mine", ["op7", "op28"], ["pts-throughput", "pts-write-saturation"])
    lines = path.read_text().splitlines()
    keys = ("# budget:", "# exclude:", "# include:")
    assert sum(line.startswith(keys) for line in lines) == 3
    for key in keys:
        path.write_text("\n".join(line.removeprefix("# ") if line.startswith(key) else line for line in lines) + "\n")
        if "exclude" in key:
            path.write_text(path.read_text().replace("basis: op7", "basis: op28"))
        load_study(path)


def test_a_draft_that_compares_file_systems(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage, "possible", lambda: None)
    wish = Wish.of(None, None, None, ["ext4", "btrfs", "ext4"])
    with pytest.raises(UserError, match="btrfs needs at least 128MiB, and the drive has 32MiB"):
        write_study("mine", ["op7"], ["filesystem-comparison"], wish)
    models = Path("config/virtual_drives.yaml")
    models.write_text(models.read_text().replace("capacity: 32MiB", "capacity: 1GiB"))
    study = load_study(write_study("mine", ["op7"], ["filesystem-comparison"], wish))
    assert study.subjects == ("op7@ext4", "op7@btrfs")
    assert [platform.file_system for platform in study.platforms] == [FileSystem("ext4"), FileSystem("btrfs")]
    assert (study.basis, study.runs, study.order) == ("op7@ext4", 3, 1)


@pytest.fixture
def own(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project in which commands run."""
    monkeypatch.setattr("drivelab.cli.measure.run.ROOT", project)
    return project


def test_a_draft_has_the_recordings_that_a_difference_needs(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "new", "mine", "--drives", "op7", "op28", "--detect", "6%"]) == 0
    assert load_study(Path("config/mine.yaml")).runs == 6
    said = capsys.readouterr().out
    assert "Verdicts: 6 recordings of each drive and measurement show a difference of 5.5 % or more" in said
    assert "8 would show the margin of 5.0 %" in said


def test_a_draft_keeps_its_budget(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The budget counts the upper estimate: 25 rounds of all cells."""
    new = ["study", "new", "mine", "--drives", "op7", "op28", "--protocols", "pts-throughput", "--detect", "5%"]
    study = Path("config/mine.yaml")
    runs = {}
    for written in ("1PB", "3TB", "1GB"):
        done = main([*new, "--written", written])
        said = capsys.readouterr()
        if study.exists():
            runs[written] = load_study(study).runs
            assert load_study(study).budget.written_bytes is not None
            limited = f"The budget permits {runs[written]} of the 8 recordings that --detect needs."
            assert (limited in said.out) == (runs[written] < 8)
            study.unlink()
        else:
            assert done == 2
            assert "3 recordings of each drive and measurement may exceed the budget" in said.err
    assert runs == {"1PB": 8, "3TB": 4}


@pytest.mark.parametrize(
    ("name", "drives", "protocols", "sentence"),
    [
        ("study", None, ["pts-iops"], "config/study.yaml: already exists"),
        ("My study", None, ["pts-iops"], "is not a valid study name"),
        ("../mine", None, ["pts-iops"], "is not a valid study name"),
        ("mine", ["op9"], ["pts-iops"], "has no drive 'op9'; did you mean 'op7'"),
        ("mine", None, ["pts"], "there is no protocol 'pts'.*pts-iops"),
        ("mine", ["op7"], ["trace-replay"], "config/mine.yaml \\(not written\\).*replays a trace"),
    ],
)
def test_invalid_draft_is_refused(
    project: Path, name: str, drives: list[str] | None, protocols: list[str], sentence: str
) -> None:
    before = sorted(Path("config").iterdir())
    with pytest.raises(UserError, match=sentence):
        write_study(name, drives, protocols)
    assert sorted(Path("config").iterdir()) == before


def test_study_over_budget_is_refused(project: Path) -> None:
    with pytest.raises(UserError, match="budget' may be exceeded"):
        check(write("mine", more="budget: {written: 1MB}\n"))


def test_missing_drives_give_a_remark(project: Path) -> None:
    Path("config/drives.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\thost\na\t/dev/disk/by-id/nvme-none\tS1\tyes\t\tbench-b\n"
    )
    path = write("mine", drive="a", clock="auto")
    Path(path).write_text(Path(path).read_text().replace(", scale: demo", ""))
    _, remarks = check(path)
    assert "not attached here" in remarks[0]
    assert "a      bench-b  1           ./drivelab run " in remarks[1]


def campaigns(*paths: str) -> list[Campaign]:
    return [Campaign.load(path, everywhere=True) for path in paths]


def test_conflicts_between_studies(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drivelab.virtual.manage.possible", lambda: None)
    first = write("one", "op7", "wall")
    clashes(campaigns(first, write("two", "op28", "wall")))
    clashes(campaigns(first, write("two", "op7", "virtual")))
    with pytest.raises(UserError, match=r"config/two.yaml: drive 'op7' \(VIRTUAL-OP7\) is also measured by"):
        clashes(campaigns(first, write("two", "op7", "wall")))
    with pytest.raises(UserError, match=r"config/two\.yaml: key 'results' is results/one, as in config/one\.yaml"):
        clashes(campaigns(first, write("two", "op28", more="results: results/one\n")))
    with pytest.raises(UserError, match="named twice"):
        clashes(campaigns(first, first))
