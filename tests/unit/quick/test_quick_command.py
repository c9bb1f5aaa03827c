"""`drivelab quick` from the command to the page, on the virtual clock."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mini_project import ROOT

from drivelab.campaign.planning import Campaign
from drivelab.cli.main import main
from drivelab.explore.row_selection import parse
from drivelab.run.fio_cell import Bench
from drivelab.run.measure import turns
from drivelab.run.progress import Progress
from drivelab.virtual import manage

DRIVE = """
quick-a:
  serial: QUICK-A
  capacity: 128MiB
  over_provisioning: 28%
  dies: 8
  read_us: 100
  slc_cache: 48MiB
"""


def prepared(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Make a project with the drives quick-a and quick-b, in simulated time, and a short protocol."""
    shutil.copytree(ROOT / "config", folder / "config")
    patch.chdir(folder)
    patch.setattr(manage, "possible", lambda: "this test runs in simulated time")
    patch.setattr("drivelab.quick.session.disturbances", lambda disks: ("the machine is busy",))
    models = folder / "config/virtual_drives.yaml"
    faster = DRIVE.replace("quick-a", "quick-b").replace("QUICK-A", "QUICK-B").replace("read_us: 100", "read_us: 60")
    models.write_text(models.read_text() + DRIVE + faster)
    sheet = folder / "config/drives.tsv"
    rows = (f"quick-{name}\tvirtual:quick-{name}\tQUICK-{name.upper()}\tyes\t" for name in "ab")
    columns = sheet.read_text().splitlines()[0].split("\t")
    sheet.write_text("\n".join(["\t".join(columns), *(row + "\t" * (len(columns) - 5) for row in rows), ""]))
    patch.setattr("drivelab.cli.start.quick.project_or_home", lambda: folder)
    protocol = folder / "config/protocols/quick.yaml"
    text = protocol.read_text().replace("runtime: 2s", "runtime: 50ms").replace("time: 60s", "time: 3s")
    text = text.replace("relative_standard_error: {threshold: 2%, metric: iops}", "rounds: 3")
    protocol.write_text(text.replace("slice: 1s", "slice: 100ms"))
    return folder


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepared(tmp_path, monkeypatch)


