"""The table of attacks names only existing tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [row for row in (ROOT / "tests/attacks.md").read_text().splitlines() if row.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_the_test_of_an_attack_exists(row: str) -> None:
    *_, test, end = row.split("|")
    assert end == ""
    file, _, name = test.strip(" `").partition("::")
    assert re.search(rf"^def {name or 'test_.*'}\(", (ROOT / file).read_text(), re.MULTILINE), f"there is no {test}"
