"""Compose the pages of docs/reference."""

from __future__ import annotations

import argparse
import ast
import inspect
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from types import ModuleType
from typing import Any

from drivelab.cli.introspection import arguments_of, help_of, metavar_of, subcommands
from drivelab.cli.main import parser
from drivelab.reference import json_schemas
from drivelab.reference.markdown import bullet, code, comments, docstrings, link
from drivelab.tables import columns, replay_schemas, result_schemas, schemas


def sections(parser: argparse.ArgumentParser) -> str:
    """Return the help's epilog, the arguments of several commands, then a section for each command."""
    commands = [(name, command, about, *arguments_of(command)) for name, command, about in subcommands(parser)]
    counts = Counter(_argument(argument) for *_, arguments, _is_group in commands for argument in arguments)
    shared = {argument: bullet(*argument) for argument, count in counts.items() if count >= _SHARED}
    parts = [parser.epilog] if parser.epilog else []
    if shared:
        parts += ["## shared", "\n".join(shared.values())]
    for name, command, about, arguments, is_group in commands:
        if not is_group:
            parts.append(f"## {name}\n\n{_section(command, about, arguments, shared)}")
    return "\n\n".join(parts)


def _section(
    parser: argparse.ArgumentParser, about: str, arguments: list[argparse.Action], shared: Container[_Argument]
) -> str:
    description = (parser.description or "").strip()
    is_list = "\n" in description
    parts = [description if description and not is_list else f"{about[:1].upper()}{about[1:]}."]
    if is_list:
        parts.append(f"```text\n{parser.usage}\n{description.partition(chr(10))[2]}\n```")
    own = [(argument, _argument(argument)) for argument in arguments]
    lines = [bullet(*text, ["required"] if _is_required(action) else []) for action, text in own if text not in shared]
    if also := [text[0][-1] for _, text in own if text in shared]:
        lines.append(f"* {link('shared')}: {', '.join(also)}")
    if lines:
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


_Argument = tuple[tuple[str, ...], str]
_SHARED = 3
"""An argument that so many commands have in common is explained once."""
_JSON = "print the result as JSON; times in seconds, volumes in bytes"


def _argument(action: argparse.Action) -> _Argument:
    """Return the names of an argument, the last with its placeholder, and its meaning."""
    if action.option_strings == ["--json"]:
        return (code("--json"),), _JSON
    value = metavar_of(action)
    *short, last = action.option_strings or [""]
    many = f"{value} ..." if action.nargs in ("+", "*", argparse.REMAINDER) else value
    return (*map(code, short), code(f"{last} {many}".strip())), help_of(action)


def _is_required(action: argparse.Action) -> bool:
    return bool(action.option_strings) and action.required


UNITS = {
    "_mib_s": "MiB/s", "_mb_s": "MB/s", "_per_s": "1/s", "_us": "µs", "_ms": "ms", "_ns": "ns", "_s": "s",
    "_bytes": "B", "_pct": "%", "_c": "°C", "_w": "W", "_j": "J", "_mhz": "MHz", "_min": "min", "iops": "1/s",
}  # fmt: skip
"""Unit by the end of a column's name."""
_MODULES = (schemas, result_schemas, replay_schemas)
_COMMON = {
    "KEY_LINES": "recording",
    "PLACE_LINES": "place",
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


def _table_section(heading: str, about: str, rows: Iterable[tuple[list[str], str]]) -> str:
    """Return a section. Successive columns with the same meaning, or none, share a line."""
    lines = [
        bullet([name for names, _ in group for name in names], meaning)
        for meaning, group in groupby(rows, key=lambda row: row[1])
    ]
    return f"## {heading}\n\n" + (f"{about}\n\n" if about else "") + "\n".join(lines)


def _assigned(module: ModuleType) -> dict[str, ast.expr]:
    body = ast.parse(inspect.getsource(module)).body
    return {
        target.id: node.value
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _rows(module: ModuleType, node: ast.expr) -> Iterator[tuple[list[str], str]]:
    """Yield columns and meaning of a schema's lines or a tuple of lines. Common lines give a link to their section."""
    parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
    notes = comments(module)
    for part in parts:
        text, _alone = notes.get(part.end_lineno or 0, ("", True))
        if isinstance(part, ast.Starred):
            if isinstance(part.value, ast.Name) and part.value.id in _COMMON:
                yield [link(_COMMON[part.value.id])], text
                continue
            lines = tuple(_evaluated(module, part.value))
        else:
            lines = (_evaluated(module, part),)
        for line in lines:
            yield [_column(name) for name in line.partition(":")[2].split()], text


def _evaluated(module: ModuleType, node: ast.expr) -> Any:
    """Return the value of an expression in the module's source."""
    return eval(compile(ast.Expression(node), module.__name__, "eval"), vars(module))


def _column(name: str) -> str:
    return code(name.rstrip("?")) + ("?" if name.endswith("?") else "")


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
    return "# Commands\n\n`drivelab` without arguments lists the commands, `--help` explains one.\n\n" + sections(
        parser()
    )


def _study() -> str:
    return (
        "# A study\n\nKeys of a study file; the default file is `config/study.yaml`. How to use them: "
        "[configuration.md](../configuration.md). A value without a type is text.\n\n" + json_schemas.sections("study")
    )


def _protocol() -> str:
    return (
        "# A protocol\n\nKeys of `config/protocols/NAME.yaml`. How to write one: [protocols.md](../protocols.md). A "
        "value without a type is text.\n\n" + json_schemas.sections("protocol")
    )


def _tables() -> str:
    units = ", ".join(f"{code(end)} {unit}" for end, unit in UNITS.items())
    return (
        "# Tables\n\nColumns of the Parquet tables of a study. What they mean: [results.md](../results.md). "
        "`./drivelab query TABLE` lists the types. A column with a question mark may be null; times are UTC. The end "
        f"of a name is its unit: {units}.\n\n" + table_sections()
    )
