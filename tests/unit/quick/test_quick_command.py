"""`drivelab quick` from the command to the page, on the virtual clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drivelab.campaign.planning import Campaign
from drivelab.cli.main import main
from drivelab.explore.row_selection import parse
from drivelab.quick import before
from drivelab.quick.view import LiveView
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


@pytest.fixture
def quick(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the drives quick-a and quick-b, in simulated time, and a short protocol."""
    monkeypatch.setattr(manage, "possible", lambda: "this test runs in simulated time")
    monkeypatch.setattr(before, "reasons", lambda *args, **options: ("The machine is busy.",))
    models = project / "config/virtual_drives.yaml"
    faster = DRIVE.replace("quick-a", "quick-b").replace("QUICK-A", "QUICK-B").replace("read_us: 100", "read_us: 60")
    models.write_text(models.read_text() + DRIVE + faster)
    sheet = project / "config/drives.tsv"
    rows = (f"quick-{name}\tvirtual:quick-{name}\tQUICK-{name.upper()}\tyes\t" for name in "ab")
    columns = sheet.read_text().splitlines()[0].split("\t")
    sheet.write_text("\n".join(["\t".join(columns), *(row + "\t" * (len(columns) - 5) for row in rows), ""]))
    monkeypatch.setattr("drivelab.cli.start.quick.project_or_home", lambda: project)
    protocol = project / "config/protocols/quick.yaml"
    text = protocol.read_text().replace("runtime: 3s", "runtime: 100ms").replace("time: 60s", "time: 3s")
    text = text.replace("relative_standard_error: {threshold: 2%, metric: iops}", "rounds: 3")
    protocol.write_text(text.replace("slice: 1s", "slice: 100ms"))
    return project


def test_a_look_is_a_recording_that_other_commands_know(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quick", "quick-a"]) == 0
    shown = capsys.readouterr()
    assert "unconditioned" in shown.out
    assert "virtual drive, simulated time" in shown.out
    assert "The machine is busy." not in shown.out, "the host does not affect simulated time"
    for words in ("Sequential read 1 MiB, QD8", "Commit: append 4 KiB, fsync", "p99.9", "(cliff)"):
        assert words in shown.out
    assert max(map(len, shown.out.splitlines()[4:])) <= 80
    (recording,) = (quick / "results/quick/recordings").glob("*/*/*/recording.json")
    assert recording.parts[-4:-2] == ("quick-a", "quick-128mib")
    page = (quick / "results/quick/quick-a.html").read_text()
    assert page.count('<div class="card"><img') == 1
    assert "<script" not in page
    assert main(["query", "--results", "results/quick", "--csv", "SELECT count(*) FROM cells"]) == 0
    assert int(capsys.readouterr().out.split()[1]) > 40
    assert Campaign.load("results/quick/study.yaml").to_do == []


def test_elsewhere_the_page_has_a_full_path(
    quick: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(["quick", "quick-a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == str(quick / "results/quick/quick-a.html")


@pytest.mark.long
def test_two_places_and_their_history(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second drive reads faster; after three looks of each, a comparison gives verdicts."""
    for _ in range(3):
        assert main(["quick", "quick-a", "quick-b", "--json"]) == 0
        last = json.loads(capsys.readouterr().out)
    assert [place["name"] for place in last["places"]] == ["quick-a", "quick-b"]
    assert last["warnings_before"] == []
    values = [{value["test"]: value["value"] for value in place["values"]} for place in last["places"]]
    assert values[1]["Random read 4 KiB, QD1"] < 0.9 * values[0]["Random read 4 KiB, QD1"]
    runs = sorted((quick / "results/quick/recordings").glob("quick-a/*/*"))
    assert [path.name[-4:] for path in runs] == ["run1", "run2", "run3"]
    assert main(["compare", "quick-a", "quick-b", "--results", "results/quick", "--json"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert comparison["counts"]["faster beyond the margin"] > 0
    assert main(["quick", "--history", "quick-a", "--json"]) == 0
    histories = json.loads(capsys.readouterr().out)
    (history,) = histories
    assert len(history["looks"]) == 3
    assert main(["quick", "--history"]) == 0
    shown = capsys.readouterr().out
    assert "quick-b: virtual:quick-b, 3 looks" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert parse("quick-a").wanted == {"drive": "quick-a"}


@pytest.mark.long
def test_looks_of_another_length_are_another_measurement(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["quick", "quick-a"])
    main(["quick", "quick-a", "--size", "32MiB"])
    main(["quick", "quick-a"])
    capsys.readouterr()
    names = sorted(path.name for path in (quick / "results/quick/recordings/quick-a").iterdir())
    assert names == ["quick-128mib", "quick-32mib"]
    assert len(list((quick / "results/quick/recordings/quick-a/quick-128mib").iterdir())) == 2
    assert main(["quick", "--history", "quick-a"]) == 0
    assert "differ in time or size: quick-128mib, quick-32mib" in capsys.readouterr().out
    assert main(["quick", "--history", "/my data"]) == 2
    assert "run: ./drivelab quick '/my data'" in capsys.readouterr().err


def test_an_interrupted_look_is_not_continued(
    quick: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look shows the drive as it is now, so it takes no cells from before; standard output stays JSON."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LiveView, "on_line", interrupt)
        assert main(["quick", "quick-a"]) == 130
    assert "the next one starts from the beginning" in capsys.readouterr().err
    assert main(["quick", "quick-a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["places"][0]["name"] == "quick-a"
    (journal,) = (quick / "results/quick/recordings").glob("*/*/*-run1/journal.jsonl")
    assert {json.loads(line)["event"] for line in journal.open()}.isdisjoint({"gap", "resumed"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a place to look at, such as the current folder: ./drivelab quick ."),
        (["quik-a"], "no drive of this name in config/drives.tsv; did you mean 'quick-a'?"),
        (["config/drives.tsv"], "is neither a folder nor a block device. Name the folder"),
        (["quick-a", "quick-a"], "virtual:quick-a is named twice"),
        (["quick-a", "--time", "10s"], "--time is 10s; a look needs at least 1min"),
        (["quick-a", "--size", "4GB"], "'4GB' is not a size"),
        (["quick-a", "--size", "1KiB"], "--size is 1KiB; a look needs at least 16MiB"),
        (["quick-a", "-o", "config/drives.tsv/x.html"], "drives.tsv/x.html cannot be written; name another file"),
        (["quick-a", "-o", "config"], "config cannot be written; name another file after -o"),
        (["quick-a", "--size", "1GiB"], "quick-a has 128 MiB, less than the --size of 1 GiB"),
        (["--history", "/nowhere"], "there are no quick looks yet"),
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
