"""Run the stages of a plan, and check what lies beside the partition that they write to."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import passing  # noqa: F401 - sets how long the guard waits
from uses import run

from drivelab.cli.main import main
from drivelab.drives import guard
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.plan import Plan
from drivelab.run import consent


def beside(drive: str) -> dict[str, str]:
    """Return the checksums of everything outside of a drive's second partition, by its side."""
    run("blockdev", "--flushbufs", drive)
    begin, size = (int(Path("/sys/class/block", f"{Path(drive).name}p2", name).read_text()) * 512
                   for name in ("start", "size"))  # fmt: skip
    with Path(drive).open("rb") as file:
        before = file.read(begin)
        file.seek(begin + size)
        return {"before": hashlib.md5(before).hexdigest(), "after": hashlib.md5(file.read()).hexdigest()}


def consented(plan: Plan) -> None:
    study: Any = SimpleNamespace(results=Path(plan.context["results"]), path=Path("none"), name="study", consent=())
    study.results.mkdir(parents=True, exist_ok=True)
    row = load_sheet(Path(plan.context["drives_sheet"]))[plan.sheet_drive]
    drive = consent.Drive(plan.drive, row.serial, guard.approve(row, row.device).identity)
    consent.require(study, [drive], yes=True)


def stages(plan: str, between: Callable[[], object] = lambda: None) -> None:
    """Run the commands that the workflow's rules run, with `between` after the first and second; `plan` is a file."""
    for arguments in (
        ["purge", plan, "--seal", "purged.json"],
        ["precondition", plan, "--after", "purged.json", "--seal", "conditioned.json"],
        ["measure", plan, "--after", "conditioned.json"],
    ):
        status = cast(int, main(arguments))
        if status:
            sys.exit(status)
        if arguments[0] != "measure":
            between()
