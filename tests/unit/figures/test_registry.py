"""Figures by name: what draws them is loaded late, and belongs to the digest of those jobs alone that draw them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drivelab.figures import FIGURES
from drivelab.figures.titles import TITLES
from drivelab.figures.trace_sheet import TRACE_FIGURES
from drivelab.stages.figure_kinds import FIGURES_OF, OF_A_RECORDING, TABLES_OF, figure_code

LIBRARY = Path(__file__).resolve().parents[3] / "scripts"
CAPTIONS = LIBRARY.parent / "workflow/report"


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_can_be_drawn(name: str) -> None:
    assert callable(FIGURES[name].function)


def test_every_figure_of_a_plan_is_known() -> None:
    names = {name for kind in FIGURES_OF for name in FIGURES_OF[kind]}
    assert names == set(FIGURES) | set(TRACE_FIGURES)
    assert names == set(TITLES)
    assert {name for name in names if not (CAPTIONS / f"{name}.rst").is_file()} == set()


@pytest.mark.parametrize("kind", OF_A_RECORDING)
def test_a_kind_has_the_tables_of_its_figures(kind: str) -> None:
    needed = {table for name in FIGURES_OF[kind] for table in FIGURES[name].required}
    assert needed <= set(TABLES_OF[kind])


def test_naming_figures_loads_nothing_that_draws() -> None:
    code = (
        "import sys; from drivelab.stages.figure_kinds import figure_code; figure_code(['steady']); "
        "print([name for name in ('matplotlib', 'pandas', 'numpy') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(LIBRARY)})
    assert found.stdout.strip() == "[]"


def _digests(monkeypatch: pytest.MonkeyPatch, changed: str) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of all figures, as they are and with a statement more in the module `changed`."""
    from drivelab.config import code_digest as module

    before = figure_code(FIGURES_OF)
    read, wanted = module._read, LIBRARY / "drivelab/figures" / f"{changed}.py"

    def tampered(path: Path) -> tuple[str, tuple[str, ...]]:
        text, names = read(path)
        return (text + "changed", names) if path == wanted else (text, names)

    monkeypatch.setattr(module, "_read", tampered)
    return before, figure_code(FIGURES_OF)


@pytest.mark.parametrize(
    ("module", "figures"),
    [
        ("convergence", {"convergence", "convergence_reads", "convergence_max", "pre_writes"}),
        ("replay_phases", {"replay_phases"}),
        ("trace_heat", {"trace_heat"}),
    ],
)
def test_a_change_of_one_figure_draws_no_others_anew(
    monkeypatch: pytest.MonkeyPatch, module: str, figures: set[str]
) -> None:
    before, after = _digests(monkeypatch, module)
    assert {name for name in before if before[name] != after[name]} == figures


def test_a_change_of_the_style_draws_all_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = _digests(monkeypatch, "style")
    assert all(before[name] != after[name] for name in before)


def test_a_change_for_replays_is_of_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = _digests(monkeypatch, "replay_common")
    changed = {name for name in before if before[name] != after[name]}
    assert changed
    assert changed <= {*FIGURES_OF["replay"], *FIGURES_OF["phases"]}
