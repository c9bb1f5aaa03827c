"""Every command with --json prints JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mini_project import ROOT, Project

from drivelab.cli.introspection import arguments_of, subcommands
from drivelab.cli.main import main, parser

OF_STUDY = """\
plan config/mini.yaml
study check config/mini.yaml
study status config/mini.yaml
compare op7 op28
query summary
study new another --drives op7 op28
verify results/recordings""".splitlines()
ALONE = """\
doctor
drives
protocol check config/protocols/pts-iops.yaml
protocol list
protocol show pts-latency
protocol show trace-replay --scale demo
virtual status
trace formats
trace info boot-read
trace list
trace decode traces/blktrace-mix -o decoded.parquet
trace filter boot-read --operation read --to 1s --idle-above 1ms --issue-times -o reads.parquet
trace filter boot-read --times 2 -o twice.parquet
trace synthesise boot-read -o alike.yaml
trace export boot-read --format blkparse-text -o text.txt
trace import text.txt -o again.parquet
trace volumes text.txt""".splitlines()
ELSEWHERE = {
    "archive verify": "workflow/test_archive.py",
    "capture": "drives/test_capture.py",
    "import": "unit/imported/test_cli_import.py",
    "quick": "unit/quick/test_quick_command.py",
    "replay": "drives/test_replay_command.py",
}
"""Tests that check the JSON of commands which need a device or other results."""


@pytest.mark.parametrize("command", OF_STUDY)
def test_output_of_a_study_is_json(command: str, finished: Project) -> None:
    done = finished.drivelab(*command.split(), "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


def test_other_output_is_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("Snakefile", "config", "traces"):
        (tmp_path / name).symlink_to(ROOT / name)
    for command in ALONE:
        status = main([*command.split(), "--json"])
        captured = capsys.readouterr()
        assert status == 0 or command == "doctor", captured.err
        json.loads(captured.out)


def test_every_json_is_tried() -> None:
    with_json = {
        name.removeprefix("drivelab ")
        for name, command, _ in subcommands(parser())
        if any("--json" in argument.option_strings for argument in arguments_of(command)[0])
    }
    lines = [f"{line} " for line in (*OF_STUDY, *ALONE)]
    for test in ELSEWHERE.values():
        text = (ROOT / "tests" / test).read_text()
        assert '"--json"' in text or "replay_commands" in text, test
    tried = {name for name in with_json if any(line.startswith(f"{name} ") for line in lines)}
    assert tried | set(ELSEWHERE) == with_json
