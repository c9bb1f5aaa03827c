"""The pages of docs/reference match the program's schemas and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from doc_pages import ROOT

from drivelab.cli.introspection import arguments_of, subcommands
from drivelab.cli.main import parser
from drivelab.plan.schema import load_schema
from drivelab.reference.pages import HEADER, pages
from drivelab.tables import columns, replay_schemas, result_schemas, schemas

FOLDER = ROOT / "docs/reference"


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_page_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "outdated; run python -m drivelab.reference"


def test_no_obsolete_page_remains() -> None:
    generated = {path.name for path in FOLDER.iterdir() if path.read_text(encoding="utf-8").startswith(HEADER)}
    assert generated == set(pages())


@pytest.mark.parametrize("name", ["study.md", "commands.md"])
def test_every_key_and_argument_has_a_meaning_or_a_section(name: str) -> None:
    lines = [line for line in pages()[name].splitlines() if line.startswith("* `")]
    assert lines
    assert [line for line in lines if not re.search(r"(\)|`): \S|\(\[|required\)$", line)] == []


@pytest.mark.parametrize("name", ["study", "protocol"])
def test_every_key_of_a_schema_is_on_its_page(name: str) -> None:
    keys, page = set(_keys(load_schema(name))), pages()[f"{name}.md"]
    assert keys
    assert {key for key in keys if f"`{key}`" not in page} == set()


def _keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node["properties"] if isinstance(node.get("properties"), dict) else ()
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _keys(value)


def test_every_option_of_every_command_is_on_its_page() -> None:
    page = pages()["commands.md"]
    for name, command, _about in subcommands(parser()):
        arguments, is_group = arguments_of(command)
        section = "" if is_group else page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        for argument in arguments:
            for option in argument.option_strings:
                assert option in section or option == "-o", f"{name} {option}"


def test_every_column_is_on_its_page() -> None:
    names = {name for schema in schemas.SCHEMAS.values() for name in schema.names}
    page = pages()["tables.md"]
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_no_table_has_the_name_of_its_constant() -> None:
    modules = (columns, schemas, result_schemas, replay_schemas)
    constants = {name for module in modules for name in vars(module) if name.isupper()}
    assert constants
    assert constants & set(re.findall(r"\w+", pages()["tables.md"])) == set()


def test_a_meaning_loses_its_bounds_whole() -> None:
    """The value shows them. A search for whole numbers would take `, 50 to 99` and leave `.9999`."""
    line = "* `percentile` (number 50..99.9999; required): percentile, such as 99.99"
    assert line in pages()["protocol.md"].splitlines()


def test_the_picture_has_the_rules() -> None:
    """The picture leaves out `all` and `facts`, which almost all rules need, and a rule for simultaneous drives."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "workflow/rules").glob("*.smk")]
    rules = {name for text in texts for name in re.findall(r"^(?:rule|use rule \w+ as) (\w+)", text, re.MULTILINE)}
    drawn = set(re.findall(r"<text[^>]*>(\w+)</text>", (ROOT / "docs/images/rules.svg").read_text(encoding="utf-8")))
    assert drawn == rules - {"facts", "measure_together"}
