"""The pages of docs/reference are what the program makes of its own schemas and commands."""

from __future__ import annotations

import pytest
from doc_pages import ROOT

from drivelab.reference.pages import pages

FOLDER = ROOT / "docs/reference"


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_page_is_as_made(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run python -m drivelab.reference"


def test_there_is_no_other_page() -> None:
    assert {one.name for one in FOLDER.iterdir()} == set(pages())


@pytest.mark.parametrize("name", ["study.md", "drive_sheet.md", "virtual_drives.md", "applications.md"])
def test_every_key_has_a_meaning(name: str) -> None:
    rows = [line for line in pages()[name].splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.rstrip(" |").endswith("`") and row.count("|") > 3] == []
