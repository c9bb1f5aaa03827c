"""Hash the code that an analysis uses, with imports, which Snakemake does not see."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

from drivelab.plan.places import SHIPPED

_LIBRARY = Path(__file__).resolve().parents[1]


def code_digest(*sources: str) -> str:
    """Return a digest of `sources` and all modules of this library that they import.

    A source is a script of the workflow, such as `summary.py`, or a module, such as `analysis.steady_state`.
    A package that looks for its modules (`__path__`) uses all of them.
    The syntax tree is hashed, so comments, formatting and docstrings do not count.
    Raises ValueError for an unknown source.
    """
    digests: dict[str, str] = {}
    waiting = [SHIPPED / "scripts" / source if source.endswith(".py") else _path(source) for source in sources]
    if None in waiting:
        raise ValueError(f"no module for one of {', '.join(sources)}")
    while waiting:
        path = waiting.pop()
        if path is not None and str(path) not in digests:
            digests[str(path)], imported = _read(path)
            waiting.extend(_path(name) for name in imported)
    text = "\n".join(digests[key] for key in sorted(digests))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def files_digest(*paths: str) -> str:
    """Return a digest of the names and contents of the library's files.

    A path, relative to the library, may be a pattern for Path.glob.
    """
    digest = hashlib.sha256()
    for path in sorted(path for pattern in paths for path in _LIBRARY.glob(pattern)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _path(module: str) -> Path | None:
    base = _LIBRARY.joinpath(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()), None)


@cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "drivelab":
            base = node.module.partition(".")[2]
            imported = [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
            # The top package holds the version. Only an import of a name, not of a module, depends on it.
            names += imported if not base and all(map(_path, imported)) else [base, *imported]
        elif isinstance(node, ast.Import):
            names += [a.name.partition(".")[2] for a in node.names if a.name.startswith("drivelab.")]
        elif isinstance(node, ast.Name) and node.id == "__path__":
            package = ".".join(path.parent.relative_to(_LIBRARY).parts)
            names += [f"{package}.{module.stem}" for module in sorted(path.parent.glob("*.py")) if module != path]
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(names)
