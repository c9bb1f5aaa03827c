"""The page on coverage names protocols, figures and commands that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab.cli.main import parser
from drivelab.figures.registry import ALL
from drivelab.plan.yaml_file import load_yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/coverage.md"
COLUMNS = ("protocols", "figures", "commands and pages")


def rows() -> Iterator[dict[str, str]]:
    """Yield the cells of each row of the tables, by column."""
    head: list[str] = []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|"):
            head = []
            continue
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        if not head:
            head = cells
        elif not set(line) <= set("|-"):
            yield dict(zip(head, cells, strict=True))


ROWS = list(rows())


def named(column: str) -> set[str]:
    return {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[column])}


def test_the_named_protocols_exist() -> None:
    assert named("protocols") <= {path.stem for path in (ROOT / "config/protocols").glob("*.yaml")}


def test_the_named_figures_exist() -> None:
    assert named("figures") <= ALL.keys()


def test_the_named_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for command in named("commands and pages"):
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([*command.split(), "--help"])
        assert ended.value.code == 0, command
    capsys.readouterr()


def test_each_item_is_shown_or_missing() -> None:
    assert len(ROWS) > 60
    for row in ROWS:
        assert any(row[column] for column in COLUMNS), row


def test_every_protocol_of_the_documents_has_its_item() -> None:
    own = ("rwsw-", "pts-", "trace-", "crystaldiskmark-", "iometer-")  # of other documents as well
    of_documents = {
        path.stem
        for path in (ROOT / "config/protocols").glob("*.yaml")
        if not path.stem.startswith(own) and not str(load_yaml(path)["source"]).startswith("ours")
    }
    assert of_documents <= named("protocols")
