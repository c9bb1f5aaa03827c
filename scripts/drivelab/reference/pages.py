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
from drivelab.report.numbers import capital
from drivelab.tables import columns, replay_schemas, result_schemas, schemas


def sections(parser: argparse.ArgumentParser) -> str:
    """Return the help's epilog, the arguments of several commands, then a section for each command."""
    commands = [(name, command, about, *arguments_of(command)) for name, command, about in subcommands(parser)]
    counts = Counter(_argument(argument) for *_, arguments, _is_group in commands for argument in arguments)
    shared = {argument: bullet(*argument) for argument, count in counts.items() if count >= _SHARED}
    parts = [parser.epilog or "", "## shared", "\n".join(shared.values())]
    for name, command, about, arguments, is_group in commands:
        parts += [] if is_group else [f"## {name}", _section(command, about, arguments, shared)]
    return "\n\n".join(parts)


def _section(
    parser: argparse.ArgumentParser, about: str, arguments: list[argparse.Action], shared: Container[_Argument]
) -> str:
    description = (parser.description or "").strip()
    is_list = "\n" in description
    parts = [description if description and not is_list else f"{capital(about)}."]
    if is_list:
        parts.append(f"```text\n{parser.usage}\n{description.partition(chr(10))[2]}\n```")
    own = [(_argument(action), "required" * (bool(action.option_strings) and action.required)) for action in arguments]
    lines = [bullet(*text, [required]) for text, required in own if text not in shared]
    if also := [text[0][-1] for text, _ in own if text in shared]:
        lines.append(bullet([link("shared")], ", ".join(also)))
    return "\n\n".join([*parts, "\n".join(lines)]).strip()


_Argument = tuple[tuple[str, ...], str]
_SHARED = 3
"""An argument that so many commands have in common is explained once."""


def _argument(action: argparse.Action) -> _Argument:
    """Return the names of an argument, the last with its placeholder, and its meaning."""
    if action.option_strings == ["--json"]:
        return (code("--json"),), "print the result as JSON; times in seconds, volumes in bytes"
    value = metavar_of(action)
    *short, last = action.option_strings or [""]
    many = f"{value} ..." if action.nargs in ("+", "*", argparse.REMAINDER) else value
    return (*map(code, short), code(f"{last} {many}".strip())), help_of(action)


_MODULES = (schemas, result_schemas, replay_schemas)
_COMMON = {
    "KEY_LINES": "recording", "PLACE_LINES": "place", "WORKLOAD_LINES": "workload", "TELEMETRY_LINES": "telemetry"
}  # fmt: skip


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
                about = " ".join(notes[line] for line in range(node.lineno + 1, first) if line in notes)
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
        text = notes.get(part.end_lineno or 0, "")
        if isinstance(part, ast.Starred):
            if isinstance(part.value, ast.Name) and part.value.id in _COMMON:
                yield [link(_COMMON[part.value.id])], text
                continue
            lines = tuple(_evaluated(module, part.value))
        else:
            lines = (_evaluated(module, part),)
        for line in lines:
            names = line.partition(":")[2].split()
            yield [code(name.rstrip("?")) + "?" * name.endswith("?") for name in names], text


def _evaluated(module: ModuleType, node: ast.expr) -> Any:
    """Return the value of an expression in the module's source."""
    return eval(compile(ast.Expression(node), module.__name__, "eval"), vars(module))


HEADER = "<!-- generated by python -m drivelab.reference; a test compares -->\n\n"
_COMMANDS = "# Commands\n\n`drivelab` without arguments lists the commands, `--help` explains one."
_STUDY = """# A study

Keys of a study file; the default file is `config/study.yaml`. How to use them: \
[configuration.md](../configuration.md). A value without a type is text."""
_PROTOCOL = """# A protocol

Keys of `config/protocols/NAME.yaml`. How to write one: [protocols.md](../protocols.md). A value without a type is \
text."""
_TABLES = """# Tables

Columns of the Parquet tables of a study. What they mean: [results.md](../results.md). `./drivelab query TABLE` lists \
the types. A column with a question mark may be null; times are UTC. The end of a name is its unit: `_us` µs, `_ns` \
ns, `_mib_s` MiB/s, `_mb_s` MB/s, `_per_s` 1/s, `_pct` %, `_c` °C, `_w` W, `_j` J, `_min` minutes; `iops` are 1/s."""


def pages() -> dict[str, str]:
    """Return the text of every page by file name."""
    texts = {
        "commands.md": (_COMMANDS, sections(parser())),
        "study.md": (_STUDY, json_schemas.sections("study")),
        "protocol.md": (_PROTOCOL, json_schemas.sections("protocol")),
        "tables.md": (_TABLES, table_sections()),
    }
    return {name: f"{HEADER}{head}\n\n{body.rstrip()}\n" for name, (head, body) in texts.items()}
