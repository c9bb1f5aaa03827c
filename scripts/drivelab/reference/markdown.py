"""Write the Markdown elements of the reference pages."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from collections.abc import Iterable
from itertools import pairwise
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


def comments(module: ModuleType) -> dict[int, tuple[str, bool]]:
    """Return comments by line: the text, and whether the line has only the comment."""
    source = inspect.getsource(module)
    texts = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            texts[token.start[0]] = (token.string.lstrip("# "), not token.line[: token.start[1]].strip())
    return texts


def docstrings(module: ModuleType) -> dict[str, str]:
    """Return the docstring of each module constant."""
    texts = {}
    for node, after in pairwise(ast.parse(inspect.getsource(module)).body):
        if (
            isinstance(node, ast.Assign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            texts.update({target.id: after.value.value for target in node.targets if isinstance(target, ast.Name)})
    return texts
