"""A program is interrupted and ends cleanly."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.core.programs import run_program

PATIENT = ["sh", "-c", "trap 'echo bye; exit 128' INT; echo ready; while :; do sleep 0.02; done"]


def is_ready(folder: Path) -> bool:
    return (folder / "stdout").read_text() == "ready\n"


def test_program_is_interrupted_once_and_ends(tmp_path: Path) -> None:
    answers = []

    def until() -> bool:
        answers.append(is_ready(tmp_path))
        return answers[-1]

    run_program(PATIENT, tmp_path, lambda elapsed_s: None, until=until, look_s=0.05)
    assert answers[-1]
    assert sum(answers) == 1, "the rule is not called again after it is true"
    assert (tmp_path / "stdout").read_text() == "ready\nbye\n"
    assert (tmp_path / "exit_code").read_text() == "128\n"


def test_exception_of_the_rule_ends_the_program(tmp_path: Path) -> None:
    def until() -> bool:
        if is_ready(tmp_path):
            raise RuntimeError("damaged")
        return False

    with pytest.raises(RuntimeError, match="damaged"):
        run_program(PATIENT, tmp_path, lambda elapsed_s: None, until=until, look_s=0.05)
    assert (tmp_path / "stdout").read_text() == "ready\n"
    assert not (tmp_path / "exit_code").exists()


def test_ticks_are_independent_of_checks(tmp_path: Path) -> None:
    looks, ticks = [0], []

    def until() -> bool:
        looks[0] += 1
        return looks[0] == 9

    def tick(elapsed_s: float) -> None:
        ticks.append(looks[0])

    run_program(["sleep", "60"], tmp_path, tick, until=until, look_s=0.25)
    assert ticks == [4, 8]
