"""Write a first draft of a study from the drive sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from drivelab.analysis.deltas.power import ASSUMED_SCATTER, MOST_RECORDINGS, recordings_for
from drivelab.campaign.budget import exceeded
from drivelab.campaign.outlook import outlook
from drivelab.campaign.planning import Campaign
from drivelab.campaign.protocol_page import START
from drivelab.core.errors import UserError, suggestion
from drivelab.core.files import write_atomic
from drivelab.criteria.repeats import FEWEST
from drivelab.plan.drive_sheet import SheetRow, load_sheet
from drivelab.plan.file_system import LEAST_BYTES
from drivelab.plan.fitting import UnfitError
from drivelab.plan.grammar import load, protocol_names, protocol_path
from drivelab.plan.places import COMMAND
from drivelab.plan.study_parts import IN_RESULTS
from drivelab.plan.yaml_file import load_yaml

SHEET = Path("config/drives.tsv")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_NAMED = 4
"""Number of drives and protocols to suggest."""
_DRAFT = """\
# docs/configuration.md explains each key. To see what this study will do: {command} plan {path}
name: {name}
title: Study {name}
drives: [{drives}]
{platforms}# The {subject} that the others are compared with.
basis: {basis}
measurements:
{measurements}
# Recordings of each measurement, with purge and preconditioning. Fewer than 3 give no verdict.
runs: {runs}
# Random within each run, so that no {subject} is always the last; 'fixed' is the order above.
order: {{random: 1}}
# Measurements at a time on each host; concurrent measurements disturb each other.
concurrency: 1
# drivelab runs nothing beyond the budget. 'endurance: 5%' also works, if the drive sheet has the endurance.
{budget}
# Combinations to leave out, to add, or to repeat more often.
# exclude: [{{drives: [{drive}], measurements: [{first}]}}]
# include: [{{drives: [{drive}], measurements: [{first}], runs: 5}}]
"""
_PLATFORMS = """\
# drivelab makes each file system on each drive, after the purge, and measures a file on it. With options, and the size
# of the file: {{type: xfs, mkfs: [-m, reflink=0], mount: [noatime], file: 40%}}
platforms:
{entries}
"""


@dataclass(frozen=True)
class Wish:
    """How many recordings a study shall have, and on which file systems."""

    runs: int = FEWEST
    budget: str = "# budget: {time: 3d, written: 20TB}"
    """Line of the study: the limits, or a comment with an example."""
    file_systems: tuple[str, ...] = ()
    """Types of file systems to compare; empty to measure the drives themselves."""

    @classmethod
    def of(cls, detect: float | None, time: str | None, written: str | None, file_systems: Sequence[str] = ()) -> Wish:
        """Return the wish to show a difference (0.05 for 5 %) within limits such as `3d` and `20TB`.

        Raises UserError for a difference that would need more recordings than can be planned.
        """
        if unknown := [name for name in file_systems if name not in LEAST_BYTES]:
            raise UserError(
                f"--filesystems: drivelab does not make the file system '{unknown[0]}'; choose among "
                f"{', '.join(LEAST_BYTES)}"
            )
        kinds = tuple(dict.fromkeys(file_systems))
        limits = ", ".join(f"{key}: {limit}" for key, limit in (("time", time), ("written", written)) if limit)
        budget = f"budget: {{{limits}}}" if limits else cls.budget
        if detect is None:
            return cls(budget=budget, file_systems=kinds)
        runs = recordings_for(ASSUMED_SCATTER, math.log1p(detect), 0.05)
        if runs is None:
            raise UserError(
                f"--detect {100 * detect:g}%: needs more than {MOST_RECORDINGS} recordings of each drive, if they "
                f"scatter by {100 * ASSUMED_SCATTER:g} %; name a larger difference"
            )
        return cls(runs, budget, kinds)


_USUAL = Wish()


def write_study(name: str, drives: Sequence[str] | None, protocols: Sequence[str], wish: Wish = _USUAL) -> Path:
    """Write config/NAME.yaml and return its path.

    Without `drives`, use all drives that may be written to. Within a budget the study has as many recordings as fit,
    up to those of the wish. Raises UserError for invalid, unknown or taken names, an existing file, an invalid study,
    or a budget that does not permit FEWEST recordings.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is not a valid study name; use lower-case letters, digits and hyphens")
    path = Path("config") / f"{name}.yaml"
    if path.exists():
        raise UserError(f"{path}: already exists; choose another name, or delete it first")
    if name in IN_RESULTS:
        raise UserError(f"'{name}' is a reserved name of a study's results; choose another name")
    _refuse_taken(name)
    sheet = load_sheet(SHEET)
    chosen, wanted = _drives(sheet, drives), list(dict.fromkeys(protocols))
    try:
        text = _within_budget(path, chosen, wanted, wish)
    except UnfitError as error:
        able = [row.drive for row in sheet.values() if row.destructive and _is_valid(path, [row.drive], wanted, wish)]
        known = sorted(protocol_names(), key=lambda stem: (stem not in START, stem))
        fitting = [protocol for protocol in known if _is_valid(path, chosen, [protocol], wish)]
        advice = [f"drives that can (--drives {' '.join(able[:_NAMED])})"] if able else []
        advice += [f"protocols that fit (--protocols {' '.join(fitting[:_NAMED])})"] if fitting else []
        raise UserError(
            f"{path} (not written): {error.fault}; name {', or '.join(advice) or 'other drives and protocols'}"
        ) from None
    write_atomic(path, text)
    return path


