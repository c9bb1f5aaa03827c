#!/usr/bin/env python3
"""Print the lines of each part of the project, and fail above the limits in pyproject.toml.

Limits only go down: `tools/size.py --lower` sets each to what the part has now.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "scripts/drivelab"


def lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


def sizes() -> dict[str, int]:
    """Return the lines of each package of the library, of all its Python, its C, the tests, and its modules."""
    packages = sorted(path.parent for path in LIBRARY.glob("*/__init__.py"))
    return {
        **{package.name: lines(package.rglob("*.py")) for package in packages},
        "python": lines(LIBRARY.rglob("*.py")),
        "modules": len([*LIBRARY.rglob("*.py")]),
        "c": lines(LIBRARY.rglob("*.[ch]")),
        "tests": lines((ROOT / "tests").rglob("*.py")),
        "benchmarks": lines((ROOT / "benchmarks").rglob("*.py")),
    }


def main() -> int:
    project = ROOT / "pyproject.toml"
    limits = tomllib.loads(project.read_text())["tool"]["drivelab"]["size"]
    found = sizes()
    over = [name for name, size in found.items() if size > limits.get(name, 0)]
    for name, size in found.items():
        print(f"{name:<16}{size:>8}{limits.get(name, 0):>8}{'  too large' if name in over else ''}")
    if "--lower" in sys.argv:
        rows = "".join(f"{name} = {min(size, limits.get(name, size))}\n" for name, size in found.items())
        table = f"[tool.drivelab.size]\n{rows}"
        project.write_text(re.sub(r"\[tool\.drivelab\.size\]\n(?:\w+ = \d+\n)*", table, project.read_text()))
        return 0
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
