"""A program that is asked to end in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.process import run_program

PATIENT = ["sh", "-c", "trap 'echo bye; exit 128' INT; echo ready; while :; do sleep 0.02; done"]


def is_ready(folder: Path) -> bool:
    return (folder / "stdout").read_text() == "ready\n"


def test_it_is_interrupted_once_and_ends_by_itself(tmp_path: Path) -> None:
    asked = []

    def until() -> bool:
        asked.append(is_ready(tmp_path))
        return asked[-1]

    run_program(PATIENT, tmp_path, lambda elapsed_s: None, until=until, look_s=0.05)
    assert asked[-1]
    assert sum(asked) == 1, "asked no more once it was time"
    assert (tmp_path / "stdout").read_text() == "ready\nbye\n"
    assert (tmp_path / "exit_code").read_text() == "128\n"


def test_what_the_rule_raises_ends_the_program(tmp_path: Path) -> None:
    def until() -> bool:
        if is_ready(tmp_path):
            raise RuntimeError("damaged")
        return False

    with pytest.raises(RuntimeError, match="damaged"):
        run_program(PATIENT, tmp_path, lambda elapsed_s: None, until=until, look_s=0.05)
    assert (tmp_path / "stdout").read_text() == "ready\n"
    assert not (tmp_path / "exit_code").exists()


def test_looks_between_two_ticks_are_no_ticks(tmp_path: Path) -> None:
    looks, ticks = [0], []

    def until() -> bool:
        looks[0] += 1
        return looks[0] == 9

    def tick(elapsed_s: float) -> None:
        ticks.append(looks[0])

    run_program(["sleep", "60"], tmp_path, tick, until=until, look_s=0.25)
    assert ticks == [4, 8]
