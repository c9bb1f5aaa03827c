"""Hash the code that an analysis uses, with imports, which Snakemake does not see.

Each start of Snakemake needs all digests, and parsing takes a second. So the result of parsing a file is kept by the
file's content, beside the compiled sources.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from drivelab import native
from drivelab.plan.places import SHIPPED
from drivelab.recording.writer import read_object, write_json

_LIBRARY = Path(__file__).resolve().parents[1]
_ALL_OF_PACKAGE = "*"
_MOST_KEPT = 5000
"""Files; each edit adds one."""
_Parsed = tuple[str, list[tuple[str, list[str]]]]
"""Digest of a syntax tree, and its imports: a module below `drivelab`, and names from it that may be modules."""


def code_digest(*sources: str) -> str:
    """Return a digest of `sources` and all modules of this library that they import.

    A source is a script of the workflow, such as `summary.py`, or a module, such as `analysis.steady_state`.
    A package that looks for its modules (`__path__`) uses all of them.
    The syntax tree is hashed, so comments, formatting and docstrings do not count.
    Raises ValueError for an unknown source.
    """
    digests: dict[str, str] = {}
    known = len(_kept())
    waiting = [SHIPPED / "scripts" / source if source.endswith(".py") else _path(source) for source in sources]
    if None in waiting:
        raise ValueError(f"no module for one of {', '.join(sources)}")
    while waiting:
        path = waiting.pop()
        if path is not None and str(path) not in digests:
            digests[str(path)], imported = _read(path)
            waiting.extend(_path(name) for name in imported)
    if len(_kept()) > known:
        with suppress(OSError):  # this user may not write there
            write_json(_place(), dict(list(_kept().items())[-_MOST_KEPT:]))
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
    content = path.read_bytes()
    digest, imports = _parsed(content)
    names: list[str] = []
    for base, members in imports:
        if base == _ALL_OF_PACKAGE:
            package = ".".join(path.parent.relative_to(_LIBRARY).parts)
            names += [f"{package}.{module.stem}" for module in sorted(path.parent.glob("*.py")) if module != path]
        else:
            imported = [f"{base}.{name}".lstrip(".") for name in members]
            # The top package holds the version. Only an import of a name, not of a module, depends on it.
            names += imported if not base and all(map(_path, imported)) else [base, *imported]
    return digest, tuple(names)


def _parsed(content: bytes) -> _Parsed:
    key = hashlib.sha256(content).hexdigest()
    if key not in _kept():
        _kept()[key] = _parse(content)
    return _kept()[key]


def _parse(content: bytes) -> _Parsed:
    tree = ast.parse(content)
    imports = [found for node in ast.walk(tree) for found in _imports(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports


def _imports(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "drivelab":
        yield node.module.partition(".")[2], [alias.name for alias in node.names]
    elif isinstance(node, ast.Import):
        yield from ((a.name.partition(".")[2], []) for a in node.names if a.name.startswith("drivelab."))
    elif isinstance(node, ast.Name) and node.id == "__path__":
        yield _ALL_OF_PACKAGE, []


@cache
def _kept() -> dict[str, _Parsed]:
    return read_object(_place())


@cache
def _place() -> Path:
    """Return the file of what this code has parsed; another Python may have another syntax tree."""
    own = hashlib.sha256(sys.version.encode() + Path(__file__).read_bytes())
    return native.place_of(f"code-{own.hexdigest()[:16]}.json")
