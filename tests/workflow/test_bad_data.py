"""Altered evidence is named, and excluded from the results or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from made_recordings import without_checksums
from mini_project import Project

from drivelab.tables import io


def recording(project: Project, drive: str, measurement: str) -> Path:
    return next((project.folder / "results/recordings" / drive / measurement).glob("*-run1"))


def writes_of_round(of: Path, number: int) -> Path:
    """Return the folder of the cell that is tracked for steady state."""
    lines = [json.loads(line) for line in (of / "journal.jsonl").read_text().splitlines()]
    return next(
        of / line["directory"]
        for line in lines
        if line["event"] == "cell" and line["round"] == number and line["workload"]["read_share"] == 0
    )


def analyse_again(project: Project, of: Path) -> None:
    """Remove the tables of a recording's measurement, to make them again: the manifest does not show the alteration."""
    shutil.rmtree(project.folder / "results/tables" / Path(*of.parts[-3:-1]))


def table(project: Project, name: str) -> str:
    return str(project.folder / f"results/tables/{name}.parquet")


@pytest.mark.long
def test_altered_evidence_is_named_at_the_end_of_the_run(copy: Project) -> None:
    """A changed file that gives no number, and a replay with a longer one."""
    iops, replay = recording(copy, "op7", "pts-iops"), recording(copy, "op28", "trace-replay")
    job = writes_of_round(iops, 2) / "job.fio"
    job.write_text(f"{job.read_text()}; looked at\n")
    longer = next(replay.glob("condition/**/stdout"))
    longer.write_text(f"{longer.read_text()}looked at")
    for altered in (iops, replay):
        analyse_again(copy, altered)
    done = copy.drivelab("run", "config/mini.yaml")
    assert done.returncode == 0, done.stderr
    names = ["/".join(folder.parts[-3:]) for folder in (iops, replay)]
    assert done.stdout.splitlines()[-1].startswith(
        f"2 items were excluded from the results (altered evidence 2), with the whole of {', '.join(names)}: "
    )
    exclusions = io.read(table(copy, "exclusions"), "exclusions")
    assert exclusions[["recording", "place"]].values.tolist() == [[name, "recording"] for name in names]
    for words, file in zip(exclusions["words"], (job.relative_to(iops), longer.relative_to(replay)), strict=True):
        assert words == f"since it was measured, {file} altered"
    summary = io.read(table(copy, "summary"), "summary")
    assert not any(name in names for row in summary["recordings"] for name in row)
    assert set(summary.loc[summary["measurement"] == "pts-iops", "drive"]) == {"op28"}
    assert str(job.relative_to(iops)) in (copy.folder / "results/report/index.html").read_text()
    verified = copy.drivelab("verify", "results/recordings")
    assert verified.returncode == 1
    assert f"{'/'.join(iops.parts[-4:])}/{job.relative_to(iops)}: altered" in verified.stdout
    assert "4 of 6 recordings are unaltered" in verified.stdout


def test_a_recording_in_another_recordings_folder_is_refused(copy: Project) -> None:
    place, other = (recording(copy, drive, "pts-iops") for drive in ("op7", "op28"))
    shutil.rmtree(place)
    shutil.copytree(other, place)
    held = f"recording.json: that of op28/pts-iops/{other.name}, copied or moved here"
    verified = copy.drivelab("verify", "results/recordings")
    assert verified.returncode == 1
    assert f"{place.name}/{held}" in verified.stdout
    assert "5 of 6 recordings are unaltered" in verified.stdout
    compared = copy.drivelab("compare", "op7", "op28")
    assert compared.returncode == 2
    assert f"holds the recording op28/pts-iops/{other.name}" in compared.stderr
    status = copy.drivelab("study", "status", copy.study)
    assert "drives: 1 failed, 1 done" in status.stdout
    assert f"{held.replace(':', ' is')}; move the folder to its place" in " ".join(status.stdout.split())
    analyse_again(copy, place)
    refused = copy.snakemake()
    assert refused.returncode != 0
    log = (copy.folder / "results/logs/tables/op7/pts-iops.log").read_text()
    words = f"holds the recording op28/pts-iops/{other.name}, which was copied or moved there"
    assert words in log.splitlines()[0]


@pytest.mark.long
def test_figures_without_a_sound_cell_say_so(drawn: Project, tmp_path: Path) -> None:
    """The study continues: the other drive has results, and there is no comparison with missing values."""
    copy = drawn.copied(tmp_path / "project")
    soak, replay = recording(copy, "op28", "pts-write-saturation"), recording(copy, "op28", "trace-replay")
    for folder in (soak, replay):
        without_checksums(folder)
    for path in soak.glob("cells/*/fio.json"):
        path.write_text("")
    report = sorted(replay.glob("cells/*/report.json"))[-1]
    report.write_text(json.dumps({**json.loads(report.read_text()), "duration_s": float("nan")}))
    for folder in (soak, replay):
        analyse_again(copy, folder)
    copy.run()

    exclusions = io.read(table(copy, "exclusions"), "exclusions")
    faults = exclusions.groupby("recording")["fault"].agg(set).to_dict()
    names = {folder: "/".join(folder.parts[-3:]) for folder in (soak, replay)}
    assert faults == {names[soak]: {"damaged evidence"}, names[replay]: {"not a number"}}
    summary = io.read(table(copy, "summary"), "summary")
    assert set(summary.loc[summary["measurement"] == "pts-write-saturation", "drive"]) == {"op7"}
    replays = io.read(table(copy, f"{names[replay]}/replays"), "replays")
    (bad,) = replays.loc[replays["tainted"], "repeat"]
    assert f"{bad}, trace sqlite" in exclusions.loc[exclusions["recording"] == names[replay], "place"].iloc[0]
    shown = sorted((copy.folder / "results/figures" / names[soak]).glob("saturation*.svg"))
    assert shown
    for figure in shown:
        assert "NOTHING TO SHOW" in figure.read_text()
        assert "damaged evidence" in figure.read_text()
    page = (copy.folder / "results/report/index.html").read_text()
    assert names[soak] in page
    assert copy.to_do() == {}
