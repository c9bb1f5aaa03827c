"""Settings are restored whichever process is killed, and whenever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.core.programs import process_state
from drivelab.drives.undo import Command, Write
from drivelab.host.temporary import Temporary, recover_all

CHILD = """
import sys
from pathlib import Path
from drivelab.drives.undo import Write
from drivelab.host.temporary import Temporary
path, value = Path(sys.argv[1]), sys.argv[2]
temporary = Temporary("host")
with temporary.claim():
    temporary.remember("knob", Write(str(path), path.read_text().strip()))
    path.write_text(value + "\\n")
    print("set", flush=True)
    sys.stdin.readline()
"""

BUSY = """
import sys
from pathlib import Path
from drivelab.drives.undo import Write
from drivelab.host.temporary import Temporary
path = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    temporary = Temporary("host")
    with temporary.claim():
        temporary.remember("knob", Write(str(path), path.read_text().strip()))
        with path.open("r+") as file:
            file.write("new\\n")
        print("set", flush=True)
        assert path.read_text() == "new\\n"
"""


@pytest.fixture
def knob(tmp_path: Path) -> Path:
    path = tmp_path / "knob"
    path.write_text("old\n")
    return path


def change(temporary: Temporary, knob: Path, value: str) -> None:
    temporary.remember("knob", Write(str(knob), knob.read_text().strip()))
    knob.write_text(f"{value}\n")


def study(knob: Path, value: str) -> subprocess.Popen[str]:
    """Start a process that has changed the knob within a claim; it runs until it reads a line or is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(knob), value], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "set\n"
    return process


def end(process: subprocess.Popen[str], by: signal.Signals | None = None) -> None:
    if by is not None:
        process.send_signal(by)
    process.communicate("\n")


def claims(run_folder: Path) -> list[str]:
    return sorted(path.name for path in (run_folder / "settings/host/claims").iterdir())


def test_a_setting_is_restored_at_the_end_of_the_claim(run_folder: Path, knob: Path) -> None:
    sentences: list[str] = []
    with Temporary("host").claim(sentences.append) as temporary:
        change(temporary, knob, "new")
        assert claims(run_folder) == [f"{os.getpid()}-{process_state(os.getpid())[1]}"]
        assert knob.read_text() == "new\n"
    assert knob.read_text() == "old\n"
    assert sentences == ["knob: put back"]
    assert claims(run_folder) == []