def _within_budget(path: Path, drives: Sequence[str], protocols: Sequence[str], wish: Wish) -> str:
    """Return the study with the most recordings that the budget permits, up to the wish."""
    beyond: list[str] = []
    for runs in range(wish.runs, FEWEST - 1, -1):
        text, campaign = _checked(path, drives, protocols, replace(wish, runs=runs))
        beyond = exceeded(campaign, outlook(campaign))
        if not beyond:
            return text
    raise UserError(
        f"{path} (not written): {FEWEST} recordings of each drive and measurement may exceed the budget: "
        f"{'; '.join(beyond)}; raise it, or name fewer drives or protocols"
    )


def _refuse_taken(name: str) -> None:
    """Raise UserError if another study has this name, or its results folder."""
    for path in sorted(Path("config").glob("*.yaml")):
        try:
            body = load_yaml(path)
        except UserError:  # reported when that study runs
            continue
        if "measurements" not in body:
            continue  # applications, or models of drives
        results = f"results/{name}"
        if body.get("name") == name or body.get("results", f"results/{body.get('name')}") == results:
            reason = "is a study of that name" if body.get("name") == name else f"has its results in {results}"
            raise UserError(f"{path}: already {reason}; choose another name than '{name}'")


def _checked(path: Path, drives: Sequence[str], protocols: Sequence[str], wish: Wish) -> tuple[str, Campaign]:
    """Return the text of a study and the study; raises UserError if it is invalid."""
    kinds = wish.file_systems
    entries = "\n".join(f"  {kind}: {{host: any, file_system: {{type: {kind}}}}}" for kind in kinds)
    tests = [f"  - {{protocol: {name}}}  # {load(protocol_path(name)).body['title']}" for name in protocols]
    text = _DRAFT.format(command=COMMAND,
        path=path, name=path.stem, drives=", ".join(drives), first=protocols[0], runs=wish.runs, budget=wish.budget,
        basis=f"{drives[0]}@{kinds[0]}" if kinds else drives[0], drive=drives[0],
        platforms=_PLATFORMS.format(entries=entries) if kinds else "",
        subject="file system" if kinds else "drive", measurements="\n".join(tests),
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        trial = Path(folder) / path.name
        trial.write_text(text, encoding="utf-8")
        try:
            return text, Campaign.load(trial, everywhere=True)
        except UnfitError:
            raise
        except UserError as error:
            raise UserError(str(error).replace(str(trial), f"{path} (not written)")) from None


def _is_valid(path: Path, drives: Sequence[str], protocols: Sequence[str], wish: Wish) -> bool:
    try:
        _checked(path, drives, protocols, wish)
    except UserError:
        return False
    return True


def _drives(sheet: dict[str, SheetRow], wanted: Iterable[str] | None) -> list[str]:
    chosen = list(dict.fromkeys(wanted or (row.drive for row in sheet.values() if row.destructive)))
    if not chosen:
        raise UserError(f"{SHEET}: has no drive with destructive: yes; 'drivelab drives --tsv' prints rows to fill in")
    for drive in chosen:
        if drive not in sheet:
            raise UserError(f"{SHEET}: has no drive '{drive}'; {suggestion(drive, sheet)}")
    return chosen
