"""Invisible characters in names and paths of a study or protocol, which would become part of a file's name."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.plan.schema import find_violation

STUDY: dict[str, Any] = {"name": "x", "drives": ["a"], "measurements": [{"protocol": "pts-iops"}]}
INVISIBLE = ("\n", " ", "\r", "\t", "\x00", "\x1b[2J", "\u202e")


@pytest.mark.parametrize("end", INVISIBLE, ids=ascii)
@pytest.mark.parametrize(
    ("key", "value"), [("name", "x"), ("results", "results/s"), ("drives_sheet", "config/drives.tsv"), ("basis", "a")]
)
def test_an_invisible_character_in_a_name_is_refused(key: str, value: str, end: str) -> None:
    violation = find_violation({**STUDY, key: f"{value}{end}"}, "study")
    assert violation is not None
    assert violation.keys == (key,)


def test_lists_keys_and_mappings_are_checked() -> None:
    for body, keys in (
        ({**STUDY, "drives": ["a\n"]}, ("drives", 0)),
        ({**STUDY, "measurements": [{"protocol": "pts-iops\n"}]}, ("measurements", 0, "protocol")),
        ({**STUDY, "traces": {"t": {"file": "a.parquet\n"}}}, ("traces", "t", "file")),
    ):
        violation = find_violation(body, "study")
        assert violation is not None
        assert violation.keys == keys


def test_texts_for_people_may_have_lines() -> None:
    assert find_violation({**STUDY, "title": "two\nlines\n", "host_note": "a\nb\n"}, "study") is None
    assert find_violation(STUDY, "study") is None
