"""Foreign trace formats: every module of this package is one, and defines FORMAT; its name is the module's with dashes.

A new format is one new file here, see docs/trace_formats.md. What they share is in the package `common`.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from drivelab.errors import UserError
from drivelab.trace.formats.common.model import Format


@cache
def all_formats() -> dict[str, Format]:
    """The formats by name, in the order of their names."""
    modules = [module for module in pkgutil.iter_modules(__path__) if not module.ispkg]
    formats = [import_module(f"{__name__}.{module.name}").FORMAT for module in modules]
    return {one.name: one for one in sorted(formats, key=lambda one: one.name)}


def importable() -> list[str]:
    """Names of the formats that can be read."""
    return [one.name for one in all_formats().values() if one.read]


def exportable() -> list[str]:
    """Names of the formats that can be written."""
    return [one.name for one in all_formats().values() if one.write]


def format_for(name: str | None, head: bytes, path: Path) -> Format:
    """The format of that name, or the one that a file's first bytes `head` look like.

    Raises UserError for an unknown name, and when no format or several could be meant.
    """
    if name is not None:
        if name not in importable():
            raise UserError(f"format '{name}' is unknown; those that can be imported are {', '.join(importable())}")
        return all_formats()[name]
    candidates = [one for one in all_formats().values() if one.read and one.looks_like(head)]
    if len(candidates) == 1:
        return candidates[0]
    remedy = "name the right one with --format"
    if candidates:
        raise UserError(f"{path}: could be {' or '.join(one.name for one in candidates)}; {remedy}")
    raise UserError(f"{path}: looks like none of the formats {', '.join(importable())}; if it is one, {remedy}")
