"""A busy machine before a study: what is said, and what the user can choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from drivelab.campaign.planning import Campaign
from drivelab.cli.measure.run import ASK, CONTINUE, WAIT
from drivelab.cli.measure.runner import settle
from drivelab.drives.openers import Host
from drivelab.telemetry.other_programs import disturbances

STUDY = """\
name: mine
results: results
clock: {clock}
drives: [op7, op28]
measurements: [{{protocol: pts-write-saturation, scale: demo}}]
"""
BUSY = "other programs use 80 % of the CPU (stress 42)"


def campaign(clock: str) -> Campaign:
    Path("config/mine.yaml").write_text(STUDY.format(clock=clock))
    return Campaign.load("config/mine.yaml")


def looks(*answers: tuple[str, ...]) -> tuple[list[Sequence[str]], object]:
    """Return the list of calls, and a function that gives the answers in turn."""
    seen: list[Sequence[str]] = []
    turns: Iterator[tuple[str, ...]] = iter(answers)

    def look(names: Sequence[str]) -> tuple[str, ...]:
        seen.append(names)
        return next(turns)

    return seen, look


@pytest.mark.parametrize(
    ("when", "answers", "said"),
    [
        (CONTINUE, [(BUSY,)], "Continuing"),
        (ASK, [(BUSY,)], "Continuing"),
        (WAIT, [(BUSY,), (BUSY,), ()], "The machine is idle now."),
        (ASK, [()], ""),
    ],
)
def test_a_busy_machine_is_named_and_waited_for(
    when: str, answers: list[tuple[str, ...]], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test has no terminal, so there is no question."""
    seen, look = looks(*answers)
    assert settle(campaign("wall"), when, look)  # type: ignore[arg-type]
    assert len(seen) == len(answers)
    err = capsys.readouterr().err
    assert said in err
    assert ("warning: other programs use 80 % of the CPU (stress 42)\n" in err) == bool(answers[0])


@pytest.mark.parametrize(("typed", "starts"), [("\n", True), ("w\n", True), ("c\n", True), ("s\n", False), ("", False)])
def test_the_user_chooses_on_a_terminal(
    typed: str, starts: bool, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return typed

    _, look = looks((BUSY,), ())
    mine = campaign("wall")
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert settle(mine, ASK, look) == starts  # type: ignore[arg-type]
    assert "Wait until the machine is idle (w)" in capsys.readouterr().err


def test_simulated_time_needs_no_look(project: Path) -> None:
    _, look = looks()
    assert settle(campaign("virtual"), ASK, look)  # type: ignore[arg-type]


def test_disturbances_come_from_processes_of_this_host(tmp_path: Path) -> None:
    """An idle host has none."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "stat").write_text("cpu  100 0 100 1000 0 0 0 0 0 0\n")

    def busy() -> None:
        (proc / "stat").write_text("cpu  180 0 100 1020 0 0 0 0 0 0\n")

    host = Host(sys_root=tmp_path / "sys", proc_root=proc)
    assert disturbances([], host, lambda: None) == ()
    assert disturbances([], host, busy) == ("other programs use 80 % of the CPU",)
