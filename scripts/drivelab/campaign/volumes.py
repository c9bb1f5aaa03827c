"""Check a measurement whose drives replay the volumes of one trace together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.plan.drive_sheet import SheetRow
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.plan.study import MeasurementChoice


def refuse_volumes(
    choice: MeasurementChoice, measure: Sequence[Mapping[str, Any]], paths: Mapping[str, Path | None]
) -> None:
    """Raise UserError unless a process per drive can replay the volumes as one trace.

    `measure` are the steps of the plan; `paths` has the file of each volume's trace by drive, None for a trace that
    this host captures. Requests cannot wait for those of another process, so each has its own time.
    """
    if not choice.volumes:
        return
    place = f"{choice.source}: key 'volumes'"
    if not any("replay" in step for step in measure):
        raise UserError(f"{place}: protocol '{choice.protocol}' replays no trace; choose one that does")
    for fields in (step["replay"] for step in measure if "replay" in step):
        replay = ReplayChoice.from_mapping(fields["choice"])
        if replay.timing.mode not in ("original", "scaled"):
            raise UserError(
                f"{place}: the replay has the timing '{replay.timing.words()}', which gives the drives no common "
                "time; choose a protocol with the timing original or scaled, such as trace-replay"
            )
        if replay.dependencies != "none":
            raise UserError(
                f"{place}: the replay has dependencies, but no request can wait for one of another drive's process; "
                "remove 'dependencies', or replay once with 'drivelab replay --volume'"
            )
        if fields.get("least_written_bytes") is not None:
            raise UserError(
                f"{place}: protocol '{choice.protocol}' is for a set of traces on one drive; choose trace-replay"
            )
    files = [path for path in paths.values() if path is not None]
    if len(files) < len(paths):
        raise UserError(f"{place}: a trace that this host captures has no volumes; name files")
    from drivelab.trace.derive.one_volume import refuse_strangers  # imports pyarrow, which is slow

    try:
        refuse_strangers(files)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def volumes(
    together: Sequence[str],
    sheet: Mapping[str, SheetRow],
    choice: MeasurementChoice,
    run: int,
    entry: Callable[[str], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the part of a plan that names the volumes: `volumes`, the trace of each by the serial of its drive.

    Empty for a measurement without volumes. `entry` returns a trace's part of a plan. Raises UserError if the study
    plans this run for some of the drives only.
    """
    if not choice.volumes:
        return {}
    if missing := sorted(choice.volumes.keys() - set(together)):
        raise UserError(
            f"{choice.source}: run {run} leaves out drive '{missing[0]}', whose volume would be missing; plan the same "
            "runs for all drives of 'volumes'"
        )
    return {"volumes": {sheet[drive].serial: entry(name) for drive, name in choice.volumes.items()}}
