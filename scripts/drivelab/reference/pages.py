"""Compose the pages of docs/reference."""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from drivelab.cli.introspection import arguments_of, help_of, options_of, subcommands, usage_of
from drivelab.cli.main import parser
from drivelab.reference import json_schemas
from drivelab.reference.markdown import anchor, code, comments, docstrings, table
from drivelab.tables import columns, replay_schemas, result_schemas, schemas


def sections(parser: argparse.ArgumentParser) -> str:
    """Return the help's epilog, then a section for each listed command."""
    commands = (f"## {name}\n\n{_section(command, about)}" for name, command, about in subcommands(parser))
    return "\n\n".join([*([parser.epilog] if parser.epilog else []), *commands])


def _section(parser: argparse.ArgumentParser, about: str) -> str:
    arguments, is_group = arguments_of(parser)
    parts = [f"{about[:1].upper()}{about[1:]}."]
    if parser.description and parser.description.rstrip(".").lower() != about.lower():
        parts.append(parser.description.strip())
    usage = parser.usage or " ".join([parser.prog, *map(usage_of, arguments)])
    if not is_group:
        parts.append(f"```text\n{usage}\n```")
    if arguments:
        parts.append(table(("argument", "meaning"), [(_name(argument), help_of(argument)) for argument in arguments]))
    return "\n\n".join(parts)


def _name(action: argparse.Action) -> str:
    return ", ".join(map(code, options_of(action)))


UNITS = {
    "_mib_s": "MiB/s", "_mb_s": "MB/s", "_per_s": "1/s", "_us": "µs", "_ms": "ms", "_ns": "ns", "_s": "s",
    "_bytes": "B", "_pct": "%", "_c": "°C", "_w": "W", "_j": "J", "_mhz": "MHz", "_min": "min", "iops": "1/s",
}  # fmt: skip
"""Unit by the end of a column's name; the first match counts."""
_MODULES = (schemas, result_schemas, replay_schemas)
_HEAD = ("columns", "type", "meaning")
_COMMON = {
    "KEY_LINES": "columns of every table of a recording",
    "PLACE_LINES": "place in the plan",
    "WORKLOAD_LINES": "workload",
    "TELEMETRY_LINES": "telemetry",
}


def table_sections() -> str:
    """Return the columns common to many tables, then each table by name."""
    parts = []
    abouts = docstrings(columns)
    for name, heading in _COMMON.items():
        parts.append(_table_section(heading, abouts.get(name, ""), _rows(columns, _assigned(columns)[name])))
    names = {id(schema): name for name, schema in reversed(schemas.SCHEMAS.items())}  # the first name of several
    for module in _MODULES:
        for constant, node in _assigned(module).items():
            table_name = names.get(id(getattr(module, constant)))
            if table_name is not None and isinstance(node, ast.Call):
                first = min((argument.lineno for argument in node.args), default=node.lineno)
                notes = comments(module)
                about = " ".join(notes[line][0] for line in range(node.lineno + 1, first) if line in notes)
                parts.append(_table_section(code(table_name), about, _rows(module, node)))
    return "\n\n".join(parts)


def _table_section(heading: str, about: str, rows: Iterator[tuple[str, str, str]]) -> str:
    return f"## {heading}\n\n" + (f"{about}\n\n" if about else "") + table(_HEAD, rows)


def _assigned(module: ModuleType) -> dict[str, ast.expr]:
    body = ast.parse(inspect.getsource(module)).body
    return {
        target.id: node.value
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _rows(module: ModuleType, node: ast.expr) -> Iterator[tuple[str, str, str]]:
    """Yield rows for a schema's lines or a tuple of lines. Common lines give a link to their section."""
    parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
    notes = comments(module)
    for part in parts:
        text, _alone = notes.get(part.end_lineno or 0, ("", True))
        if isinstance(part, ast.Starred):
            if isinstance(part.value, ast.Name) and part.value.id in _COMMON:
                heading = _COMMON[part.value.id]
                yield f"[{heading}](#{anchor(heading)})", "", text
                continue
            lines = tuple(_evaluated(module, part.value))
        else:
            lines = (_evaluated(module, part),)
        for line in lines:
            kind, names = line.split(":")
            yield ", ".join(map(_column, names.split())), kind, text


def _evaluated(module: ModuleType, node: ast.expr) -> Any:
    """Return the value of an expression in the module's source."""
    return eval(compile(ast.Expression(node), module.__name__, "eval"), vars(module))


def _column(name: str) -> str:
    bare = name.rstrip("?")
    unit = next((unit for end, unit in UNITS.items() if bare.endswith(end)), "")
    return code(bare) + ("?" if name.endswith("?") else "") + (f" {unit}" if unit else "")


HEADER = "<!-- generated by python -m drivelab.reference; a test compares -->\n\n"


def pages() -> dict[str, str]:
    """Return the text of every page by file name."""
    texts = {
        "commands.md": _commands(),
        "study.md": _study(),
        "protocol.md": _protocol(),
        "tables.md": _tables(),
    }
    return {name: HEADER + text.rstrip() + "\n" for name, text in texts.items()}


def _commands() -> str:
    return "# Commands\n\n`drivelab` without arguments lists them.\n\n" + sections(parser())


def _study() -> str:
    return (
        "# A study\n\nKeys of a study file; the default file is `config/study.yaml`. How to use them: "
        "[configuration.md](../configuration.md).\n\n" + json_schemas.sections("study")
    )


def _protocol() -> str:
    return (
        "# A protocol\n\nKeys of `config/protocols/NAME.yaml`. How to write one: [protocols.md](../protocols.md).\n\n"
        + json_schemas.sections("protocol")
    )


def _tables() -> str:
    return (
        "# Tables\n\nColumns of the Parquet tables of a study, with their units. What they mean: "
        "[results.md](../results.md). A column with a question mark may be null. `time` is UTC to the ms, `floats` "
        "and `strs` are lists.\n\n" + table_sections()
    )
