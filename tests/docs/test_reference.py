"""The pages of docs/reference match the program's schemas and commands."""

from __future__ import annotations

import re

import pytest
from doc_pages import ROOT

from drivelab.reference.pages import HEADER, pages
from drivelab.tables import columns, replay_schemas, result_schemas, schemas

FOLDER = ROOT / "docs/reference"


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_page_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "outdated; run python -m drivelab.reference"


def test_no_obsolete_page_remains() -> None:
    generated = {path.name for path in FOLDER.iterdir() if path.read_text(encoding="utf-8").startswith(HEADER)}
    assert generated == set(pages())


def test_every_key_of_a_study_has_a_meaning() -> None:
    rows = [line for line in pages()["study.md"].splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.rstrip(" |").endswith("`") and row.count("|") > 3] == []


def test_every_argument_of_a_command_has_a_meaning() -> None:
    arguments = [line for line in pages()["commands.md"].splitlines() if line.startswith("| `")]
    assert arguments
    assert [line for line in arguments if line.rstrip(" |").endswith("`") and line.endswith("|  |")] == []
    assert "| argument |\n" not in pages()["commands.md"]  # a table without meanings


def test_no_table_has_the_name_of_its_constant() -> None:
    modules = (columns, schemas, result_schemas, replay_schemas)
    constants = {name for module in modules for name in vars(module) if name.isupper()}
    assert constants
    assert constants & set(re.findall(r"\w+", pages()["tables.md"])) == set()
