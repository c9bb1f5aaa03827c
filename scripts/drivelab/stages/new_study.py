"""A first draft of a study, from the drive sheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from drivelab.config.drives_sheet import SheetRow, load_sheet
from drivelab.errors import UserError
from drivelab.protocol.grammar import load
from drivelab.stages.planning import PROTOCOLS, Campaign

SHEET = Path("config/drives.tsv")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_DRAFT = """\
# What each key means: docs/configuration.md. What it will do: drivelab plan {path}
name: {name}
title: Study {name}
drives: [{drives}]
# What the others are compared with.
basis: {basis}
measurements:
{measurements}
# How often each measurement is made, with purge and preconditioning: an odd number; 3 tell how well it repeats.
runs: 1
# In which order: fixed, as above, or in random order, so that no drive is always the last: {{random: 1}}
order: fixed
# Measurements at a time on each host; two at once disturb each other.
concurrency: 1
# Beyond it nothing is run; also 'endurance: 5%', where the drive sheet tells the endurance.
# budget: {{time: 3d, written: 20TB}}
# Combinations to leave out, and to make besides or more often.
# exclude: [{{drives: [{basis}], measurements: [{first}]}}]
# include: [{{drives: [{basis}], measurements: [{first}], runs: 3}}]
"""


def write_study(name: str, drives: Sequence[str] | None, protocols: Sequence[str]) -> Path:
    """Write config/NAME.yaml and return its path; of all drives that may be written to if none are named.

    Raises UserError for names that are none or not known, a file that is there, or a study that would not hold.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is no name of a study; use lower-case letters, digits and hyphens")
    path = Path("config") / f"{name}.yaml"
    if path.exists():
        raise UserError(f"{path}: is there already; choose another name, or delete it first")
    chosen = _drives(load_sheet(SHEET), drives)
    text = _DRAFT.format(
        path=path, name=name, drives=", ".join(chosen), basis=chosen[0], first=protocols[0],
        measurements="\n".join(f"  - {{protocol: {one}}}  # {_title(one)}" for one in dict.fromkeys(protocols)),
    )  # fmt: skip
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    try:
        Campaign.load(part, everywhere=True)
    except UserError as error:
        raise UserError(str(error).replace(str(part), f"{path} (not written)")) from None
    else:
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _drives(sheet: dict[str, SheetRow], wanted: Iterable[str] | None) -> list[str]:
    chosen = list(dict.fromkeys(wanted or (row.drive for row in sheet.values() if row.destructive)))
    if not chosen:
        raise UserError(
            f"{SHEET}: has no drive with destructive: yes; 'drivelab drives --tsv' writes rows to be filled in"
        )
    for drive in chosen:
        if drive not in sheet:
            raise UserError(f"{SHEET}: has no drive '{drive}'; it has: {', '.join(sheet) or 'none'}")
    return chosen


def _title(protocol: str) -> str:
    path = PROTOCOLS / f"{protocol}.yaml"
    if not path.exists():
        known = ", ".join(sorted(one.stem for one in PROTOCOLS.glob("*.yaml")))
        raise UserError(f"there is no protocol '{protocol}'; {PROTOCOLS} has: {known}")
    return str(load(path).body["title"])
