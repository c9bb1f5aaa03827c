"""Figures from tables: DataFrames in, matplotlib Figures out; only `save` touches a file.

`render`, `label` and `save` import matplotlib on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from drivelab.figures.registry import FIGURES, FigureKind

if TYPE_CHECKING:
    from drivelab.figures.base.sheets import render
    from drivelab.figures.base.style import label, save

__all__ = ["FIGURES", "FigureKind", "label", "render", "save"]
_MODULE_OF = {"render": "base.sheets", "label": "base.style", "save": "base.style"}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
