"""Figures from tables: DataFrames in, matplotlib Figures out; only `save` touches a file."""

from drivelab.figures.registry import FIGURES, FigureKind, render
from drivelab.figures.style import label, save

__all__ = ["FIGURES", "FigureKind", "label", "render", "save"]
