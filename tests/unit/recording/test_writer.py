from __future__ import annotations

import json
from pathlib import Path

import pytest

from drivelab.plan.plan import Plan
from drivelab.recording.writer import MANIFEST, Recording, read_journal


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    plan = Plan({"drive": {"serial": "S"}, "clock": "wall"},
                {"drive": "a", "measurement": "m", "run": 1, "results": str(tmp_path)})  # fmt: skip
    made = Recording(plan)
    made.open()
    return made


def test_it_appears_whole_and_keeps_its_journal(recording: Recording) -> None:
    recording.append("cell", step=0)
    assert not recording.complete
    assert not recording.final.exists()
    recording.final.mkdir(parents=True)  # the workflow makes the folders of the files that it waits for
    recording.finish()
    assert recording.complete
    assert not recording.part.exists()
    manifest = json.loads((recording.final / MANIFEST).read_text())
    assert manifest["cells"] == 1
    assert manifest["digest"] == recording.plan.digest


def test_what_somebody_put_in_its_place_is_kept_aside(recording: Recording) -> None:
    recording.append("cell", step=0)
    recording.final.mkdir(parents=True)
    (recording.final / "mine.txt").write_text("x")
    recording.finish()
    assert recording.complete
    assert (recording.final.with_name(f"{recording.final.name}.abandoned-1") / "mine.txt").read_text() == "x"


def test_a_deleted_manifest_is_written_anew_from_the_journal(recording: Recording) -> None:
    recording.append("cell", step=0)
    recording.append("gap", reason="r")
    recording.finish()
    before = (recording.final / MANIFEST).read_bytes()
    (recording.final / MANIFEST).unlink()
    assert recording.complete
    recording.write_manifest()
    assert (recording.final / MANIFEST).read_bytes() == before


def test_half_a_line_never_happened(recording: Recording) -> None:
    recording.append("cell", step=0)
    with (recording.part / "journal.jsonl").open("a") as file:
        file.write('{"event":"ce')
    assert [line["event"] for line in read_journal(recording.part)] == ["cell"]
    recording.open()
    recording.append("cell", step=1)
    assert [line["step"] for line in read_journal(recording.part)] == [0, 1]


def test_nothing_is_overwritten(recording: Recording) -> None:
    first = recording.directory("cells/x")
    (first / "fio.json").write_text("precious")
    assert not any(recording.directory("cells/x").iterdir())
    assert (recording.part / "cells/x.interrupted-1/fio.json").read_text() == "precious"
    recording.set_aside("because")
    aside = recording.final.with_name(recording.final.name + ".abandoned-1")
    assert [line["reason"] for line in read_journal(aside)] == ["because"]
    recording.open()
    recording.set_aside("again")
    assert aside.exists()
    assert aside.with_name(f"{recording.final.name}.abandoned-2").exists()
