"""Figures by name, as their modules declare them; modules that draw are imported on first use.

A figure is declared in a module below `kinds` in `FIGURES`, a tuple of `FigureKind` calls with literal arguments, and
drawn by a function of that module. The declarations are read without running the module, so that a plan can name
figures without importing matplotlib.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOLDER = Path(__file__).parent
_DECLARES, _END = "FIGURES = (", "\n)"
TRACE = "trace"
"""Condition of the figures of traces; all others are of recordings."""


@dataclass(frozen=True)
class FigureKind:
    """One kind of figure: its name, the conditions of a study that has it, and its tables."""

    name: str
    """Name of its files."""
    title: str
    caption: str
    """Explanation for readers, in plain text."""
    when: tuple[str, ...]
    """Conditions of `drivelab.figures.of_recording`; a plan that meets any of them has the figure."""
    tables: tuple[str, ...] = ("cells", "steady_state")
    """Tables that the function takes, in the order of its arguments."""
    status: str = ""
    """Table whose columns reduced, virtual and clock say how the figure must be labelled; empty for the first of
    `tables`."""
    place: int = 10_000
    """Position of the figure on its page."""
    rows: str = ""
    """Rows of cells and latency bins: one of `drivelab.figures.base.sheets.ROWS`, or empty for all."""
    one_loop: bool = False
    """Only the first loop with a steady-state window is shown."""
    of_window: bool = False
    """Only the rounds in the steady-state window are shown."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that differ from other figures of its function."""
    draw: str = ""
    """Function of the module that draws the figure; empty for one with the figure's name."""
    module: str = ""
    """Module of this package that declares the figure."""

    @property
    def function(self) -> Callable[..., Figure]:
        """Function that draws the figure, and raises ValueError for unsuitable tables; imports its module."""
        function: Callable[..., Figure] = getattr(import_module(f"{__package__}.{self.module}"), self.draw or self.name)
        return function

    @property
    def status_table(self) -> str:
        """Table of the figure's labels."""
        return self.status or self.tables[0]

    @property
    def values(self) -> str:
        """Table that says whether the shown values are tainted, if available."""
        own = ("replays", "application_runs", "load_rates", "summary")
        return self.status_table if self.status_table in own else "cells"

    @property
    def required(self) -> tuple[str, ...]:
        """All tables that `render` needs."""
        return tuple(dict.fromkeys((*self.tables, self.status_table)))


def discovered(folder: Path = _FOLDER) -> dict[str, FigureKind]:
    """Return the figures that the modules below a folder declare, by name, in order of `place`.

    Raises ValueError for a name declared twice and for a declaration that is not literal.
    """
    kinds: dict[str, FigureKind] = {}
    for path in sorted(folder.rglob("*.py")):
        _, start, rest = path.read_text(encoding="utf-8").partition(f"\n{_DECLARES}\n")
        if not start:
            continue
        declared = f"({rest.partition(f'{_END}')[0]})"  # parsing the whole module takes ten times as long
        for kind in _declared(path, declared, ".".join(path.relative_to(folder).with_suffix("").parts)):
            if kind.name in kinds:
                raise ValueError(f"{path}: figure '{kind.name}' is declared by {kinds[kind.name].module} as well")
            kinds[kind.name] = kind
    return dict(sorted(kinds.items(), key=lambda item: (item[1].place, item[0])))


def _declared(path: Path, text: str, module: str) -> Iterator[FigureKind]:
    try:
        for call in ast.parse(text, mode="eval").body.elts:  # type: ignore[attr-defined]
            texts = zip(("name", "title", "caption"), map(ast.literal_eval, call.args), strict=False)
            options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
            yield FigureKind(**dict(texts), **options, module=module)
    except (SyntaxError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: FIGURES must be FigureKind calls with literal arguments ({error})") from None


ALL: Mapping[str, FigureKind] = discovered()
FIGURES: Mapping[str, FigureKind] = {name: kind for name, kind in ALL.items() if TRACE not in kind.when}
"""Figures of recordings and of drives."""
TRACE_FIGURES: Mapping[str, FigureKind] = {name: kind for name, kind in ALL.items() if TRACE in kind.when}
"""Figures of traces."""
