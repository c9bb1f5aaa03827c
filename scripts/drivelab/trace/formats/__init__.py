"""Foreign trace formats: those of plain columns are entries of columns.yaml, each module defines others as FORMATS.

A new format is one entry or one new file, see docs/how-to/trace-format.md. Shared code is in the package `common`.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from drivelab.core.errors import UserError, suggestion
from drivelab.plan.yaml_file import load_yaml
from drivelab.trace.formats.common.column_reader import Columns
from drivelab.trace.formats.common.trace_format import Format

PLAIN_COLUMNS = Path(__file__).with_name("columns.yaml")


@cache
def all_formats() -> dict[str, Format]:
    """Return the formats by name, sorted by name."""
    modules = [module for module in pkgutil.iter_modules(__path__) if not module.ispkg]
    formats = [form for module in modules for form in import_module(f"{__name__}.{module.name}").FORMATS]
    formats += [Columns(name=name, **entry).format for name, entry in load_yaml(PLAIN_COLUMNS).items()]
    return {form.name: form for form in sorted(formats, key=lambda form: form.name)}


def format_for(name: str | None, head: bytes, path: Path) -> Format:
    """Return the format of that name, or the format that a file's first bytes match.

    `head` are the first bytes. Raises UserError for an unknown name, and when no format or several match.
    """
    formats = all_formats()
    if name is not None:
        if name not in formats:
            raise UserError(f"import format '{name}' is unknown; {suggestion(name, list(formats))}")
        return formats[name]
    candidates = [form for form in formats.values() if form.looks_like(head)]
    if len(candidates) == 1:
        return candidates[0]
    remedy = "name the right format with --format"
    if candidates:
        raise UserError(f"{path}: could be {' or '.join(form.name for form in candidates)}; {remedy}")
    raise UserError(f"{path}: matches none of the formats {', '.join(formats)}; if it is one of them, {remedy}")
