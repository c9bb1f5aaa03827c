"""Every change to a finished recording is named, and the recording is excluded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import in_memory
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_recordings import SOAK, made_recording, without_checksums

from drivelab.analysis.exclusions import exclusions_table, left_out, recording_facts
from drivelab.cli.main import main
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording import checksums
from drivelab.recording.checksums import CHECKSUMS, altered, checksummed, digests
from drivelab.recording.writer import MANIFEST, Recording
from drivelab.tables import io

READ = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
        "runtime_s": 0.3}  # fmt: skip
UNTIL = {"window": 5, "max_rounds": 5, "data_excursion": 0.2, "slope_excursion": 0.1,
         "track": [{"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "metric": "iops"}]}  # fmt: skip


@pytest.fixture(scope="module")
def finished() -> Iterator[Path]:
    steps = [{"loop": {"cells": [READ], "until": UNTIL}}, {"soak": {"cell": SOAK, "until": {"time_s": 0.3}}}]
    with in_memory.folder() as folder:
        yield made_recording(folder, steps)


@pytest.fixture
def recording(finished: Path, tmp_path: Path) -> Path:
    place = tmp_path / "recordings" / Path(*finished.parts[-3:])
    shutil.copytree(finished, place)
    return place


def test_an_unchanged_recording_and_its_copy_are_valid(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy", copy_function=shutil.copy)  # with other times
    os.utime(copy / "plan.json", (0, 0))
    for folder in (finished, copy):
        assert checksummed(folder)
        assert altered(folder) == {}
    names = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    assert digests(finished).keys() == names - {CHECKSUMS}
    assert MANIFEST in names


def test_sha256sum_reads_them(finished: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", CHECKSUMS], cwd=finished, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(digests(finished))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_is_named(recording: Path, data: st.DataObject) -> None:
    names = sorted([*digests(recording), CHECKSUMS])
    name = data.draw(st.sampled_from([candidate for candidate in names if (recording / candidate).stat().st_size]))
    whole = (recording / name).read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    bits = data.draw(st.integers(1, 255))
    (recording / name).write_bytes(whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :])
    changes = altered(recording)
    (recording / name).write_bytes(whole)
    if name == CHECKSUMS:  # a changed digest or name counts as a changed file
        assert changes
    else:
        assert changes == {name: "altered"}


def test_missing_and_added_files_are_named(recording: Path) -> None:
    shutil.rmtree(recording / "cells/0-round02-cell00")
    (recording / "cells/notes.txt").write_text("mine")
    (recording / "host.json").unlink()
    changes = altered(recording)
    assert changes.pop("cells/notes.txt") == "added"
    assert changes.pop("host.json") == "missing"
    assert set(changes.values()) == {"missing"}
    assert all(name.startswith("cells/0-round02-cell00/") for name in changes)


def test_links_pipes_and_empty_folders_are_named_and_not_followed(recording: Path, tmp_path: Path) -> None:
    (recording / "cells/up").symlink_to("..")
    (recording / "away").symlink_to("nowhere")
    (recording / "cells/empty").mkdir()
    os.mkfifo(recording / "cells/pipe")
    same = tmp_path / "host.json"
    (recording / "host.json").rename(same)
    (recording / "host.json").symlink_to(same)
    (recording / "identity.json").unlink()
    os.mkfifo(recording / "identity.json")
    assert altered(recording) == {
        "away": "added",
        "cells/empty/": "added",
        "cells/pipe": "added",
        "cells/up": "added",
        "host.json": "replaced by a link",
        "identity.json": "altered",
    }


def test_checksums_behind_a_link_are_refused(recording: Path, tmp_path: Path) -> None:
    (recording / CHECKSUMS).rename(tmp_path / "sums")
    (recording / CHECKSUMS).symlink_to(tmp_path / "sums")
    assert altered(recording) == {CHECKSUMS: "replaced by a link"}


def test_empty_folders_of_a_measurement_are_accepted(tmp_path: Path) -> None:
    recording = made_recording(
        tmp_path, [{"idle": {"time_s": 0.2}}, {"soak": {"cell": SOAK, "until": {"time_s": 0.3}}}]
    )
    assert list((recording / "cells/0-idle").iterdir()) == []
    (recording / "cells/1-soak.interrupted-1").mkdir()
    assert altered(recording) == {}


def test_lost_checksums_are_named(recording: Path) -> None:
    (recording / CHECKSUMS).unlink()
    assert altered(recording) == {CHECKSUMS: "missing"}


def test_a_manifest_written_again_is_the_same(recording: Path) -> None:
    """Snakemake removes a job's output before the job; the stage then finds the recording complete."""
    plan = Plan.read(recording / "plan.json")
    plan = Plan(plan.subject, {**plan.context, "results": str(recording.parents[3])})
    (recording / MANIFEST).unlink()
    Recording(plan).write_manifest()
    assert altered(recording) == {}


