"""The three warnings of a quick look: each begins with what was seen, and an ordinary place gets none."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from drivelab.analysis.values.quick_look import SHOWN, Value
from drivelab.cli.main import parser
from drivelab.quick import caveats
from drivelab.quick.caveats import BETWEEN, BUSY, KINDS, ROUGH, of_values, warnings


def test_the_causes_of_a_kind_are_one_warning_that_begins_with_them() -> None:
    one, two, other = ((BUSY, "one"), (BUSY, "two"), (ROUGH, "other"))
    assert warnings([other, one, two, one]) == (f"One; two. {KINDS[BUSY]}", f"Other. {KINDS[ROUGH]}")
    assert warnings([]) == ()


def test_a_full_file_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caveats.os, "statvfs", lambda path: SimpleNamespace(f_blocks=100, f_bfree=6, f_bavail=5))
    ((kind, text),) = caveats.of_folder(Path("/data"), caveats.SMALL_FILE_BYTES)
    assert (kind, text) == (ROUGH, "the file system of /data is 95 % full")


@pytest.mark.parametrize(("test", "kind"), caveats.FASTEST_US)
def test_a_latency_that_no_drive_of_its_class_has_is_a_caches(test: str, kind: str) -> None:
    (shown,) = (shown for shown in SHOWN if shown.key == test)
    least, less = (Value(shown, factor * caveats.FASTEST_US[test, kind], 1.0, ()) for factor in (1.0, 0.99))
    assert list(of_values([least], kind)) == []
    ((cause, text),) = of_values([less], kind)
    assert cause == BETWEEN
    assert "so a cache answers" in text


def test_each_remedy_names_a_command_or_option_that_exists() -> None:
    for text in KINDS.values():
        names = re.findall(r"`\./drivelab ([a-z-]+)", text)
        options = re.findall(r"--[a-z]+", text)
        assert names or options
        assert set(names) <= parser().commands.about.keys()
        assert set(options) <= {"--size", "--time"}
