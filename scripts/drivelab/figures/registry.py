"""The figures by name, as their modules declare them. What draws is imported when it is called for.

A new figure is one module below `kinds` with `FIGURES`, a tuple of `FigureKind` calls with literal arguments. The
declarations are read without running the module: a plan can name figures without waiting for matplotlib.
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
_DECLARES, _END = "FIGURES = (", "\n)\n"
TRACE = "trace"
"""Condition of figures that a trace has; the others are of recordings."""


@dataclass(frozen=True)
class FigureKind:
    """One kind of figure: what it is called, when a study has it, and what it is drawn from."""

    name: str
    """Name of its files."""
    title: str
    caption: str
    """What a reader sees, in plain text."""
    tables: tuple[str, ...]
    """Tables that the function takes, in its order."""
    status: str
    """Table whose columns reduced, virtual and clock say how the figure must be labelled."""
    when: tuple[str, ...]
    """Conditions of `drivelab.stages.figure_kinds`: a plan that meets one of them has the figure."""
    place: int = 10_000
    """Figures of a page are in the order of their places."""
    values: str = "cells"
    """Table that says whether the values shown are tainted, if it is at hand."""
    rows: str = ""
    """Which rows of cells and latency bins it shows: one of `drivelab.figures.base.sheets.ROWS`; empty for all."""
    one_loop: bool = False
    """Only the first loop with a steady-state window is shown."""
    of_window: bool = False
    """Only the rounds in the steady-state window are shown."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments by which it differs from other figures of its module."""
    module: str = ""
    """Module of this package that declares it; the function that draws has its last name."""

    @property
    def function(self) -> Callable[..., Figure]:
        """What draws; imports its module."""
        function: Callable[..., Figure] = getattr(
            import_module(f"{__package__}.{self.module}"), self.module.rpartition(".")[2]
        )
        return function

    @property
    def required(self) -> tuple[str, ...]:
        """All tables that `render` needs."""
        return tuple(dict.fromkeys((*self.tables, self.status)))


def discovered(folder: Path = _FOLDER) -> dict[str, FigureKind]:
    """Return the figures that the modules below a folder declare, by name, in the order of their places.

    Raises ValueError for a name that two modules declare, and for a declaration that is not literal.
    """
    found: dict[str, FigureKind] = {}
    for path in sorted(folder.rglob("*.py")):
        _, start, rest = path.read_text(encoding="utf-8").partition(f"\n{_DECLARES}\n")
        if not start:
            continue
        declared = f"({rest.partition(f'{_END}')[0]})"  # to read the whole module would take ten times as long
        for kind in _declared(path, declared, ".".join(path.relative_to(folder).with_suffix("").parts)):
            if kind.name in found:
                raise ValueError(f"{path}: figure '{kind.name}' is declared by {found[kind.name].module} as well")
            found[kind.name] = kind
    return dict(sorted(found.items(), key=lambda one: (one[1].place, one[0])))


def _declared(path: Path, text: str, module: str) -> Iterator[FigureKind]:
    try:
        for call in ast.parse(text, mode="eval").body.elts:  # type: ignore[attr-defined]
            yield FigureKind(**{one.arg: ast.literal_eval(one.value) for one in call.keywords}, module=module)
    except (SyntaxError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: FIGURES must be FigureKind calls with literal arguments ({error})") from None


ALL: Mapping[str, FigureKind] = discovered()
FIGURES: Mapping[str, FigureKind] = {name: kind for name, kind in ALL.items() if TRACE not in kind.when}
"""Figures of recordings and of drives."""
TRACE_FIGURES: Mapping[str, FigureKind] = {name: kind for name, kind in ALL.items() if TRACE in kind.when}
"""Figures of traces."""
DRAWING = [
    f"{__package__}.{name}"
    for name in ("base.sheets", "base.kept", *dict.fromkeys(one.module for one in FIGURES.values()))
]
"""All modules that draw, to be imported once where many figures are drawn."""
