"""Results folders of studies, as `drivelab study new` and `check` judge them before a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drivelab.campaign.check import check
from drivelab.campaign.new_study import write_study
from drivelab.campaign.results_folder import refuse_foreign
from drivelab.core.errors import UserError
from drivelab.plan.places import ROOT
from drivelab.plan.study import load_study
from drivelab.plan.study_parts import IN_RESULTS

STUDY = """\
name: {name}
clock: virtual
drives: [op7]
measurements: [{{protocol: pts-write-saturation, scale: demo}}]
"""


def write(name: str, more: str = "") -> str:
    path = f"config/{name}.yaml"
    Path(path).write_text(STUDY.format(name=name) + more)
    return path


def test_workflow_writes_only_reserved_names() -> None:
    sources = (ROOT / "workflow/rules").glob("*.smk")
    result = {
        re.split(r"[/{]", pattern)[0]
        for source in sources
        for pattern in re.findall(r"<results>/([^\"']+)", source.read_text())
    }
    assert len(result) > 5
    assert result <= IN_RESULTS


@pytest.mark.parametrize("name", ["recordings", "tables", "report", "virtual", "status"])
def test_study_in_a_reserved_folder_is_refused(project: Path, name: str) -> None:
    with pytest.raises(UserError, match=f"'{name}' is a reserved name of a study's results"):
        write_study(name, ["op7"], ["pts-throughput"])
    with pytest.raises(UserError, match=f"key 'name' gives .*a study with results in results uses results/{name}"):
        load_study(Path(write(name)))
    with pytest.raises(UserError, match=f"key 'results' .*a study with results in results/one uses results/one/{name}"):
        load_study(Path(write("mine", f"results: results/one/{name}/deeper\n")))
    load_study(Path(write(name, "results: results/mine\n")))


def test_recordings_of_a_fleet_are_not_measured_again(project: Path) -> None:
    study = load_study(Path(write("mine")))
    parts = Path("results/mine/drives/op7/recordings")
    (parts / "op7").mkdir(parents=True)
    refuse_foreign(study)  # of another study
    (parts.parent / "study.txt").write_text("mine\n")
    with pytest.raises(UserError, match=r"mv results/mine/drives/\*/recordings/\* results/mine/recordings/"):
        refuse_foreign(study)
    (parts / "op7").rmdir()
    refuse_foreign(study)


def test_new_study_does_not_reuse_a_name(project: Path) -> None:
    Path("config/study.yaml").write_text(STUDY.format(name="mine"))
    with pytest.raises(UserError, match=r"config/study\.yaml: already is a study of that name; choose another"):
        write_study("mine", ["op7"], ["pts-throughput"])
    Path("config/study.yaml").write_text(STUDY.format(name="first") + "results: results/mine\n")
    with pytest.raises(UserError, match=r"config/study\.yaml: already has its results in results/mine"):
        write_study("mine", ["op7"], ["pts-throughput"])
    Path("config/study.yaml").write_text("name: [mine\n")
    write_study("mine", ["op7"], ["pts-throughput"])


def test_advice_in_the_refusal_works(project: Path) -> None:
    before = sorted(Path("config").iterdir())
    with pytest.raises(UserError) as refused:
        write_study("latency", ["op7"], ["pts-latency"])
    message = str(refused.value)
    assert "drive 'op7', pts-latency: block size 512B is not a multiple" in message
    assert "'set'" not in message
    assert sorted(Path("config").iterdir()) == before
    drives, protocols = (
        re.findall(rf"\({option} (.*?)\)", message)[0].split() for option in ("--drives", "--protocols")
    )
    write_study("other-drives", drives, ["pts-latency"])
    write_study("other-protocols", ["op7"], protocols)


@pytest.mark.parametrize("at", ["results", "results/mine", "results/mine/deep"])
def test_file_instead_of_results_folder_is_refused(project: Path, at: str) -> None:
    path = write("mine", "results: results/mine/deep\n")
    Path(at).parent.mkdir(parents=True, exist_ok=True)
    Path(at).write_text("mine\n")
    with pytest.raises(UserError, match=f"key 'results' is results/mine/deep, but {at} is not a folder"):
        check(path)


def test_imported_results_are_not_overwritten(project: Path) -> None:
    Path("results/mine").mkdir(parents=True)
    Path("results/mine/imported.json").write_text("{}")
    with pytest.raises(UserError, match="results/mine, which holds imported results"):
        check(write("mine"))


def test_foreign_files_in_results_folder_give_a_remark(project: Path) -> None:
    folder = Path("results/mine")
    (folder / "another-study").mkdir(parents=True)
    assert check(write("mine"))[1] == []
    (folder / "notes.txt").write_text("")
    (folder / "recordings").mkdir()
    (remark,) = check("config/mine.yaml")[1]
    assert "results/mine holds notes.txt, recordings, but no study.txt" in remark
    (folder / "study.txt").write_text("mine\n")
    assert check("config/mine.yaml")[1] == []


def hosts(concurrency: str) -> list[str]:
    return [remark for remark in check(write("mine", f"concurrency: {concurrency}\n"))[1] if "concurrency" in remark]


def test_misspelt_host_gives_a_remark(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drivelab.campaign.check.this_host", lambda: "here")
    sheet = Path("config/drives.tsv")
    lines = [line.split("\t") for line in sheet.read_text().splitlines()]
    hosts_by_drive = {"drive": "host", "op7": "bench-a", "op28": "bench-b"}
    sheet.write_text("".join("\t".join([*line, hosts_by_drive.get(line[0], "")]) + "\n" for line in lines))
    assert hosts("{bench-a: 2, bench-b: 2, here: 2}") == hosts("{any: 2}") == hosts("2") == []
    (remark,) = hosts("{bench-a: 2, bnech-a: 3}")
    assert "names bnech-a, but no drive is attached there; the study's hosts are: bench-a" in remark
