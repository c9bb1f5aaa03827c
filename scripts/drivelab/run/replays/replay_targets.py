"""Open the targets of a replay outside of a study: drives of the sheet, loop devices and files."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from drivelab.core.errors import UserError, suggestion
from drivelab.drives import guard, target
from drivelab.drives.target import Target
from drivelab.plan.drive_sheet import SheetRow, load_sheet
from drivelab.plan.subject_kinds import KINDS
from drivelab.plan.yaml_file import load_yaml
from drivelab.replay.engine_records import MOST_TARGETS
from drivelab.replay.volumes import ONLY
from drivelab.trace.parquet_schema import open_trace
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among


def targets_of(trace: Path, mapped: Sequence[str]) -> dict[str, str]:
    """Return the target of each volume from texts NAME=TARGET; both may contain '='.

    Raises UserError for another text, and for a repeated volume.
    """
    with open_trace(trace, several=True) as file:
        by_length = sorted(file.volumes, key=len, reverse=True)
    targets: dict[str, str] = {}
    for text in mapped:
        name = next((name for name in by_length if text.startswith(f"{name}=")), text.partition("=")[0])
        target = text[len(name) + 1 :]
        if not (name and target):
            raise UserError(f"--volume {text}: is not NAME=TARGET; give the volume's name, '=' and its target")
        if name in targets:
            raise UserError(f"--volume {text}: volume '{name}' already has the target {targets[name]}; remove one")
        targets[name] = target
    return targets


def refuse_volumes(trace: Path, targets: Mapping[str, str], skipped: Sequence[str]) -> None:
    """Raise UserError unless each volume of the trace has a target or is skipped, and each named volume exists."""
    with open_trace(trace, several=True) as file:
        volumes = list(file.volumes)
    named = ONLY not in targets
    if not volumes and (named or skipped):
        raise UserError(
            f"{trace}: has one volume, without a name; give its target with --target, without --volume or --skip-volume"
        )
    if volumes and not named:
        raise UserError(
            f"{trace}: has {len(volumes)} volumes ({', '.join(volumes)}), and one target is for one volume; give a "
            "target for each with --volume NAME=TARGET"
        )
    for name in [*targets, *skipped] if volumes else ():
        if name not in volumes:
            raise UserError(f"{trace}: has no volume '{name}'; {suggestion(name, volumes)}")
    if both := targets.keys() & set(skipped):
        raise UserError(f"volume '{min(both)}' has a target and is to be skipped; remove --volume or --skip-volume")
    if missing := [name for name in volumes if name not in targets and name not in skipped]:
        raise UserError(
            f"{trace}: volume '{missing[0]}' has no target; give it one with --volume {missing[0]}=TARGET, or leave it "
            f"out with --skip-volume {missing[0]}"
        )
    if len(targets) > MOST_TARGETS:
        raise UserError(f"{len(targets)} volumes are too many for one replay; map at most {MOST_TARGETS}")


@contextmanager
def opened_targets(targets: Mapping[str, str], sheet: Path, destroy: bool) -> Iterator[dict[str, Target]]:
    """Open the target of each volume, approved and locked; all before anything is written.

    Raises UserError as `opened_target` does, and if two volumes have the same target, or targets on one disk: the first
    locks the disk.
    """
    places: dict[object, str] = {}
    disks: dict[str, str] = {}
    for volume, name in targets.items():
        if (other := places.setdefault(_place(name, sheet), volume)) != volume:
            raise UserError(
                f"volumes '{other}' and '{volume}' have the same target, {name}: it would serve the requests of two "
                "devices. Give each volume another target. Nothing was written."
            )
        for disk in () if is_path(name) else _disks(row_of(name, sheet)):
            if (other := disks.setdefault(disk, volume)) != volume:
                raise UserError(
                    f"the targets of volumes '{other}' and '{volume}' are both on the disk {disk}, which only one can "
                    "use at a time. Give each volume a target on another disk. Nothing was written."
                )
    with ExitStack() as stack:
        yield {volume: stack.enter_context(opened_target(name, sheet, destroy)) for volume, name in targets.items()}


def _disks(row: SheetRow) -> tuple[str, ...]:
    """Return the serial numbers of the disks that carry a row's device."""
    return row.members or tuple(filter(None, [row.serial]))


def _place(name: str, sheet: Path) -> object:
    """Return a value that two names of one device share; the guard finds what shares more than its node."""
    if not is_path(name):
        row = row_of(name, sheet)
        if row.virtual is not None:
            return row.virtual
        name = row.device
    with suppress(OSError):
        about = Path(name).stat()
        return about.st_rdev if stat.S_ISBLK(about.st_mode) else (about.st_dev, about.st_ino)
    return name


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