def look(*arguments: str, status: int = 0) -> str:
    """Look, and return what is printed: standard output, or the errors if the status is not 0."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        assert main(["quick", *arguments]) == status, errors.getvalue()
    return (errors if status else out).getvalue()


@dataclass(frozen=True)
class Looks:
    """A project, and what its looks have printed: interrupted, at a drive, at two from elsewhere, at less of one."""

    folder: Path
    interrupted: str
    one: str
    page: str
    two: Any


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looks]:
    def interrupt(bench: Bench, progress: Progress) -> None:
        next(turns(bench, progress))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        folder = prepared(tmp_path_factory.mktemp("quick"), patch)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("drivelab.quick.look.turns", interrupt)
            interrupted = look("quick-a", status=130)
        one, page = look("quick-a"), (folder / "results/quick/quick-a.html").read_text()
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        two = json.loads(look("quick-a", "quick-b", "--json"))
        patch.chdir(folder)
        look("quick-a", "--size", "32MiB")
        yield Looks(folder, interrupted, one, page, two)


def test_a_look_is_a_recording_that_other_commands_know(looks: Looks, capsys: pytest.CaptureFixture[str]) -> None:
    assert "not purged · virtual clock · virtual drive" in looks.one
    assert "  writes 128 MiB to 880 MiB to the drive, and destroys what is on it (QUICK-A)\n" in looks.one
    assert "The machine is busy" not in looks.one, "the host does not affect simulated time"
    for words in ("Sequential read 1 MiB, QD8", "Commit: append 4 KiB, fsync", "(cliff)"):
        assert words in looks.one
    for words in ("Not purged", "Commit", "Sequential read 1 MiB, QD8"):
        assert words in looks.page
    assert main(["query", "--results", "results/quick", "--csv", "SELECT count(*) FROM cells"]) == 0
    assert int(capsys.readouterr().out.split()[1]) > 40
    assert main(["compare", "quick-a,measurement=quick-128mib,run=1", "quick-b", "--results", "results/quick"]) == 0
    assert "without a verdict" in capsys.readouterr().out
    assert Campaign.load("results/quick/study.yaml").to_do == []


def test_elsewhere_the_page_has_a_full_path(looks: Looks) -> None:
    assert Path(looks.two["page"]).is_file()
    assert Path(looks.two["page"]).parent == looks.folder / "results/quick"


def test_two_places_are_compared(looks: Looks) -> None:
    assert [place["name"] for place in looks.two["places"]] == ["quick-a", "quick-b"]
    assert looks.two["warnings"] == []
    values = [{value["test"]: value["value"] for value in place["values"]} for place in looks.two["places"]]
    assert values[1]["Random read 4 KiB, QD1"] < 0.9 * values[0]["Random read 4 KiB, QD1"]


def test_looks_of_another_length_are_another_measurement(looks: Looks, capsys: pytest.CaptureFixture[str]) -> None:
    runs = sorted((looks.folder / "results/quick/recordings/quick-a").glob("*/*-run?"))
    assert [(run.parent.name, run.name[-4:]) for run in runs] == [
        ("quick-128mib", "run1"), ("quick-128mib", "run2"), ("quick-32mib", "run1"),
    ]  # fmt: skip
    history = json.loads(look("--history", "quick-a", "--json"))
    assert [(one["measurement"], len(one["looks"])) for one in history] == [("quick-128mib", 2), ("quick-32mib", 1)]
    assert "Changed in the last look, beyond the scatter of those before: nothing." in look("--history", "quick-a")
    assert main(["quick", "--history"]) == 0
    shown = capsys.readouterr().out
    assert "quick-b: virtual:quick-b, 1 look of quick-128mib" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "run: ./drivelab quick '/my data'" in look("--history", "/my data", status=2)
    assert parse("quick-a").wanted == {"drive": "quick-a"}


def test_an_interrupted_look_is_not_continued(looks: Looks) -> None:
    """A look shows the drive as it is now, so it takes no cells from before."""
    kept = looks.folder / "results/quick/recordings"
    assert f"what was measured is in {kept}, and the next look starts anew" in looks.interrupted
    (journal,) = kept.glob("quick-a/*/*.abandoned-1/journal.jsonl")
    assert sum(json.loads(line)["event"] == "cell" for line in journal.open()) == 1
    for journal in kept.glob("*/*/*-run?/journal.jsonl"):
        assert {json.loads(line)["event"] for line in journal.open()}.isdisjoint({"gap", "resumed"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a place to look at, such as the current folder: ./drivelab quick ."),
        (["quik-a"], "no drive of this name in config/drives.tsv; did you mean 'quick-a'?"),
        (["config/drives.tsv"], "there is no folder or block device config/drives.tsv, and no drive of this name"),
        (["quick-a", "quick-a"], "virtual:quick-a is named twice"),
        (["quick-a", "--time", "10s"], "--time is 10s; a look needs at least 1min"),
        (["quick-a", "--size", "4GB"], "'4GB' is not a size"),
        (["quick-a", "--size", "1KiB"], "--size is 1KiB; a look needs at least 16MiB"),
        (["quick-a", "-o", "config/drives.tsv/x.html"], "drives.tsv/x.html cannot be written; name another file"),
        (["quick-a", "-o", "config"], "config cannot be written; name another file after -o"),
        (["quick-a", "--size", "1GiB"], "quick-a has 128 MiB, less than the --size of 1 GiB"),
        (["--history", "/nowhere"], "there is no quick look at /nowhere yet"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(
    quick: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["quick", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not (quick / "results").exists()


def test_a_drive_that_may_not_be_destroyed_is_only_read(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = quick / "config/drives.tsv"
    sheet.write_text(sheet.read_text().replace("QUICK-A\tyes", "QUICK-A\tno"))
    assert main(["quick", "quick-a"]) == 2
    assert "enter yes if all its data may be destroyed, or only read it" in capsys.readouterr().err.lower()
