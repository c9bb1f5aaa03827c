"""What the source says beside the code: comments behind lines, and docstrings of fields and constants."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from types import ModuleType


def comments(module: ModuleType) -> dict[int, tuple[str, bool]]:
    """Comments by line: the text, and whether it stands alone there."""
    source = inspect.getsource(module)
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found[token.start[0]] = (token.string.lstrip("# "), not token.line[: token.start[1]].strip())
    return found


def docstrings(module: ModuleType, name: str | None = None) -> dict[str, str]:
    """What stands below each field of the class `name`, or below each constant of the module."""
    body = ast.parse(inspect.getsource(module)).body
    if name is not None:
        body = next(one.body for one in body if isinstance(one, ast.ClassDef) and one.name == name)
    found = {}
    for one, after in zip(body, [*body[1:], None], strict=True):
        targets = [one.target] if isinstance(one, ast.AnnAssign) else one.targets if isinstance(one, ast.Assign) else []
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found.update({target.id: after.value.value for target in targets if isinstance(target, ast.Name)})
    return found
