"""`drivelab test`: what failed in real time runs once more, and the end names what then passed."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import tiers

from drivelab.core.errors import UserError

FLAKY = """
from pathlib import Path
import pytest

def test_moment():
    been = Path(__file__).with_name("been")
    here = been.exists()
    been.touch()
    assert here, "another moment"

def test_sound(): pass
"""
BROKEN = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_broken(number): assert False
"""
Tier = Callable[[str], tiers.Tier]


@pytest.fixture
def tier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tier:
    """Return a function that makes a tier in real time of one file of tests."""
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    monkeypatch.setattr(tiers, "KEPT", tmp_path / ".pytest_cache")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def make(text: str) -> tiers.Tier:
        (tmp_path / "test_it.py").write_text(text)
        made = tiers.Tier("", (tiers.Part("made", ("-n", "0", "test_it.py")),))
        monkeypatch.setattr(tiers, "TIERS", {"default": tiers.TIERS["default"], "made": made})
        return made

    return make


def table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The table at the end of `.ci/run`, below its heading, without the seconds."""
    capsys.readouterr()
    script = runpy.run_path(str(Path(__file__).resolve().parents[3] / ".ci/table.py"))
    script["main"].__globals__["KEPT"] = tmp_path / ".pytest_cache"
    script["main"]()
    first, *others = capsys.readouterr().out.splitlines()[2:]
    return [" ".join(first.split()[:-1]), *others]


def test_a_test_that_passes_alone_is_unstable(tier: Tier, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tiers._tier(tier(FLAKY), ()) == 1
    assert tiers._again(["made"]) == 0
    assert table(tmp_path, capsys)[:2] == [
        "made 1 0 1", "unstable: test_it::test_moment: AssertionError: another moment",
    ]  # fmt: skip
    (tmp_path / "been").unlink()
    assert tiers._tier(tiers.TIERS["made"], ()) == 1
    assert not (tmp_path / ".pytest_cache/made.again.xml").exists(), "an earlier repetition is forgotten"


def test_a_test_that_fails_twice_has_failed(tier: Tier, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tiers._tier(tier(BROKEN.format(count=2)), ()) == 1
    assert tiers._again(["made"]) == 1
    assert table(tmp_path, capsys)[0] == "made 0 2 0"


def test_many_failures_are_no_accident(tier: Tier, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tiers._tier(tier(BROKEN.format(count=11)), ()) == 1
    assert tiers._again(["made"]) == 1
    assert not (tmp_path / ".pytest_cache/made.again.xml").exists()
    assert table(tmp_path, capsys)[0] == "made 0 11 0"


def test_what_passed_does_not_run_again(tier: Tier, tmp_path: Path) -> None:
    assert tiers._tier(tier("def test_sound(): pass"), ()) == 0
    with pytest.raises(UserError, match="no test of tier 'made' has failed"):
        tiers._again(["made"])
    assert not (tmp_path / ".pytest_cache/made.again.xml").exists()


def test_a_part_that_is_killed_fails_its_tier(tier: Tier, tmp_path: Path) -> None:
    """It leaves no failed test, so it does not run again."""
    passing = tier("def test_sound(): pass").parts[0]
    (tmp_path / "test_killed.py").write_text("import os\ndef test_killed(): os.kill(os.getpid(), 9)\n")
    (tmp_path / "test_failed.py").write_text("def test_failed(): assert False\n")
    killed, failed = (tiers.Part(name, (f"test_{name}.py",)) for name in ("killed", "failed"))
    assert tiers._tier(tiers.Tier("", (passing, killed)), ()) == -9
    assert tiers._tier(tiers.Tier("", (failed, killed)), ()) == -9


@pytest.mark.parametrize("names", [[], ["default"], ["deep"], ["again"]])
def test_only_tests_in_real_time_run_again(names: list[str]) -> None:
    with pytest.raises(UserError, match="name tiers in real time: device, long, browser"):
        tiers._again(names)


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(UserError, match="no tier or path 'deep'"):
        tiers.split_tier(["deep"])
