"""Figures by name: what draws them is loaded late, and belongs to the digest of those jobs alone that draw them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drivelab.config.code_digest import code_digest
from drivelab.figures import FIGURES
from drivelab.figures.titles import TITLES
from drivelab.figures.trace_sheet import TRACE_FIGURES
from drivelab.stages.figure_kinds import FIGURES_OF, OF_A_RECORDING, TABLES_OF, figure_modules

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
        "import sys; from drivelab.stages.figure_kinds import figure_modules; figure_modules(['steady']); "
        "print([name for name in ('matplotlib', 'pandas', 'numpy') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(LIBRARY)})
    assert found.stdout.strip() == "[]"


def _digests(monkeypatch: pytest.MonkeyPatch, changed: str) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of the jobs of each kind, as they are and with a statement more in the module `changed`."""
    from drivelab.config import code_digest as module

    before = {kind: code_digest(*figure_modules([kind])) for kind in FIGURES_OF}
    read, wanted = module._read, LIBRARY / "drivelab/figures" / f"{changed}.py"

    def tampered(path: Path) -> tuple[str, tuple[str, ...]]:
        text, names = read(path)
        return (text + "changed", names) if path == wanted else (text, names)

    monkeypatch.setattr(module, "_read", tampered)
    return before, {kind: code_digest(*figure_modules([kind])) for kind in FIGURES_OF}


def test_a_change_of_one_figure_draws_no_others_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = _digests(monkeypatch, "convergence")
    assert {kind for kind in before if before[kind] != after[kind]} == {"steady", "reads", "maximum", "pre_writes"}


def test_a_change_of_the_style_draws_all_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = _digests(monkeypatch, "style")
    assert all(before[kind] != after[kind] for kind in before)


def test_a_change_for_replays_is_of_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = _digests(monkeypatch, "replay_common")
    assert {kind for kind in before if before[kind] != after[kind]} == {"replay", "phases"}
