"""The pages of docs/reference, by the names of their files."""

from __future__ import annotations

from dataclasses import MISSING, fields

from drivelab.cli.main import parser
from drivelab.config import drives_sheet
from drivelab.reference import commands, json_schemas, table_schemas
from drivelab.reference.markdown import code, table
from drivelab.reference.source import docstrings
from drivelab.trace import application
from drivelab.virtual import effects, model

_MADE = "<!-- made by python -m drivelab.reference; a test compares -->\n\n"


def pages() -> dict[str, str]:
    """Text by file name."""
    made = {
        "commands.md": _commands(),
        "study.md": _study(),
        "protocol.md": _protocol(),
        "drive_sheet.md": _drive_sheet(),
        "virtual_drives.md": _virtual_drives(),
        "applications.md": _applications(),
        "tables.md": _tables(),
    }
    return {name: _MADE + text.rstrip() + "\n" for name, text in made.items()}


def _commands() -> str:
    return "# Commands\n\n`drivelab` without a word lists them.\n\n" + commands.sections(parser())


def _study() -> str:
    return (
        "# A study\n\nKeys of a study's file, `config/study.yaml` if no other is named. How to use them: "
        "[configuration.md](../configuration.md).\n\n" + json_schemas.sections("study")
    )


def _protocol() -> str:
    return (
        "# A protocol\n\nKeys of `config/protocols/NAME.yaml`. How to write one: [protocols.md](../protocols.md).\n\n"
        + json_schemas.sections("protocol")
    )


def _drive_sheet() -> str:
    about = docstrings(drives_sheet)
    row = docstrings(drives_sheet, "SheetRow")
    rows = [(code(name), "required", row.get(name, "")) for name in drives_sheet.COLUMNS]
    constants = {value: name for name, value in vars(drives_sheet).items() if isinstance(value, str)}
    for name in drives_sheet.OPTIONAL:
        meaning = about.get(constants[name], "").removeprefix("A column that may be left out: ")
        rows.append((code(name), "", meaning[:1].upper() + meaning[1:]))
    return (
        "# The drive sheet\n\nColumns of `config/drives.tsv`, separated by tabs, in this order. How drives are pinned: "
        "[drives.md](../drives.md).\n\n" + table(("column", "", "meaning"), rows)
    )


def _virtual_drives() -> str:
    about = docstrings(model, "DriveModel")
    rows = []
    for one in fields(model.DriveModel):
        key = model.KEYS[one.name]
        default = (
            "required" if one.default is MISSING else "" if one.default is None else _default(key.write(one.default))
        )
        rows.append((code(key.key), default, about.get(one.name, "")))
    parts = ["# Virtual drives\n\nKeys of an entry of `config/virtual_drives.yaml`. What they model: "
             "[virtual_drives.md](../virtual_drives.md).", table(("key", "default", "meaning"), rows)]  # fmt: skip
    for name, effect in (
        ("throttle", effects.Throttle),
        ("housekeeping", effects.Housekeeping),
        ("disturb", effects.Disturbance),
    ):
        about = docstrings(effects, "Recurring") | docstrings(effects, effect.__name__)
        inner = [(code(one.name), about.get(one.name, "")) for one in fields(effect)]
        parts.append(f"## {name}\n\n{effect.__doc__}\n\n" + table(("key", "meaning"), inner))
    return "\n\n".join(parts)


def _default(value: object) -> str:
    return code({True: "yes", False: "no"}[value] if isinstance(value, bool) else value)


def _applications() -> str:
    about = docstrings(application, "Application")
    rows = []
    for one in fields(application.Application):
        if one.name != "name":
            needed = one.default is MISSING and one.default_factory is MISSING
            default = "required" if needed else code(one.default) if isinstance(one.default, str) else "none"
            rows.append((code(one.name.removesuffix("_bytes")), default, about.get(one.name, "")))
    systems = ", ".join(map(code, application.FILE_SYSTEMS))
    return (
        "# Applications\n\nKeys of an entry of `config/applications.yaml`. How to use them: "
        "[applications.md](../applications.md).\n\n" + table(("key", "default", "meaning"), rows) + "\n\n"
        f"File systems: {systems}. Commands are lists of words, no shell reads them."
    )


def _tables() -> str:
    return (
        "# Tables\n\nColumns of the Parquet tables of a study, with their units. What they mean: "
        "[results.md](../results.md). A column with a question mark may be null. `time` is UTC to the ms, `floats` "
        "and `strs` are lists.\n\n" + table_schemas.sections()
    )
