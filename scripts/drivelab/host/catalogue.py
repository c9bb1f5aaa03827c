"""Read the catalogue of host settings from the YAML files of `entries`, in the order of reports.

The entries translate the tables of the Solidigm Performance Evaluation Guide, August 2022, revision 001, sections 3.4.4
(BIOS), 3.4.5 (operating system) and 3.4.6 (power) to Linux, row by row. Each entry names its row. Rows without a
counterpart that could affect a drive are left out: restarted applications, screen, brightness, screen saver, visual
effects, desktop background, JavaScript timers, wireless and graphics power, buttons, wake timers, cooling policy.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from drivelab.config.schema import validate
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.host import drive_readers
from drivelab.host.entry import Setting, Wish, in_words
from drivelab.host.readers import LISTING, READERS, Reader, other_timers
from drivelab.host.rules import DESCRIPTIONS, RULES

ENTRIES = Path(__file__).parent / "entries"
_CONDITIONS = ("is", "is_not", "not_beginning_with")
"""Conditions that can have `set`; the others say themselves what to set."""
_WHOLE = ("content_of", "none", "rule")
_T = TypeVar("_T")


@cache
def catalogue(folder: Path = ENTRIES) -> tuple[Setting, ...]:
    """Return the host settings of all files of a folder, in the order of the file names.

    Raises UserError with file, setting and reason for the first fault.
    """
    bodies = {
        str(path): validate(load_yaml(path), "host_settings", str(path))["settings"]
        for path in sorted(folder.glob("*.yaml"))
    }
    timers = [
        pattern
        for body in bodies.values()
        for entry in body
        if isinstance(entry["read"], dict)
        for pattern in entry["read"].get("timers", ())
    ]
    settings: dict[str, Setting] = {}
    for path, body in bodies.items():
        for entry in body:
            place = f"{path}: setting '{entry['name']}'"
            if entry["name"] in settings:
                raise UserError(f"{place}: another setting has the same name; choose another")
            settings[entry["name"]] = _setting(entry, other_timers(*timers), place)
    return tuple(settings.values())


def _setting(entry: Mapping[str, Any], others: Reader, place: str) -> Setting:
    read = entry["read"]
    plain = {**READERS, **drive_readers.READERS, "other_timers": others}
    if isinstance(read, str):
        reader = _named(read, plain, f"{place}: reader")
    else:
        ((kind, words),) = read.items()
        reader = _named(kind, LISTING, f"{place}: reader")(*words)
    describe = entry.get("describe")
    return Setting(
        name=entry["name"],
        guide=entry.get("guide", ""),
        effect=entry["effect"],
        how=entry["how"],
        read=reader,
        real_world=_wish(entry.get("both", entry.get("real-world")), place),
        synthetic=_wish(entry.get("both", entry.get("synthetic")), place),
        laptop=_wish(entry["laptop"], place) if "laptop" in entry else None,
        per_drive=entry.get("per_drive", False),
        describe=_named(describe, DESCRIPTIONS, f"{place}: description") if describe else in_words,
        empty=entry.get("empty", "none"),
    )


def _wish(node: Any, place: str) -> Wish:
    if isinstance(node, str):
        return Wish(node, lambda part: True)
    conditions = [key for key in (*_CONDITIONS, *_WHOLE) if key in node]
    if len(conditions) > 1 or not (conditions or "set" in node) or ("set" in node and {*conditions} & {*_WHOLE}):
        raise UserError(
            f"{place}: {node} needs one of {', '.join((*_CONDITIONS, *_WHOLE))}, or set; only {', '.join(_CONDITIONS)} "
            "can have set as well"
        )
    target = node.get("set")
    values = node.get("is", [] if target is None else [target])
    words = node.get("words") or ("" if {*conditions} - {"is"} else " or ".join(values))
    if not words:
        raise UserError(f"{place}: {node} needs 'words' that say what is wanted")
    match node:
        case {"rule": name}:
            accepts, chosen = _named(name, RULES, f"{place}: rule")
            return Wish(words, accepts, chosen)
        case {"content_of": name}:
            return Wish(words, lambda part: part.value == part.sibling(name), lambda part: part.sibling(name) or None)
        case {"none": True}:
            return Wish(words, lambda part: False)
        case {"is_not": unwanted}:
            return Wish(words, lambda part: part.value not in unwanted, lambda part: target)
        case {"not_beginning_with": unwanted}:
            return Wish(words, lambda part: not part.value.startswith(tuple(unwanted)), lambda part: target)
        case _:
            return Wish(words, lambda part: part.value in values, lambda part: target)


def _named(name: str, known: Mapping[str, _T], what: str) -> _T:
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean '{close[0]}'?" if close else f"use one of {', '.join(known)}"
        raise UserError(f"{what} '{name}' is unknown; {hint}")
    return known[name]
