"""Every command with --json has a schema in workflow/schemas/output, which its output follows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_archives import Result, made_archive
from mini_project import ROOT, Project
from output_schemas import NAMES, follows_schema, schema_of

from drivelab.cli.introspection import arguments_of, subcommands
from drivelab.cli.main import main, parser

RATINGS = """\
model: drivelab virtual drive
source: example
values:
  - {iops: 2000, pattern: random, read_share: 0, block_size: 4KiB, queue_depth: 16}
  - {mean_latency: 250us, pattern: random, read_share: 100, block_size: 1MiB, queue_depth: 1}
"""
OF_STUDY = [
    "plan config/mini.yaml",
    "study check config/mini.yaml",
    "study status config/mini.yaml",
    "compare op7 op28",
    "datasheet --ratings ratings.yaml",
    "evidence drive=op7 measurement=pts-iops metric=iops",
    "export -o paper --figures none",
    "query summary",
    "study new another --drives op7 op28",
    "verify results/recordings",
]
ALONE = [
    "archive verify one.tar.gz",
    "doctor ",
    "drives ",
    "protocol check config/protocols/pts-iops.yaml",
    "protocol list",
    "protocol show pts-latency",
    "protocol show trace-replay --scale demo",
    "publish one.tar.gz two.tar.gz -o site",
    "steady-state 1 1 1 1 1.01",
    "steady-state --csv rounds.csv",
    "trace formats",
    "trace info boot-read",
    "trace list",
    "trend one.tar.gz two.tar.gz",
    "virtual status",
]
OF_TRACES = [
    "trace decode traces/blktrace-mix -o decoded.parquet",
    "trace cut boot-read --to 1s -o cut.parquet",
    "trace drop-idle boot-read --above 1ms -o short.parquet",
    "trace filter boot-read --operation read -o reads.parquet",
    "trace issue-times boot-read -o issued.parquet",
    "trace filter boot-read --times 2 -o twice.parquet",
    "trace synthesise boot-read -o alike.yaml",
    "trace export boot-read --format blkparse-text -o text.txt",
    "trace import text.txt -o again.parquet",
    "trace volumes text.txt",
]
ELSEWHERE = {
    "bench-host": "unit/run/test_bench_host.py",
    "capture": "drives/test_capture.py",
    "import": "unit/imported/test_cli_import.py",
    "quick": "unit/quick/test_quick_command.py",
    "check-data": "drives/test_replay_command.py",
    "replay": "drives/test_replay_command.py",
}
"""Tests that check the JSON of commands which need a device or other results."""


def validated(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    status = main([*command.split(), "--json"])
    captured = capsys.readouterr()
    assert status == 0 or command.startswith("doctor"), captured.err
    follows_schema(json.loads(captured.out), command)


@pytest.mark.parametrize("command", OF_STUDY)
def test_output_of_a_study_follows_its_schema(command: str, finished: Project) -> None:
    (finished.folder / "ratings.yaml").write_text(RATINGS)
    words = command.split()
    if command.startswith("evidence"):
        words.append("cell_label=RND 4KiB 0/100")
    done = finished.drivelab(*words, "--json")
    assert done.returncode == 0 or command.startswith("datasheet"), done.stderr
    follows_schema(json.loads(done.stdout), command)


@pytest.mark.parametrize("command", ALONE)
def test_other_output_follows_its_schema(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(ROOT / "config")
    for name in ("Snakefile", "traces"):
        (tmp_path / name).symlink_to(ROOT / name)
    for day, name in enumerate(("one", "two"), start=1):
        made_archive(tmp_path / f"{name}.tar.gz", Result(date=f"2026-01-0{day}", recordings=3, seed=name))
    (tmp_path / "rounds.csv").write_text("a,b\n" + "1,2\n" * 5)
    validated(command, capsys)


def test_output_about_traces_follows_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("Snakefile", "config", "traces"):
        (tmp_path / name).symlink_to(ROOT / name)
    for command in OF_TRACES:
        validated(command, capsys)


def test_every_json_has_a_schema() -> None:
    with_json = set()
    for name, command, _ in subcommands(parser()):
        if any("--json" in argument.option_strings for argument in arguments_of(command)[0]):
            with_json.add(name.removeprefix("drivelab "))
    assert {schema_of(name) for name in with_json} == set(NAMES)
    tried = {schema_of(command) for command in (*OF_STUDY, *ALONE, *OF_TRACES)}
    for command, test in ELSEWHERE.items():
        assert "follows_schema(" in (ROOT / "tests" / test).read_text(), test
        tried.add(command)
    assert tried == set(NAMES), "each is tried"
