"""Compose the pages of docs/reference."""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from types import ModuleType
from typing import Any

from drivelab.cli.introspection import arguments_of, help_of, options_of, subcommands, usage_of
from drivelab.cli.main import parser
from drivelab.criteria.soundness import FAULTS
from drivelab.host.catalogue import catalogue
from drivelab.plan import drive_sheet
from drivelab.plan.places import SHIPPED
from drivelab.plan.schema import load_schema
from drivelab.plan.subject_kinds import KINDS
from drivelab.reference import gallery, json_schemas
from drivelab.reference.markdown import anchor, code, comments, docstrings, table
from drivelab.tables import columns, replay_schemas, result_schemas, schemas
from drivelab.trace.capturing import applications
from drivelab.virtual import effects, model


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
        "json.md": _json(),
        "study.md": _study(),
        "protocol.md": _protocol(),
        "drive_sheet.md": _drive_sheet(),
        "ratings.md": _ratings(),
        "virtual_drives.md": _virtual_drives(),
        "applications.md": _applications(),
        "host_settings.md": _host_settings(),
        "exclusions.md": _exclusions(),
        "tables.md": _tables(),
        "figures.md": gallery.text(),
    }
    return {name: HEADER + text.rstrip() + "\n" for name, text in texts.items()}


def _commands() -> str:
    return "# Commands\n\n`drivelab` without arguments lists them.\n\n" + sections(parser())


def _json() -> str:
    """Return the page of the JSON that commands print."""
    rows = []
    for path in sorted((SHIPPED / "workflow/schemas/output").glob("*.schema.yaml")):
        name = path.name.removesuffix(".schema.yaml")
        link = f"[{name}](../../workflow/schemas/output/{path.name})"
        schema = load_schema(f"output/{name}")
        keys = schema.get("properties") or schema.get("items", {}).get("properties") or {}
        rows.append((link, f"{schema['description']} Keys: {', '.join(map(code, keys)) or 'names'}."))
    return (
        "# JSON output\n\nWhat commands print with `--json`, each with its JSON Schema. Numbers are in the unit that "
        "the key's name ends in; null is unknown. A test validates the output of each command.\n\n"
        + table(("schema", "meaning"), rows)
    )


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


def _ratings() -> str:
    return (
        "# Ratings of a model\n\nKeys of `config/ratings/NAME.yaml`. How to use them: "
        "[datasheet.md](../how-to/datasheet.md).\n\n" + json_schemas.sections("ratings")
    )


def _drive_sheet() -> str:
    about = docstrings(drive_sheet)
    row = docstrings(drive_sheet, "SheetRow")
    rows = [(code(name), "required", row.get(name, "")) for name in drive_sheet.COLUMNS]
    constants = {value: name for name, value in vars(drive_sheet).items() if isinstance(value, str)}
    for name in drive_sheet.OPTIONAL:
        meaning = about.get(constants[name], "").removeprefix("Optional column: ")
        rows.append((code(name), "", meaning[:1].upper() + meaning[1:]))
    return (
        "# The drive sheet\n\nColumns of `config/drives.tsv`, separated by tabs, in this order. How drives are pinned: "
        "[drives.md](../drives.md).\n\n" + table(("column", "", "meaning"), rows) + "\n\n## Kinds\n\n"
        + table(("kind", "device", "serial", "members"), [
            (code(kind.name), kind.paths, kind.pinned_by, "required" if kind.has_members else "none")
            for kind in KINDS.values()
        ])
    )  # fmt: skip


def _virtual_drives() -> str:
    about = docstrings(model, "DriveModel")
    rows = []
    for field in fields(model.DriveModel):
        key = model.KEYS[field.name]
        if field.default is MISSING:
            default = "required"
        else:
            default = "" if field.default is None else _default(key.write(field.default))
        rows.append((code(key.key), default, about.get(field.name, "")))
    parts = ["# Virtual drives\n\nKeys of an entry of `config/virtual_drives.yaml`. What they model: "
             "[virtual_drives.md](../virtual_drives.md).", table(("key", "default", "meaning"), rows)]  # fmt: skip
    for name, effect in (
        ("throttle", effects.Throttle),
        ("housekeeping", effects.Housekeeping),
        ("disturb", effects.Disturbance),
    ):
        about = docstrings(effects, "Recurring") | docstrings(effects, effect.__name__)
        inner = [(code(field.name), about.get(field.name, "")) for field in fields(effect)]
        parts.append(f"## {name}\n\n{effect.__doc__}\n\n" + table(("key", "meaning"), inner))
    return "\n\n".join(parts)


def _default(value: object) -> str:
    return code({True: "true", False: "false"}[value] if isinstance(value, bool) else value)


def _applications() -> str:
    about = docstrings(applications, "Application")
    rows = []
    for field in fields(applications.Application):
        if field.name != "name":
            needed = field.default is MISSING and field.default_factory is MISSING
            default = "required" if needed else code(field.default) if isinstance(field.default, str) else "none"
            rows.append((code(field.name.removesuffix("_bytes")), default, about.get(field.name, "")))
    systems = ", ".join(map(code, applications.FILE_SYSTEMS))
    return (
        "# Applications\n\nKeys of an entry of `config/applications.yaml`. How to use them: "
        "[applications.md](../applications.md).\n\n" + table(("key", "default", "meaning"), rows) + "\n\n"
        f"File systems: {systems}. Commands are lists of arguments; no shell interprets them."
    )


def _host_settings() -> str:
    parts = [
        "# Host settings\n\nWhat the scenarios of the Solidigm guide want of a host and its drives. How they are set: "
        "[host_settings.md](../host_settings.md). Settings without a section of the guide, written for Windows, are "
        "Linux's. On a laptop the guide wants the power plan *balanced* and the frequency limits as shipped in both "
        "scenarios."
    ]
    head = ("setting", "real-world", "synthetic", "set by `--apply`", "why", "how", "guide")
    for title, per_drive in (("The host", False), ("Each drive", True)):
        rows = [
            (entry.name, entry.real_world.words, entry.synthetic.words, "yes" if entry.can_be_set else "", entry.effect,
             entry.how, entry.guide)
            for entry in catalogue() if entry.per_drive is per_drive
        ]  # fmt: skip
        parts.append(f"## {title}\n\n" + table(head, rows))
    return "\n\n".join(parts)


def _exclusions() -> str:
    return (
        "# Exclusions\n\nFaults of table `exclusions`. Each excludes the affected cell, slice, replay or run, and what "
        "is said here. What follows for results: [exploring.md](../exploring.md#what-is-left-out).\n\n"
        + table(("fault", "when, and what else is excluded"), FAULTS.items())
    )


def _tables() -> str:
    return (
        "# Tables\n\nColumns of the Parquet tables of a study, with their units. What they mean: "
        "[results.md](../results.md). A column with a question mark may be null. `time` is UTC to the ms, `floats` "
        "and `strs` are lists.\n\n" + table_sections()
    )
