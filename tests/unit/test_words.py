from __future__ import annotations

import pytest

from drivelab.words import counted, some


def test_one_is_no_plural() -> None:
    assert [counted(number, "drive") for number in (0, 1, 2)] == ["0 drives", "1 drive", "2 drives"]


@pytest.mark.parametrize(
    ("names", "text"), [((), ""), (("a",), "a"), (("a", "b"), "a, b"), (("a", "b", "c", "d"), "a, b and 2 more")]
)
def test_what_is_left_out_of_a_list_is_counted(names: tuple[str, ...], text: str) -> None:
    assert some(names, 2) == text
