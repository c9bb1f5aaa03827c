"""Foreign trace formats: each module of this package defines one as FORMAT.

A format's name is its module's name with dashes. A new format is one new file here, see
docs/how-to/trace-format.md. Shared code is in the package `common`.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from drivelab.core.errors import UserError, suggestion
from drivelab.trace.formats.common.trace_format import Format


@cache
def all_formats() -> dict[str, Format]:
    """Return the formats by name, sorted by name."""
    modules = [module for module in pkgutil.iter_modules(__path__) if not module.ispkg]
    formats = [import_module(f"{__name__}.{module.name}").FORMAT for module in modules]
    return {layout.name: layout for layout in sorted(formats, key=lambda layout: layout.name)}


def importable() -> list[str]:
    """Return the names of the formats that can be imported."""
    return [layout.name for layout in all_formats().values() if layout.read]


def exportable() -> list[str]:
    """Return the names of the formats that can be exported."""
    return [layout.name for layout in all_formats().values() if layout.write]


def format_for(name: str | None, head: bytes, path: Path) -> Format:
    """Return the format of that name, or the format that a file's first bytes match.

    `head` are the first bytes. Raises UserError for an unknown name, and when no format or several match.
    """
    if name is not None:
        if name not in importable():
            raise UserError(f"import format '{name}' is unknown; {suggestion(name, importable())}")
        return all_formats()[name]
    candidates = [layout for layout in all_formats().values() if layout.read and layout.looks_like(head)]
    if len(candidates) == 1:
        return candidates[0]
    remedy = "name the right format with --format"
    if candidates:
        raise UserError(f"{path}: could be {' or '.join(layout.name for layout in candidates)}; {remedy}")
    raise UserError(f"{path}: matches none of the formats {', '.join(importable())}; if it is one of them, {remedy}")