def test_a_setting_is_restored_after_an_error(run_folder: Path, knob: Path) -> None:
    def fail() -> None:
        with Temporary("host").claim() as temporary:
            change(temporary, knob, "new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert knob.read_text() == "old\n"


def test_first_original_is_kept(run_folder: Path, knob: Path) -> None:
    with Temporary("host").claim() as temporary:
        change(temporary, knob, "new")
        change(temporary, knob, "newer")
    assert knob.read_text() == "old\n"


def test_journal_is_on_disk_before_the_change(run_folder: Path, knob: Path) -> None:
    temporary = Temporary("host")
    temporary.remember("knob", Write(str(knob), "old"))
    body = json.loads((run_folder / "settings/host/originals.json").read_text())
    assert body["originals"] == {"knob": {"path": str(knob), "value": "old"}}
    assert body["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_recovers_after_kill_9(run_folder: Path, knob: Path) -> None:
    end(study(knob, "new"), signal.SIGKILL)
    assert knob.read_text() == "new\n"
    assert Temporary("host").recover() == ["knob: put back"]
    assert knob.read_text() == "old\n"
    assert claims(run_folder) == []
    assert Temporary("host").recover() == []


@pytest.mark.parametrize(
    "command", [["quick", "op7", "--size", "1TiB"], ["replay", "boot-read", "--target", "nothing", "-o", "out"]]
)
def test_the_next_command_that_measures_recovers_after_kill_9(
    run_folder: Path, knob: Path, project: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """Before it looks at the drive, which these two refuse."""
    end(study(knob, "new"), signal.SIGKILL)
    assert main(command) == 2
    assert "knob: put back" in capsys.readouterr().err
    assert knob.read_text() == "old\n"
    assert recover_all() == []


def test_next_claim_recovers_too_and_sees_the_original(run_folder: Path, knob: Path) -> None:
    end(study(knob, "new"), signal.SIGKILL)
    sentences: list[str] = []
    with Temporary("host").claim(sentences.append):
        assert knob.read_text() == "old\n"
    assert sentences == ["knob: put back"]


@pytest.mark.parametrize("by", [signal.SIGKILL, None])
def test_the_last_of_two_studies_restores_the_settings(run_folder: Path, knob: Path, by: signal.Signals | None) -> None:
    first, second = study(knob, "new"), study(knob, "newer")
    end(first, by)
    assert Temporary("host").recover() == []
    assert knob.read_text() == "newer\n"
    end(second)
    assert knob.read_text() == "old\n"


def busy(knob: Path, times: int) -> subprocess.Popen[str]:
    """Start a process that repeatedly claims, changes and ends its claim."""
    return subprocess.Popen([sys.executable, "-c", BUSY, str(knob), str(times)], stdout=subprocess.PIPE, text=True)


def test_no_study_loses_its_settings_to_another(run_folder: Path, knob: Path) -> None:
    studies = [busy(knob, 40) for _ in range(3)]
    for process in studies:
        process.communicate()
    assert [process.returncode for process in studies] == [0, 0, 0]
    assert knob.read_text() == "old\n"


@pytest.mark.parametrize("lines", [1, 7, 20])
def test_the_next_study_restores_settings_of_killed_studies(run_folder: Path, knob: Path, lines: int) -> None:
    studies = [busy(knob, 100_000) for _ in range(2)]
    for process in studies:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.kill()
        process.communicate()
    Temporary("host").recover()
    assert knob.read_text() == "old\n"
    assert claims(run_folder) == []


def test_claims_of_one_process_may_overlap(run_folder: Path, knob: Path) -> None:
    with Temporary("host").claim() as outer:
        with Temporary("host").claim():
            change(outer, knob, "new")
        assert knob.read_text() == "new\n"
    assert knob.read_text() == "old\n"


def test_a_reused_process_number_is_not_a_claim(run_folder: Path, knob: Path) -> None:
    temporary = Temporary("host")
    change(temporary, knob, "new")
    (run_folder / f"settings/host/claims/{os.getpid()}-1").write_text("1")
    assert temporary.recover() == ["knob: put back"]


def test_claim_by_hand_lasts_until_a_study_has_ended(run_folder: Path, knob: Path) -> None:
    Temporary("host").claim_by_hand()
    change(Temporary("host"), knob, "new")
    assert Temporary("host").recover() == []
    end(study(knob, "newer"), signal.SIGKILL)  # the study is killed before its end
    assert Temporary("host").recover() == []
    assert knob.read_text() == "newer\n"
    with Temporary("host").claim():
        pass
    assert knob.read_text() == "old\n"
    assert claims(run_folder) == []


def test_end_by_hand_keeps_settings_of_a_running_study(run_folder: Path, knob: Path) -> None:
    Temporary("host").claim_by_hand()
    other = study(knob, "new")
    assert Temporary("host").end_by_hand() == []
    assert knob.read_text() == "new\n"
    end(other)
    assert knob.read_text() == "old\n"


def test_end_by_hand_restores_the_settings(run_folder: Path, knob: Path) -> None:
    Temporary("host").claim_by_hand()
    change(Temporary("host"), knob, "new")
    assert Temporary("host").end_by_hand() == ["knob: put back"]
    assert knob.read_text() == "old\n"


def test_restore_is_refused_while_a_study_uses_the_settings(run_folder: Path, knob: Path) -> None:
    other = study(knob, "new")
    with pytest.raises(UserError, match=f"process {other.pid}"):
        Temporary("host").restore()
    assert knob.read_text() == "new\n"
    end(other)


def test_restore_ends_a_claim_by_hand(run_folder: Path, knob: Path) -> None:
    Temporary("host").claim_by_hand()
    change(Temporary("host"), knob, "new")
    assert Temporary("host").restore() == ["knob: put back"]
    assert knob.read_text() == "old\n"
    assert claims(run_folder) == []


def test_after_a_reboot_nothing_is_restored(run_folder: Path, knob: Path, tmp_path: Path) -> None:
    boot_id = tmp_path / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("first\n")
    temporary = Temporary("host", proc_root=tmp_path / "proc")
    temporary.claim_by_hand()
    change(temporary, knob, "new")
    boot_id.write_text("second\n")
    assert temporary.recover() == []
    assert temporary.remembered() == []
    assert claims(run_folder) == []
    assert knob.read_text() == "new\n"


def test_a_failed_restoration_is_reported_and_retried(run_folder: Path, knob: Path) -> None:
    with Temporary("host").claim() as temporary:
        change(temporary, knob, "new")
        temporary.remember("good: a", Write(str(knob.with_name("gone")), "value"))
        knob.unlink()
        knob.mkdir()  # a folder refuses writes, even by root
        sentences = []
        temporary.remember("other", Write(str(knob), "x"))
    sentences = Temporary("host").recover()
    assert [text.split(": ")[:2] for text in sentences] == [
        [name, "could not be put back"] for name in ("other", "knob")
    ]
    assert "does not accept old (Is a directory)" in sentences[1]
    assert Temporary("host").remembered() == ["knob", "other"]
    knob.rmdir()
    knob.write_text("new\n")
    Temporary("host").recover()
    assert Temporary("host").remembered() == []


def test_a_command_restores_a_setting(run_folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with Temporary("host").claim() as temporary:
        temporary.remember("service", Command(("touch", str(mark))))
        assert not mark.exists()
    assert mark.exists()


def test_a_command_is_skipped_if_its_list_has_the_entry(run_folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "swaps"
    table.write_text("Filename Type\n/no/swap partition\n")
    with Temporary("host").claim() as temporary:
        temporary.remember("swap", Command(("false", "/no/swap"), str(table)))
    assert temporary.remembered() == []
    with Temporary("host").claim() as temporary:
        temporary.remember("swap", Command(("false", "/no/other"), str(table)))
    assert temporary.remembered() == ["swap"]


def test_settings_that_depend_on_each_other_are_restored(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from drivelab.host import temporary as module

    done: list[str] = []

    def perform(change: Write) -> str | None:
        if change.path == "second" and "first" not in done:
            return "busy"
        done.append(change.path)
        return None

    monkeypatch.setattr(module, "perform", perform)
    with Temporary("host").claim() as temporary:
        temporary.remember_all({"first": Write("first", "1"), "second": Write("second", "2")})
    assert done == ["first", "second"]
    assert temporary.remembered() == []


def test_a_folder_writable_by_others_is_refused(run_folder: Path) -> None:
    folder = run_folder / "settings/host"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(UserError, match="other users can write to it"):
        Temporary("host").claim_by_hand()


def test_no_folder_is_created_without_changes(run_folder: Path) -> None:
    assert Temporary("host").recover() == []
    assert Temporary("host").restore() == []
    assert Temporary("host").end_by_hand() == []
    assert not run_folder.exists()


def test_an_unusable_run_directory_is_reported(monkeypatch: pytest.MonkeyPatch, knob: Path) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(knob))
    with pytest.raises(UserError, match="is not a folder"), Temporary("host").claim():
        pass


@pytest.mark.parametrize("scope", ["", "../host", "a/b", ".hidden"])
def test_scope_is_a_plain_name(scope: str) -> None:
    with pytest.raises(ValueError, match="not a scope"):
        Temporary(scope)
