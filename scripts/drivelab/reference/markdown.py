"""Write the Markdown elements of the reference pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from types import ModuleType


def code(text: object) -> str:
    return f"`{text}`"


def bullet(names: Iterable[str], about: str, notes: Iterable[str] = ()) -> str:
    """Return a line of a list: names, remarks in parentheses, meaning."""
    remarks = "; ".join(note for note in notes if note)
    head = ", ".join(names) + (f" ({remarks})" if remarks else "")
    return f"* {head}" + (f": {' '.join(about.split())}" if about else "")


def link(heading: str) -> str:
    """Return a link to a section of the same page."""
    return f"[{heading}](#{anchor(heading)})"


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    kept = (letter for letter in heading.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")
    return "".join(kept)


def comments(module: ModuleType) -> dict[int, str]:
    """Return the comments of a module by line."""
    lines = enumerate(inspect.getsource(module).splitlines(), 1)
    return {number: found[1] for number, line in lines if (found := re.search(r"(?:^|  )# (.*)", line))}


def docstrings(module: ModuleType) -> dict[str, str]:
    """Return the docstring of each module constant."""
    found = re.finditer(r'^(\w+) = (?:(?!^\w).)*?\n"""(.*?)"""$', inspect.getsource(module), re.M | re.S)
    return {match[1]: match[2] for match in found}
