"""Every command with --json has a schema in workflow/schemas/output, which its output follows."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from made_archives import Result, made_archive
from mini_project import ROOT, Project

from drivelab.cli.introspection import arguments_of, subcommands
from drivelab.cli.main import main, parser
from drivelab.plan.schema import load_schema

SCHEMAS = sorted(path.name.removesuffix(".schema.yaml") for path in (ROOT / "workflow/schemas/output").iterdir())
OF_STUDY = [
    "plan config/mini.yaml",
    "study check config/mini.yaml",
    "study status config/mini.yaml",
    "compare op7 op28",
    "evidence drive=op7 measurement=pts-iops metric=iops",
    "export -o paper --figures none",
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
    "steady-state 1 1 1 1 1.01",
    "steady-state --csv rounds.csv",
    "trace formats",
    "trace info boot-read",
    "trace list",
    "trend one.tar.gz two.tar.gz",
    "virtual status",
]
ELSEWHERE = (
    "capture", "datasheet", "import", "quick", "replay", "trace decode", "trace import", "trace volumes",
    "trace export", "trace cut", "trace drop-idle", "trace filter", "trace merge", "trace issue-times",
    "trace repeat", "trace synthesise",
)  # fmt: skip
"""Commands whose JSON has no schema yet: they need a drive, minutes, or files of other tools."""


def validated(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    words = command.split()
    if command.startswith("evidence"):
        words.append("cell_label=RND 4KiB 0/100")
    status = main([*words, "--json"])
    captured = capsys.readouterr()
    assert status == 0 or command.startswith("doctor"), captured.err
    schema = load_schema(f"output/{named(command)}")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(captured.out))


def named(command: str) -> str:
    first, second = command.split(" ")[:2]
    return f"{first}-{second}" if f"{first}-{second}" in SCHEMAS else first


@pytest.mark.parametrize("command", OF_STUDY)
def test_output_of_a_study_follows_its_schema(
    command: str, finished: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(finished.folder)
    validated(command, capsys)


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


def test_every_json_has_a_schema() -> None:
    with_json = set()
    for name, command, _ in subcommands(parser()):
        if any("--json" in argument.option_strings for argument in arguments_of(command)[0]):
            with_json.add(name.removeprefix("drivelab "))
    assert {name.replace(" ", "-") for name in with_json - set(ELSEWHERE)} == set(SCHEMAS)
    assert {named(command) for command in (*OF_STUDY, *ALONE)} == set(SCHEMAS), "each is tried"
