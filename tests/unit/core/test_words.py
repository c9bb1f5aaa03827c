from __future__ import annotations

import pytest

from drivelab.core.units import counted, some


def test_only_one_is_singular() -> None:
    assert [counted(number, "drive") for number in (0, 1, 2)] == ["0 drives", "1 drive", "2 drives"]


@pytest.mark.parametrize(
    ("names", "text"), [((), ""), (("a",), "a"), (("a", "b"), "a, b"), (("a", "b", "c", "d"), "a, b and 2 more")]
)
def test_omitted_names_are_counted(names: tuple[str, ...], text: str) -> None:
    assert some(names, 2) == text
