"""Nobody's data is lost without a word from somebody, once for each drive and study."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.errors import UserError
from drivelab.stages import consent


def study(results: Path, *serials: str) -> Any:
    return SimpleNamespace(name="one", results=results, consent=serials)


def test_the_first_time_wants_a_word(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'a' \(S1\), 'b' \(S2\) for the first time.*--yes.*Nothing was written"):
        consent.require(study(tmp_path), {"a": "S1", "b": "S2"}, yes=False)
    assert not (tmp_path / "consent.json").exists()
    with pytest.raises(UserError, match="nobody has agreed"):
        consent.check(tmp_path, "a", "S1")


def test_given_once_it_holds_until_another_drive_joins(tmp_path: Path) -> None:
    consent.require(study(tmp_path), {"a": "S1"}, yes=True)
    consent.require(study(tmp_path), {"a": "S1"}, yes=False)
    consent.check(tmp_path, "a", "S1")
    with pytest.raises(UserError, match=r"on 'b' \(S2\) for"):
        consent.require(study(tmp_path), {"a": "S1", "b": "S2"}, yes=False)
    with pytest.raises(UserError, match="drive 'b'"):
        consent.check(tmp_path, "b", "S2")


def test_the_study_may_give_it_by_serial(tmp_path: Path) -> None:
    consent.require(study(tmp_path, "S1"), {"a": "S1"}, yes=False)
    consent.check(tmp_path, "a", "S1")
    with pytest.raises(UserError, match="S2"):
        consent.require(study(tmp_path, "S1"), {"a": "S1", "b": "S2"}, yes=False)


def test_no_drive_no_question(tmp_path: Path) -> None:
    consent.require(study(tmp_path), {}, yes=False)
    assert not (tmp_path / "consent.json").exists()


def test_a_broken_record_is_no_consent(tmp_path: Path) -> None:
    (tmp_path / "consent.json").write_text("{")
    with pytest.raises(UserError, match="is no record of consent"):
        consent.check(tmp_path, "a", "S1")
