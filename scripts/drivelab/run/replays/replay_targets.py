"""Open the target of a replay outside of a study: a drive of the sheet, a loop device or a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.drives import guard, target
from drivelab.drives.target import Target
from drivelab.plan.drive_sheet import SheetRow, load_sheet
from drivelab.plan.subject_kinds import KINDS
from drivelab.plan.yaml_file import load_yaml
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among


def is_path(name: str) -> bool:
    """Return whether a target is named by a path, not by the drive sheet; an empty name is in neither."""
    return "/" in name or (name != "" and Path(name).exists())


@contextmanager
def opened_target(name: str, sheet: Path, destroy: bool) -> Iterator[Target]:
    """Open the target, approved and locked."""
    if is_path(name):
        with target.named(Path(name), destroy=destroy) as opened:
            yield opened
        return
    row = row_of(name, sheet)
    if not KINDS[row.kind].destroyed:
        raise UserError(f"target '{name}': a replay needs a drive, not the kind '{row.kind}'. Nothing was written.")
    with device_of(row) as device:
        if row.virtual is None and not destroy:
            raise UserError(
                f"drive '{name}' ({row.serial}): a replay may destroy its data; confirm with --yes. "
                "Nothing was written."
            )
        with guard.held(row, device) as (held, _):
            yield target.of_drive(held, name)


def row_of(name: str, sheet: Path) -> SheetRow:
    """Return a row of the drive sheet; raise UserError if it has none of that name."""
    rows = load_sheet(sheet)
    if name not in rows:
        raise UserError(
            f"target '{name}' is neither a path nor a drive of {sheet}, which has: {', '.join(rows) or 'none'}; "
            "enter the drive there, or give the path of a loop device or a file"
        )
    return rows[name]


@contextmanager
def device_of(row: SheetRow) -> Iterator[str]:
    """Return the path of a row's device; start a stopped virtual drive for the time of the replay."""
    if row.virtual is None:
        yield row.device
        return
    model = model_among(load_yaml(VIRTUAL_DRIVES), row.virtual, row.source)
    with manage.borrowed(row.virtual, model) as drive:
        yield drive.device


def free(opened: Target) -> None:
    """Stop a virtual drive that no longer answers, to free an engine that waits in the kernel."""
    if opened.approved is not None and opened.approved.virtual is not None:
        manage.stop(opened.approved.virtual, force=True)
