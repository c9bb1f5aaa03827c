"""Escape sequences in files: no command sends those that it quotes to the terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import import_origins
import pytest
from made_traces import Row, write
from watched import MadeDrive, facts

from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.core.terminal import VisibleStream, visible
from drivelab.drives import identity
from drivelab.watch.study_view import StudyFacts

TITLE, CLEAR, C1, BIDI, DEL = "\x1b]0;owned\x07", "\x1b[2J\x1b[H", "\x9b31m", "\u202egnp.exe\u2066", "\x7f"
HOSTILE = f"a{TITLE}b{CLEAR}c{C1}d{BIDI}e{DEL}f\rg\bh"
CONTROLS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - {"\n", "\t"} | {"\u202e", "\u2066"}


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert not CONTROLS & set(text), text
    return text


@pytest.fixture
def own(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("drivelab.cli.measure.run.ROOT", project)
    monkeypatch.setattr("drivelab.virtual.manage.possible", lambda: "it is a test")
    return project


def study(title: str, measurement: str = "pts-latency") -> None:
    body = {"name": "mine", "title": title, "results": "results", "clock": "virtual", "drives": ["op7"],
            "measurements": [{"protocol": measurement, "scale": "demo"}]}  # fmt: skip
    Path("config/mine.yaml").write_text(json.dumps(body))


def test_control_characters_become_visible() -> None:
    assert visible(HOSTILE) == (
        r"a\x1b]0;owned\x07b\x1b[2J\x1b[Hc\u009b31md\u202egnp.exe\u2066e\u007ff\x0dg\x08h"
    )  # fmt: skip
    assert visible("lines\n\tand µ 漢字 👍 stay") == "lines\n\tand µ 漢字 👍 stay"
    assert visible("not UTF-8: \udcff") == r"not UTF-8: \udcff"


def test_json_keeps_its_values() -> None:
    for ascii_only in (True, False):
        assert json.loads(visible(json.dumps({HOSTILE: [HOSTILE]}, ensure_ascii=ascii_only))) == {HOSTILE: [HOSTILE]}


def test_stream_escapes_written_text() -> None:
    below = io.StringIO()
    stream = VisibleStream(below)
    print(HOSTILE, file=stream)
    stream.writelines([HOSTILE, "\n"])
    assert below.getvalue() == 2 * f"{visible(HOSTILE)}\n"


@pytest.mark.parametrize("quoted", ["option", "first line", "file name"])
def test_an_import_of_a_fio_job(tmp_path: Path, capsys: pytest.CaptureFixture[str], quoted: str) -> None:
    job = import_origins.job(700.0, 300.0, import_origins.options("randrw", rwmixread=HOSTILE))
    path = tmp_path / (HOSTILE if quoted == "file name" else "x.json")
    import_origins.write(path, import_origins.document({**job, "jobname": HOSTILE}))
    if quoted == "first line":
        path.write_text(HOSTILE)
    assert main(["import", "fio-json", str(path), "--drive", "a", "-o", str(tmp_path / "out")]) == 2
    assert r"\x1b]0;owned\x07" in shown(capsys)


@pytest.mark.parametrize(
    "text",
    [
        f'name: "{HOSTILE}"\n',
        f"name: mine\ntitle: {json.dumps(HOSTILE)}\nno-such-key: 1\n",
        f"name: mine\n{json.dumps(HOSTILE)}: 1\n",
        f"name: mine\ntitle: t\ndrives: [{json.dumps(HOSTILE)}]\nmeasurements: [{{protocol: pts-iops}}]\n",
        f"name: mine\ntitle: t\ndrives: [op7]\nmeasurements: [{{protocol: {json.dumps(HOSTILE)}}}]\n",
    ],
    ids=["name", "title", "key", "drive", "protocol"],
)
@pytest.mark.parametrize("command", [["study", "check"], ["study", "status"], ["plan"], ["watch"]])
def test_errors_in_a_study(own: Path, capsys: pytest.CaptureFixture[str], command: list[str], text: str) -> None:
    Path("config/mine.yaml").write_text(text)
    assert main([*command, "config/mine.yaml"]) == 2
    shown(capsys)


def test_a_title_of_a_study(own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    study(HOSTILE)
    monkeypatch.setattr("drivelab.watch.text.time.sleep", lambda seconds: pytest.fail("it continues"))
    monkeypatch.setattr(os, "nice", lambda by: 0)
    for command in (["study", "check"], ["study", "status"], ["plan", "--commands"]):
        main([*command, "config/mine.yaml"])
    with pytest.raises(pytest.fail.Exception):
        main(["watch", "config/mine.yaml"])
    assert r"\x1b[2J" in shown(capsys)


def test_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row(1000 * n, 1000 * n + 1, 1000 * n + 500, process=HOSTILE) for n in range(50)]
    path = write(tmp_path / "a.parquet", rows, {"title": HOSTILE, "source": HOSTILE, "name": HOSTILE})
    assert main(["trace", "info", str(path)]) == 0
    assert r"\x1b" in shown(capsys)


def test_facts_of_a_drive(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("model", "serial", "firmware", "transport", "link", "lba_format", "by_id", "write_cache", "scheduler")
    rest = ("logical_block_bytes", "physical_block_bytes", "lba_formats", "link_max", "rotational", "temperature_c",
            "life_used_pct", "spare_pct", "lifetime_bytes_written")  # fmt: skip
    hostile: dict[str, Any] = {**dict.fromkeys(names, HOSTILE), **dict.fromkeys(rest), "capacity_bytes": 1 << 30}
    monkeypatch.setattr(identity, "whole_disks", lambda *roots: ["sdz"])
    monkeypatch.setattr(identity, "describe", lambda name: dict(hostile))
    monkeypatch.setattr("drivelab.drives.guard.holder", lambda device, name: HOSTILE)
    monkeypatch.setattr("drivelab.virtual.manage.find_by_device", lambda device: None)
    for more in ([], ["--tsv"]):
        main(["drives", *more])
    assert r"\x1b]0;owned\x07" in shown(capsys)


def test_file_name_in_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "recordings/a/b/0-run1"
    recording.mkdir(parents=True)
    (recording / "recording.json").write_text('{"checksums": "SHA256SUMS"}')
    (recording / "SHA256SUMS").write_text(f"{'0' * 64}  {HOSTILE.replace(chr(13), '')}\n")
    (recording / HOSTILE).write_text("")
    main(["verify", str(tmp_path)])
    assert r"\x1b]0;owned\x07" in shown(capsys)


def test_a_status_on_the_live_view(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MadeDrive(own / "results", "op7").begin()
    made.journal("failed", reason=HOSTILE)
    made.status(HOSTILE, state="failed", reason=HOSTILE)
    monkeypatch.setattr(StudyFacts, "load", lambda path: facts(own / "results", made))
    monkeypatch.setattr(os, "nice", lambda by: 0)
    study("a title")
    assert main(["watch", "config/mine.yaml"]) == 0
    assert r"\x1b]0;owned\x07" in shown(capsys)


def test_relayed_logs(tmp_path: Path) -> None:
    """`run` prints the end of the logs of jobs and Snakemake."""
    (tmp_path / "snakemake.log").write_text(f"Error: {HOSTILE}\n")
    program = (
        "import sys; from pathlib import Path; from drivelab.cli import main\n"
        "from drivelab.cli.measure import runner; from drivelab.cli.look import query\n"
        "query._query = lambda options: runner.explain(Path(sys.argv[1]), 1)\n"
        "main.main(['query'])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=False)
    assert rb"\x1b]0;owned\x07" in done.stderr
    assert b"\x1b" not in done.stderr + done.stdout


def test_an_error_that_snakemake_prints() -> None:
    assert str(UserError(HOSTILE)) == visible(HOSTILE)


def test_a_traceback() -> None:
    program = (
        "import sys; from drivelab.cli import main; from drivelab.cli.look import query\n"
        "def fail(options): raise RuntimeError(sys.argv[1])\n"
        "query._query = fail\n"
        "main.main(['query'])"
    )
    done = subprocess.run([sys.executable, "-c", program, HOSTILE], capture_output=True, check=False)
    assert rb"RuntimeError: a\x1b]0;owned\x07" in done.stderr
    assert b"\x1b" not in done.stderr


def test_terminal_gets_only_drivelabs_own_sequences(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [Row(1, 2, 3, process=HOSTILE)], {"title": HOSTILE})
    ours, theirs = pty.openpty()
    program = "import sys; from drivelab.cli.main import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    command = [sys.executable, "-c", program, "trace", "info", str(path)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        output = b""
        while block := _read(ours):
            output += block
    os.close(ours)
    assert process.returncode == 0
    text = output.decode()
    assert "\x1b[" in text, "bold and dim come from drivelab"
    assert r"\x1b]0;owned" in text
    assert not set(text) & (CONTROLS - {"\x1b", "\r"})
    assert not any(sequence in text for sequence in ("\x1b]", "\x1b[2J", "\x1b[H"))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
