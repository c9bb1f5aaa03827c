from __future__ import annotations

import errno
import json
import shutil
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording import writer
from drivelab.recording.checksums import CHECKSUMS, altered, torn
from drivelab.recording.folders import worked_s
from drivelab.recording.writer import MANIFEST, Recording, read_journal


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    plan = Plan({"drive": {"serial": "S"}, "clock": "wall"},
                {"drive": "a", "measurement": "m", "run": 1, "results": str(tmp_path)})  # fmt: skip
    new = Recording(plan)
    new.open()
    return new


def test_a_recording_appears_complete_and_keeps_its_journal(recording: Recording) -> None:
    recording.append("cell", step=0)
    assert not recording.complete
    assert not recording.final.exists()
    recording.final.mkdir(parents=True)  # the workflow creates the folders of the files that it waits for
    recording.finish()
    assert recording.complete
    assert not recording.part.exists()
    manifest = json.loads((recording.final / MANIFEST).read_text())
    assert manifest["cells"] == 1
    assert manifest["digest"] == recording.plan.digest


def test_foreign_files_at_the_final_path_are_set_aside(recording: Recording) -> None:
    recording.append("cell", step=0)
    recording.final.mkdir(parents=True)
    (recording.final / "mine.txt").write_text("x")
    recording.finish()
    assert recording.complete
    assert (recording.final.with_name(f"{recording.final.name}.abandoned-1") / "mine.txt").read_text() == "x"


def test_a_deleted_manifest_is_written_again_from_the_journal(recording: Recording) -> None:
    recording.append("cell", step=0)
    recording.append("gap", reason="r")
    recording.finish()
    before = (recording.final / MANIFEST).read_bytes()
    (recording.final / MANIFEST).unlink()
    assert recording.complete
    recording.write_manifest()
    assert (recording.final / MANIFEST).read_bytes() == before


def test_an_incomplete_line_is_ignored(recording: Recording) -> None:
    recording.append("cell", step=0)
    with (recording.part / "journal.jsonl").open("a") as file:
        file.write('{"event":"ce')
    assert [line["event"] for line in read_journal(recording.part)] == ["cell"]
    recording.open()
    recording.append("cell", step=1)
    assert [line["step"] for line in read_journal(recording.part)] == [0, 1]


def test_a_staged_folder_becomes_evidence_only_under_a_name(recording: Recording) -> None:
    for text in ("first", "second"):
        (recording.stage() / "fio.json").write_text(text)
    assert (recording.directory("cells/x", staged=True) / "fio.json").read_text() == "second"
    (recording.stage() / "fio.json").touch()
    recording.open()  # as after a kill
    assert not any(path.name.startswith(".") for path in recording.part.iterdir())
    (recording.stage() / "fio.json").touch()
    recording.unstage()
    assert not any(path.name.startswith(".") for path in recording.part.iterdir())


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


@pytest.mark.parametrize("resumption", ["gap", "resumed"])
def test_pauses_do_not_count_as_work(recording: Recording, resumption: str) -> None:
    times = {"purge": "10:00:00", "measure": "10:01:00", resumption: "18:00:00", "cell": "18:02:00"}
    lines = [json.dumps({"event": event, "at": f"2026-05-01T{at}+00:00"}) for event, at in times.items()]
    (recording.part / "journal.jsonl").write_text("\n".join([*lines, ""]))
    assert worked_s(recording.part) == 180
    until_s = datetime.fromisoformat("2026-05-01T18:02:30+00:00").timestamp()
    assert worked_s(recording.part, until_s) == 210
    assert worked_s(recording.part, until_s - 60) == 180, "clocks of hosts may differ"


@pytest.mark.parametrize("text", ["", "garbage\n", "[1]\n", "{}\n"])
def test_a_damaged_journal_gives_no_time(recording: Recording, text: str) -> None:
    (recording.part / "journal.jsonl").write_text(text)
    assert worked_s(recording.part) == 0


def with_evidence(recording: Recording) -> None:
    """Add lines with a folder for every kind of step; each folder has content."""
    folders = {"fill": "condition/fill1", "cell": "cells/0-round01-cell00", "tainted": "cells/0-round01-cell01",
               "soak": "cells/1-soak-part1", "replay": "cells/2-replay1-t",
               "application": "cells/3-application-run1"}  # fmt: skip
    for event, name in folders.items():
        (recording.directory(name) / "evidence").touch()
        recording.append(event, directory=name)


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize(
    "gone", ["condition/fill1", "cells/0-round01-cell01", "cells/1-soak-part1", "cells/2-replay1-t"]
)
def test_a_recording_without_evidence_of_its_journal_is_not_finished(
    recording: Recording, gone: str, emptied: bool
) -> None:
    with_evidence(recording)
    (recording.part / gone / "evidence").unlink()
    if not emptied:
        (recording.part / gone).rmdir()
    before = (recording.part / "journal.jsonl").read_bytes()
    words = (
        rf"^{recording.plan.recording}: .* 1 folder .* \({gone}\); restore {recording.part} from a copy, or remove it"
    )
    for _ in range(2):  # the next run finds the same
        with pytest.raises(UserError, match=words):
            recording.finish()
    assert (recording.part / "journal.jsonl").read_bytes() == before
    assert not recording.final.exists()
    (recording.part / gone).mkdir(exist_ok=True)
    (recording.part / gone / "evidence").touch()
    recording.finish()
    assert recording.complete