def test_an_interruption_before_the_rename_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan({"drive": {"serial": "S"}, "clock": "wall"},
                {"drive": "a", "measurement": "m", "run": 1, "results": str(tmp_path)})  # fmt: skip
    recording = Recording(plan)
    recording.open()
    (recording.directory("cells/x") / "fio.json").write_text("{}")
    recording.append("cell", step=0)

    def killed(folder: Path) -> None:
        (folder / CHECKSUMS).write_text("half a li")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checksums, "write_checksums", killed)
        with pytest.raises(KeyboardInterrupt):
            recording.finish()
    assert not recording.complete
    assert not recording.final.exists()
    again = Recording(plan)
    again.open()
    again.append("gap", reason="interrupted")
    again.finish()
    assert again.complete
    assert altered(again.final) == {}
    assert "cells/x/fio.json" in digests(again.final)
    assert [path.name for path in again.final.parent.iterdir()] == [again.final.name]


def test_an_altered_recording_is_excluded(recording: Path, tmp_path: Path) -> None:
    log = next((recording / "cells").glob("0-round03-cell00/series_iops.1.log"))
    log.write_text(log.read_text() + "2000, 1, 0, 0, 0\n")
    tables = collect(recording, reduced=False)
    assert tables["latency_bins"].empty
    assert tables["series"].empty
    (reason,) = tables["cells"]["unsound"].unique()
    assert reason == "altered evidence: since it was measured, cells/0-round03-cell00/series_iops.1.log altered"
    exclusions = exclusions_table(tables["cells"], recording_facts([recording]))
    assert exclusions[["place", "fault"]].values.tolist() == [["recording", "altered evidence"]]
    assert left_out(exclusions) == {"/".join(recording.parts[-3:])}
    for name, table in tables.items():
        io.write(table, tmp_path / f"{name}.parquet", name)


@pytest.mark.parametrize("name", ["journal.jsonl", "host.json", "identity.json", MANIFEST])
def test_an_unreadable_description_is_refused_by_name(recording: Path, name: str) -> None:
    (recording / name).write_bytes((recording / name).read_bytes().replace(b'"', b"'", 1))
    with pytest.raises(UserError, match=f"since it was measured, {name} altered. It can no longer be read"):
        collect(recording, reduced=False)


def test_a_recording_without_checksums_counts(recording: Path) -> None:
    without_checksums(recording)
    assert altered(recording) == {}
    assert collect(recording, reduced=False)["cells"]["unsound"].isna().all()


def test_verify_names_the_changes(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = str(recording.parents[2])
    unfinished = recording.with_name(f"{recording.name}.part")
    shutil.copytree(recording, unfinished)
    (unfinished / "plan.json").write_text("{")
    assert main(["verify", top]) == 0
    files = len(digests(recording))
    assert capsys.readouterr().out == f"1 of 1 recordings are unaltered, {files} files\n"
    (recording / "host.json").write_text("{}")
    (recording / "stranger").write_text("")
    assert main(["verify", str(recording)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [f"{recording}/host.json: altered", f"{recording}/stranger: added"]
    assert last == "0 of 1 recordings are unaltered, 0 files"
    assert main(["verify", top, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["altered"] == {str(recording): {"host.json": "altered", "stranger": "added"}}
    assert (report["as_measured"], report["not_checksummed"]) == (0, [])
    (recording / "host.json").unlink()
    (recording / "stranger").unlink()
    without_checksums(recording)
    assert main(["verify", top]) == 0
    output = capsys.readouterr().out
    assert "has no checksums" in output
    assert output.endswith("0 of 1 recordings are unaltered, 0 files; 1 cannot be checked\n")
    assert main(["verify", str(recording / "cells")]) == 2
    assert "holds no finished recordings" in capsys.readouterr().err
