"""Read the outcome of an application run from the evidence in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drivelab.fio.document import CellFailed

RUN_FILE = "application.json"
"""Written by `drivelab.application.timed` beside the command's stdout and stderr."""
_MESSAGE_CHARACTERS = 300


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    duration_s: float
    """Time from the start of the command until all its writes were on the drive."""
    command_s: float | None
    """Time of the command alone. This and all below but I/Os and bytes are None if a replay replaced the run."""
    sync_s: float | None
    """Time of the file system's sync after the command; short for an application that syncs itself."""
    exit_status: int | None
    user_s: float | None
    system_s: float | None
    max_rss_bytes: int | None
    """Memory of the largest process; also None if the kernel cannot distinguish it from drivelab's own."""
    read_ios: int
    write_ios: int
    read_bytes: int
    """From the kernel's counters of the drive, including the final sync."""
    write_bytes: int

    def to_mapping(self) -> dict[str, Any]:
        """Return the known values, JSON-able."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def of_command(folder: Path) -> Outcome:
    """Return the outcome of a run in real time.

    Raises CellFailed with the command's last message when the run failed.
    """
    try:
        body = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CellFailed(f"{folder / RUN_FILE} cannot be read ({error})") from None
    if status := body["exit_status"]:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise CellFailed(f"application '{body['application']}' {how}: {_last_message(folder)}")
    if body["sync_fault"] is not None:
        raise CellFailed(f"the data of application '{body['application']}' is not on the drive: {body['sync_fault']}")
    if body["write_ios"] < 0 or body["read_ios"] < 0 or not any(body["stat_after"].values()):
        raise CellFailed(f"the drive disappeared while application '{body['application']}' ran")
    return Outcome(**{name: body[name] for name in Outcome.__dataclass_fields__})


def of_stand_in(report: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a replay that replaced the application.

    `report` is that of drivelab.replay.report.

    Raises CellFailed for an unfinished replay.
    """
    if report["state"] != "finished" or report["partial"]:
        raise CellFailed("; ".join(report["marks"]))
    completed = {name: report["completed"].get(name, {}) for name in ("read", "write")}
    return Outcome(
        duration_s=float(report["duration_s"]),
        command_s=None,
        sync_s=None,
        exit_status=None,
        user_s=None,
        system_s=None,
        max_rss_bytes=None,
        **{f"{name}_ios": int(count.get("requests", 0)) for name, count in completed.items()},
        **{f"{name}_bytes": int(count.get("bytes", 0)) for name, count in completed.items()},
    )


def _last_message(folder: Path) -> str:
    for name in ("stderr", "stdout"):
        try:
            lines = (folder / name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            continue
        if lines:
            return lines[-1][:_MESSAGE_CHARACTERS]
    return "it printed no message"
