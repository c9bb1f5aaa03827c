"""What a run of an application came to, from the evidence in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drivelab.fio.document import CellFailed

RUN_FILE = "application.json"
"""What `drivelab.application.timed` leaves beside the command's stdout and stderr."""
_WORDS_TOLD = 300


@dataclass(frozen=True)
class Outcome:
    """A run that came to its end."""

    duration_s: float
    """From the start of the command until all that it wrote was on the drive."""
    command_s: float | None
    """Of the command alone; None where a replay of its trace stands in for it, as for all below but the bytes."""
    sync_s: float | None
    """Of the sync of its file system after it; next to nothing for an application that syncs by itself."""
    exit_status: int | None
    user_s: float | None
    system_s: float | None
    max_rss_bytes: int | None
    """Of its largest process; None too where the kernel cannot tell it from drivelab's own."""
    read_ios: int
    write_ios: int
    read_bytes: int
    """By the kernel's counters of the drive, those of the final sync included."""
    write_bytes: int

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able, without what is not known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def of_command(folder: Path) -> Outcome:
    """Of a run in real time; raises CellFailed, with what the command said last, when it did not end well."""
    try:
        body = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CellFailed(f"{folder / RUN_FILE} cannot be read ({error})") from None
    if status := body["exit_status"]:
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        raise CellFailed(f"application '{body['application']}' {how}: {_last_words(folder)}")
    if body["sync_fault"] is not None:
        raise CellFailed(f"what application '{body['application']}' wrote is not on the drive: {body['sync_fault']}")
    if body["write_ios"] < 0 or body["read_ios"] < 0 or not any(body["stat_after"].values()):
        raise CellFailed(f"the drive went away while application '{body['application']}' ran")
    return Outcome(**{name: body[name] for name in Outcome.__dataclass_fields__})


def of_stand_in(report: Mapping[str, Any]) -> Outcome:
    """Of a replay in the place of the application, by its report (drivelab.replay.report).

    Raises CellFailed for one that did not come to its end.
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
        **{f"{name}_ios": int(one.get("requests", 0)) for name, one in completed.items()},
        **{f"{name}_bytes": int(one.get("bytes", 0)) for name, one in completed.items()},
    )


def _last_words(folder: Path) -> str:
    for name in ("stderr", "stdout"):
        try:
            lines = (folder / name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            continue
        if lines:
            return lines[-1][:_WORDS_TOLD]
    return "it said nothing"
