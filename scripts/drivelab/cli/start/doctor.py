"""`drivelab doctor`: compare the host's settings with those that a scenario requires."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError
from drivelab.core.terminal import broken, print_json
from drivelab.host.entry import SCENARIOS

if TYPE_CHECKING:
    from drivelab.host.temporary import Temporary

_WIDTH = 100
_SHEET = "config/drives.tsv"


def add_parser(commands: Any) -> None:
    """Register `doctor`."""
    parser = commands.add_parser(
        "doctor",
        help="compare the host's settings with those that a study requires",
        description="Shows the settings of the host and its drives, what a scenario requires, and how to set it. "
        "Changes nothing without --apply.",
    )
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help="drives to check, such as nvme0n1 (default: all)")
    parser.add_argument("--scenario", choices=SCENARIOS, default="synthetic", help="default: synthetic, as for studies")
    parser.flag("--json", "print the settings as JSON")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--apply",
        action="store_true",
        help="change deviating settings until the next study ends; affects the host and the named drives, or those "
        "in the sheet",
    )
    action.add_argument("--restore", action="store_true", help="restore the changed settings")
    parser.set_defaults(handler=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from drivelab.drives.identity import attached, attached_name
    from drivelab.host.settings import snapshot
    from drivelab.host.temporary import Temporary

    temporary = Temporary("host")
    if options.restore:
        messages = temporary.restore()
        if options.json:
            print_json(messages)
        else:
            print("\n".join(messages) or "No settings were changed, so there is nothing to restore.")
        return 0
    named = [attached_name(device) for device in options.devices]
    messages = temporary.recover() if options.apply else []
    with _kept_settings(temporary) if options.apply else nullcontext():
        messages += _apply(options.scenario, named or _pinned(), temporary) if options.apply else []
        rows = snapshot(named or attached(), options.scenario)
        if options.json:
            print_json(rows)
            return 0
        for line in [*messages, *report(rows, options.scenario)]:
            print(line)
    if options.apply:
        return 0
    reach = {"host", *(named or _pinned())}
    settable = [row for row in rows if row["deviation"] and row["settable"]]
    if within := sum(row["scope"] in reach for row in settable):
        print(f"\ndrivelab doctor --apply changes {within} of them until the next study ends.")
    if others := dict.fromkeys(row["scope"] for row in settable if row["scope"] not in reach):
        print(f"For drives that are not in the drive sheet, name them: drivelab doctor --apply {' '.join(others)}")
    if changed := temporary.remembered():
        text = (
            f"{len(changed)} settings are changed for a study now. drivelab restores them when the last study ends. To "
            "restore them earlier, run drivelab doctor --restore."
        )
        print("\n".join(["", *broken(text, _WIDTH)]))
    return 0


@contextmanager
def _kept_settings(temporary: Temporary) -> Iterator[None]:
    """Keep the settings changed within after this process ends; restore them if the block fails or is interrupted.

    Settings that an earlier command changed are kept in both cases. Raises UserError without root.
    """
    from drivelab.core.termination import deferred

    if os.geteuid() != 0:
        raise UserError(
            "doctor --apply: only root can change host settings, so nothing was changed; run it with sudo, or change "
            "the settings that drivelab doctor lists by hand"
        )
    is_new = temporary.claim_by_hand()
    try:
        yield
    except BaseException:
        if is_new:
            with deferred():
                temporary.end_by_hand()
        raise


def _apply(scenario: str, drives: Sequence[str], temporary: Temporary) -> list[str]:
    """Change the deviating settings and return lines that say so."""
    from drivelab.host.settings import apply

    lines = [part for text in apply(scenario, drives, temporary) for part in broken(f"  {text}", _WIDTH)]
    return [
        "Changed settings:" if lines else "No setting that drivelab can change deviates.",
        *lines,
        "drivelab restores them when the next study on this host ends, or with drivelab doctor --restore.",
        "",
    ]


def report(rows: Sequence[dict[str, Any]], scenario: str) -> list[str]:
    """Return lines of at most 100 columns: deviations with why and how first, then unknown settings, then the rest."""
    from drivelab.host.settings import NOT_AVAILABLE

    missing = [row for row in rows if row["state"] == NOT_AVAILABLE]
    available = [row for row in rows if row["state"] != NOT_AVAILABLE]
    deviating, unknown, fine = (
        [row for row in available if row["deviation"] is deviation] for deviation in (True, None, False)
    )
    lines = [
        f"Scenario {scenario}: {len(deviating)} deviate, {len(unknown)} unknown, {len(fine)} as required, "
        f"{len(missing)} {NOT_AVAILABLE}."
    ]
    for title, group in (("Deviates", deviating), ("Unknown", unknown)):
        lines += ["", title] if group else []
        for row in group:
            by = " (--apply does this)" if row["settable"] else ""
            lines += [f"  {_title(row)}: {row['state']}; required: {row['wanted']}", f"    why: {row['effect']}",
                      f"    set: {row['how']}{by}"]  # fmt: skip
    if fine:
        lines += ["", "As required", *(f"  {_title(row)}: {row['state']}" for row in fine)]
    if missing:
        lines += ["", NOT_AVAILABLE.capitalize(), f"  {', '.join(map(_title, missing))}"]
    return [part for line in lines for part in (broken(line, _WIDTH) or [""])]


def _title(row: dict[str, Any]) -> str:
    return str(row["name"]) if row["scope"] == "host" else f"{row['name']} of {row['scope']}"


def _pinned() -> list[str]:
    """Return the attached drives of the sheet, and the disks below its other subjects."""
    from drivelab.drives.composition import settings_of
    from drivelab.drives.identity import attached_name
    from drivelab.plan.drive_sheet import load_sheet
    from drivelab.plan.places import ROOT
    from drivelab.plan.subject_kinds import KINDS

    rows = load_sheet(ROOT / _SHEET).values() if (ROOT / _SHEET).exists() else []
    names = [
        attached_name(row.device)
        for row in rows
        if row.virtual is None and KINDS[row.kind].destroyed and Path(row.device).is_block_device()
    ]
    return list(dict.fromkeys(drive for name in names for drive in settings_of(name)))
