"""A digest of the code that makes a file, for the parameters of its rule: Snakemake sees no imports of a script."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from drivelab.plan.places import SHIPPED

LIBRARIES = ("duckdb", "jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "ruptures", "scipy", "seaborn", "typst")
ALWAYS = ("core", "criteria", "plan", "recording", "tables")
"""Packages that each analysis uses."""
_LIBRARY = Path(__file__).resolve().parents[1]


def digest(*sources: str) -> str:
    """Return a digest of a script, such as `tables.py`, and packages or modules, such as `collect`, `analysis.verdict`.

    It also covers the packages ALWAYS and the versions of LIBRARIES, and is the same for every version of Python.
    Raises ValueError for an unknown name.
    """
    parts = [f"{name} {version(name)}" for name in LIBRARIES]
    parts += map(_of, (*ALWAYS, *sources))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def _of(name: str) -> str:
    if name.endswith(".py"):
        return _digest(SHIPPED / "scripts", name)
    place = _LIBRARY.joinpath(*name.split("."))
    if place.is_dir():
        return _digest(place, "**/*")
    if place.with_suffix(".py").is_file():
        return _digest(place.parent, f"{place.name}.py")
    raise ValueError(f"drivelab has no package or module '{name}'")


@cache
def _digest(folder: Path, pattern: str) -> str:
    result = hashlib.sha256()
    for path in sorted(folder.glob(pattern)):
        if path.is_file() and path.suffix != ".pyc":
            result.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return result.hexdigest()
