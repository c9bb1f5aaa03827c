"""Check that the I/O engines of a study can run on this host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drivelab.errors import UserError
from drivelab.fio.run import fio_version
from drivelab.plan.cell import COMPOSITE
from drivelab.plan.plan import Plan
from drivelab.trace import application


def check_engines(plans: Iterable[Plan]) -> None:
    """Raise UserError when a plan in real time needs an engine that is missing, too old or forbidden."""
    in_real_time = [plan for plan in plans if plan.clock == "wall"]
    if in_real_time:
        fio_version()
    for plan in in_real_time:
        if "application" in plan.subject:
            application.refuse_unready(application.of_plan(plan))
    needy = next((plan for plan in in_real_time if any(_needs_native(step) for step in plan.subject["measure"])), None)
    if needy is not None:
        from drivelab.replay import native  # imports pyarrow, which is slow; only replays need it

        if (reason := native.possible()) is not None:
            raise UserError(f"{needy.measurement} needs drivelab's native replay engine, but {reason}")


def _needs_native(step: dict[str, Any]) -> bool:
    ((kind, fields),) = step.items()
    if kind == "replay":
        return bool(fields["engine"] == "native" or fields["prefill"] != "none")
    return bool(kind == "loop" and fields.get("streams", {}).get("kind") == COMPOSITE)
