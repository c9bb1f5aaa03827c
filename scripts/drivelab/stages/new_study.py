"""A first draft of a study, from the drive sheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from drivelab.config.drives_sheet import SheetRow, load_sheet
from drivelab.config.study_parts import IN_RESULTS
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.protocol.grammar import load
from drivelab.stages.fitting import UnfitError
from drivelab.stages.planning import PROTOCOLS, Campaign

SHEET = Path("config/drives.tsv")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_NAMED = 4
"""Drives and protocols that are suggested."""
_FIRST = ("pts-throughput", "pts-write-saturation")
"""Protocols that are suggested before others: almost any drive can do them."""
_DRAFT = """\
# What each key means: docs/configuration.md. What it will do: ./drivelab plan {path}
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

    Raises UserError for names that are none, not known or taken, a file that is there, or a study that would not hold.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is no name of a study; use lower-case letters, digits and hyphens")
    path = Path("config") / f"{name}.yaml"
    if path.exists():
        raise UserError(f"{path}: is there already; choose another name, or delete it first")
    if name in IN_RESULTS:
        raise UserError(f"'{name}' is what studies call a part of their own results; choose another name")
    _refuse_taken(name)
    sheet = load_sheet(SHEET)
    chosen, wanted = _drives(sheet, drives), list(dict.fromkeys(protocols))
    try:
        text = _held(path, name, chosen, wanted)
    except UnfitError as error:
        able = [row.drive for row in sheet.values() if row.destructive and _holds(path, name, [row.drive], wanted)]
        known = sorted((one.stem for one in PROTOCOLS.glob("*.yaml")), key=lambda one: (one not in _FIRST, one))
        fitting = [one for one in known if _holds(path, name, chosen, [one])]
        advice = [
            f"{what} ({option} {' '.join(names[:_NAMED])})"
            for what, option, names in (("drives that can", "--drives", able), ("what fits", "--protocols", fitting))
            if names
        ]
        raise UserError(
            f"{path} (not written): {error.fault}; name {', or '.join(advice) or 'other drives and protocols'}"
        ) from None
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return path


def _refuse_taken(name: str) -> None:
    """Raise UserError if another study has that name, or the results folder that comes with it."""
    for path in sorted(Path("config").glob("*.yaml")):
        try:
            body = load_yaml(path)
        except UserError:  # not this command's affair
            continue
        if "measurements" not in body:
            continue  # applications, or models of drives
        results = f"results/{name}"
        if body.get("name") == name or body.get("results", f"results/{body.get('name')}") == results:
            what = "is a study of that name" if body.get("name") == name else f"has its results in {results}"
            raise UserError(f"{path}: {what} already; choose another name than '{name}'")


def _held(path: Path, name: str, drives: Sequence[str], protocols: Sequence[str]) -> str:
    """Text of a study, which was tried; raises UserError if it would not hold."""
    text = _DRAFT.format(
        path=path, name=name, drives=", ".join(drives), basis=drives[0], first=protocols[0],
        measurements="\n".join(f"  - {{protocol: {one}}}  # {_title(one)}" for one in protocols),
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        trial = Path(folder) / path.name
        trial.write_text(text, encoding="utf-8")
        try:
            Campaign.load(trial, everywhere=True)
        except UnfitError:
            raise
        except UserError as error:
            raise UserError(str(error).replace(str(trial), f"{path} (not written)")) from None
    return text


def _holds(path: Path, name: str, drives: Sequence[str], protocols: Sequence[str]) -> bool:
    try:
        _held(path, name, drives, protocols)
    except UserError:
        return False
    return True


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
