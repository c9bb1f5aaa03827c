"""`drivelab doctor`: the host's settings against what a scenario wants."""

from __future__ import annotations

import argparse
import json
import os
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.errors import UserError
from drivelab.host.entry import SCENARIOS

if TYPE_CHECKING:
    from drivelab.host.temporary import Temporary

_WIDTH = 100
_SHEET = "config/drives.tsv"


def add_parser(commands: Any) -> None:
    """Register `doctor`."""
    one = commands.add_parser(
        "doctor",
        help="compare the host's settings with what a study wants",
        description="Tells how the host and its drives are set, what a scenario wants, and how to set it. Changes "
        "nothing without --apply.",
    )
    one.add_argument("devices", nargs="*", metavar="DEVICE", help="drives to look at, such as nvme0n1 (default: all)")
    one.add_argument("--scenario", choices=SCENARIOS, default="synthetic", help="default: synthetic, as of studies")
    one.add_argument("--json", action="store_true", help="print a list of objects")
    action = one.add_mutually_exclusive_group()
    action.add_argument(
        "--apply",
        action="store_true",
        help="set what can be set until the next study has ended; of drives those that are named, or in the sheet",
    )
    action.add_argument("--restore", action="store_true", help="put back what was set")
    one.set_defaults(handler=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from drivelab.host.settings import snapshot
    from drivelab.host.temporary import Temporary

    temporary = Temporary("host")
    if options.restore:
        return _restore(temporary, options.json)
    named = [_kernel_name(device) for device in options.devices]
    with _set_by_hand(temporary) if options.apply else nullcontext():
        said = _apply(options.scenario, named or _pinned(), temporary) if options.apply else []
        rows = snapshot(named or _attached(), options.scenario)
        if options.json:
            print(json.dumps(rows, indent=1, ensure_ascii=False))
            return 0
        for line in [*said, *report(rows, options.scenario)]:
            print(line)
    if options.apply:
        return 0
    reach = {"host", *(named or _pinned())}
    if settable := sum(bool(row["deviation"] and row["settable"]) for row in rows if row["scope"] in reach):
        print(f"\ndrivelab doctor --apply sets {settable} of them for the time of the next study.")
    if changed := temporary.remembered():
        text = (
            f"{len(changed)} values are set for a study at the moment. They go back when the last study ends, or with "
            "drivelab doctor --restore."
        )
        print("\n".join(["", *_wrapped(text, "")]))
    return 0


@contextmanager
def _set_by_hand(temporary: Temporary) -> Iterator[None]:
    """Keep what is set within beyond this process, unless that fails or is interrupted before the user was told.

    What an earlier command has set is kept then too: it is not this command's to put back. Raises UserError without
    root.
    """
    from drivelab.termination import deferred

    if os.geteuid() != 0:
        raise UserError(
            "doctor --apply: host settings can be changed by root only, so nothing was set; run it with sudo, or set "
            "what drivelab doctor tells of by hand"
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
    """Words of what was set."""
    from drivelab.host.settings import apply

    lines = [part for text in apply(scenario, drives, temporary) for part in _wrapped(text, "  ")]
    return [
        "What deviated:" if lines else "Nothing deviates that could be set.",
        *lines,
        "It is put back when the next study on this host has ended, or by drivelab doctor --restore.",
        "",
    ]


def _restore(temporary: Any, as_json: bool) -> int:
    words = temporary.restore()
    if as_json:
        print(json.dumps(words, indent=1, ensure_ascii=False))
    else:
        print("\n".join(words) or "Nothing was set: there is nothing to put back.")
    return 0


def report(rows: Sequence[dict[str, Any]], scenario: str) -> list[str]:
    """Lines of at most 100 columns: deviations first with why and how, then what nobody can tell, then the rest."""
    from drivelab.host.settings import NOT_AVAILABLE

    missing = [row for row in rows if row["state"] == NOT_AVAILABLE]
    there = [row for row in rows if row["state"] != NOT_AVAILABLE]
    deviating = [row for row in there if row["deviation"] is True]
    unknown = [row for row in there if row["deviation"] is None]
    fine = [row for row in there if row["deviation"] is False]
    lines = [
        f"Scenario {scenario}: {len(deviating)} deviate, {len(unknown)} unknown, {len(fine)} as wanted, "
        f"{len(missing)} {NOT_AVAILABLE}."
    ]
    for title, group in (("Deviates", deviating), ("Unknown", unknown)):
        if group:
            lines += ["", title]
        for row in group:
            lines += _detailed(row)
    if fine:
        lines += ["", "As wanted"]
        lines += [line for row in fine for line in _wrapped(f"{_title(row)}: {row['state']}", "  ")]
    if missing:
        names = ", ".join(_title(row) for row in missing)
        lines += ["", NOT_AVAILABLE.capitalize(), *_wrapped(names, "  ")]
    return lines


def _detailed(row: dict[str, Any]) -> list[str]:
    by = " (--apply does it)" if row["settable"] else ""
    return [
        *_wrapped(f"{_title(row)}: {row['state']}; wanted: {row['wanted']}", "  "),
        *_wrapped(f"why: {row['effect']}", "    "),
        *_wrapped(f"set: {row['how']}{by}", "    "),
    ]


def _title(row: dict[str, Any]) -> str:
    return row["name"] if row["scope"] == "host" else f"{row['name']} of {row['scope']}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


def _kernel_name(device: str) -> str:
    from drivelab.drives import sysfs

    try:
        return sysfs.kernel_name(device if "/" in device else f"/dev/{device}")
    except OSError:
        raise UserError(f"doctor: there is no block device {device}; run lsblk to see what is attached") from None


def _attached() -> list[str]:
    """Drives with hardware behind them, or a hypervisor's: not loop, RAM, device-mapper or md devices."""
    return sorted(path.name for path in Path("/sys/block").glob("*") if (path / "device").exists())


def _pinned() -> list[str]:
    """Drives of the sheet that are attached."""
    from drivelab.config.drives_sheet import load_sheet
    from drivelab.config.schema import ROOT

    rows = load_sheet(ROOT / _SHEET).values() if (ROOT / _SHEET).exists() else []
    return [_kernel_name(row.device) for row in rows if row.virtual is None and Path(row.device).exists()]