def test_a_complete_measurement_without_evidence_is_not_finished(recording: Recording) -> None:
    with_evidence(recording)
    recording.append("complete")
    shutil.rmtree(recording.part / "cells")
    with pytest.raises(UserError, match=r"5 folders .* cells/0-round01-cell01, cells/1-soak-part1 and 2 more\)"):
        recording.finish()
    assert recording.part.exists()


def test_lines_without_evidence_need_no_folder(recording: Recording) -> None:
    """Idle time, prefills, soaks killed before they began, and failed cells leave no evidence."""
    recording.append("failed", stage="precondition", directory="condition/fill1", reason="r")
    recording.append("soak-begins", step=0, directory="cells/0-soak-part1")
    recording.append("soak", step=0, directory="cells/0-soak-part1", finished=False, slices=0)
    recording.append("prefill", step=1, bytes=0)
    recording.append("prefill", step=1, bytes=4096, directory="cells/1-prefill-t")
    recording.directory("cells/2-idle").rmdir()  # as in an archive, which has no empty folders
    recording.append("idle", step=2, directory="cells/2-idle")
    recording.finish()
    assert recording.complete


def test_slices_of_a_killed_soak_are_evidence(recording: Recording) -> None:
    recording.append("soak", step=0, directory="cells/0-soak-part1", finished=False, slices=2)
    with pytest.raises(UserError, match="cells/0-soak-part1"):
        recording.finish()


def _on_disk(monkeypatch: pytest.MonkeyPatch, part: Path) -> list[list[str]]:
    """Keep the journal's events at each sync of the file system."""
    at_sync: list[list[str]] = []

    def sync(path: Path) -> None:
        assert path.is_relative_to(part) or path == part.with_name(part.stem)
        at_sync.append([line["event"] for line in read_journal(part)])

    monkeypatch.setattr(writer, "sync_file_system", sync)
    return at_sync


def test_evidence_is_on_disk_before_each_line_and_before_the_rename(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_sync = _on_disk(monkeypatch, recording.part)
    recording.append("seal")
    recording.append_soon("cell", step=0)
    recording.append("loop", step=0)
    assert at_sync == [[], ["seal"], ["seal", "cell"]]
    renamed: list[int] = []
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda path, target: renamed.append(len(at_sync)) or rename(path, target))
    recording.finish()
    assert at_sync[3:-1] == [["seal", "cell", "loop"], ["seal", "cell", "loop", "complete"]]
    assert renamed == [5], "synchronised before the rename, and after it"
    assert len(at_sync) == 6


def test_a_line_without_evidence_on_disk_is_not_written(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(writer, "sync_file_system", failing)
    recording.append_soon("cell", step=0)
    with pytest.raises(OSError, match="Input/output error"):
        recording.journal()
    with pytest.raises(OSError, match="Input/output error"):
        recording.append("cell", step=0)
    assert recording.journal() == []


def test_a_later_line_does_not_wait_but_is_seen_by_the_next_use(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_sync = threading.Event()
    monkeypatch.setattr(writer, "sync_file_system", lambda path: may_sync.wait(60))
    recording.append_soon("cell", step=0)
    assert list(read_journal(recording.part)) == [], "its evidence is not on disk"
    may_sync.set()
    assert [line["event"] for line in recording.journal()] == ["cell"]


@pytest.mark.parametrize("name", [CHECKSUMS, MANIFEST, "journal.jsonl", "cells/x/fio.json"])
@pytest.mark.parametrize("loss", [lambda path: path.write_bytes(b""), Path.unlink], ids=["empty", "missing"])
def test_a_recording_that_lost_files_is_unfinished_and_repeated(
    recording: Recording, name: str, loss: Callable[[Path], object]
) -> None:
    def measure() -> None:
        recording.open()
        folder = recording.directory("cells/x")
        (folder / "fio.json").write_text("{}")
        (folder / "stderr").write_text("")  # empty as measured
        recording.append("cell", step=0, directory="cells/x")
        recording.finish()

    measure()
    assert recording.complete
    loss(recording.final / name)
    if (name, loss) == (MANIFEST, Path.unlink):  # Snakemake removes it before the job
        assert recording.complete
        return
    assert torn(recording.final) is not None
    assert not recording.complete
    measure()
    assert recording.complete
    assert recording.final.with_name(f"{recording.final.name}.abandoned-1").is_dir()


def test_changed_content_is_altered_and_not_repeated(recording: Recording) -> None:
    recording.append("cell", step=0)
    recording.finish()
    (recording.final / "plan.json").write_text("{}")
    assert torn(recording.final) is None
    assert recording.complete
    assert altered(recording.final) == {"plan.json": "altered"}
