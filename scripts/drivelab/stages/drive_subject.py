"""The drive's part of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.config.drives_sheet import OVER_PROVISIONING, SheetRow
from drivelab.config.restored import restored_folder
from drivelab.config.study import MeasurementChoice, Study
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.protocol.plan_fields import needs_over_provisioning
from drivelab.stages.platforms import is_recorded
from drivelab.virtual.model import DriveModel


def drive_subject(row: SheetRow, model: DriveModel | None, steps: Mapping[str, Any]) -> dict[str, Any]:
    """Return the serial, and where they apply: pinned firmware, virtual drive's model, over-provisioning (a fraction).

    Raises UserError when the sheet and the model disagree, or when the plan's fill needs the over-provisioning and it
    is unknown.
    """
    subject: dict[str, Any] = {"serial": row.serial}
    if model is not None:
        if model.serial != row.serial:
            raise UserError(
                f"{row.source}: drive '{row.drive}' has serial {row.serial}, "
                f"virtual drive '{row.virtual}' says {model.serial}; make them agree"
            )
        if row.firmware not in (None, model.firmware):
            raise UserError(
                f"{row.source}: drive '{row.drive}' is pinned to firmware {row.firmware}, "
                f"virtual drive '{row.virtual}' has {model.firmware}; make them agree"
            )
        subject["virtual"] = model.to_mapping()
    if row.firmware is not None:
        subject["firmware"] = row.firmware
    if needs_over_provisioning(steps):
        known = row.over_provisioning if model is None else model.over_provisioning
        if known is None:
            raise UserError(
                f"{row.source}: the plan fills drive '{row.drive}' in multiples of its raw capacity, which only the "
                f"vendor knows; enter it in the column {OVER_PROVISIONING}"
            )
        subject["over_provisioning"] = known
    return subject


def refuse_kept(row: SheetRow, plan: Plan) -> None:
    """Raise UserError if an unfinished plan needs a drive that may not be written to."""
    if not row.destructive and not is_recorded(plan):
        raise UserError(
            f"{row.source}: drive '{row.drive}' has destructive: no, but the study measures it; "
            "enter yes or remove the drive from the study"
        )


def refuse_kept_early(study: Study, sheet: Mapping[str, SheetRow], plans: Iterable[Plan]) -> None:
    """Apply `refuse_kept` to all plans, unless the study was restored.

    You can inspect a restored study before you change its sheet; `drivelab.stages.approval` refuses to measure it.
    """
    if restored_folder(study.path) is None:
        for plan in plans:
            refuse_kept(sheet[plan.sheet_drive], plan)


def simultaneous(rows: Sequence[SheetRow], choice: MeasurementChoice, clock: tuple[str, str | None]) -> list[str]:
    """Return the sorted serials of drives that are measured at the same time.

    `clock` is the clock of the virtual drives, as in `Campaign`. Raises UserError when only some drives are simulated,
    because simulated time and real time do not coincide.
    """
    simulated = [row.drive for row in rows if row.virtual is not None]
    if clock[0] == "virtual" and 0 < len(simulated) < len(rows):
        raise UserError(
            f"{choice.source}: protocol '{choice.protocol}' measures all drives at the same time, but "
            f"{', '.join(simulated)} would run in simulated time ({clock[1]}); remove the virtual or the real drives"
        )
    return sorted(row.serial for row in rows)
