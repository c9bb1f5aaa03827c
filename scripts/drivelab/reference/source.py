"""Extract comments, and docstrings of fields and constants, from source."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from types import ModuleType


def comments(module: ModuleType) -> dict[int, tuple[str, bool]]:
    """Return comments by line: the text, and whether the line has only the comment."""
    source = inspect.getsource(module)
    texts = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            texts[token.start[0]] = (token.string.lstrip("# "), not token.line[: token.start[1]].strip())
    return texts


def docstrings(module: ModuleType, name: str | None = None) -> dict[str, str]:
    """Return the docstring of each field of a class, or of each module constant."""
    body = ast.parse(inspect.getsource(module)).body
    if name is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name)
    texts = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        targets: list[ast.expr] = []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            texts.update({target.id: after.value.value for target in targets if isinstance(target, ast.Name)})
    return texts
