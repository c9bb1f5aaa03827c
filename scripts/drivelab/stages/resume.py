"""Whether an interrupted measurement may go on: nobody else must have used the drive meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.analysis.exclusions import VERSIONS
from drivelab.drives.seal import counters_lost
from drivelab.drives.sysfs import SECTOR_BYTES, Wear
from drivelab.units import format_amount

BLIND_S = 5.0
"""Longest time between the last sample and the last write of a process that was killed: samples come every second."""
_IN_FLIGHT_BYTES = 2**20
"""Writes that were under way when the measurement ended in order, and are counted when they complete."""


def lost_state(
    recording: str, last_user: str | None, journal: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]],
    live: Wear, *, virtual_clock: bool = False,
) -> str | None:  # fmt: skip
    """Why the drive is no longer in the state that an interrupted measurement left, in words; None if it may go on.

    `lines` are those of the recording's telemetry. No other measurement must have used the drive, and it must have
    stayed attached and the host running, or have a write counter of its own. How much the interrupted cell wrote is
    not known to the byte, but at the most BLIND_S at the highest rate that was seen after the last sample: what is
    beyond that, others wrote. On the virtual clock nobody else can write.
    """
    if last_user != recording:
        return f"the drive was used for {last_user or 'something unknown'} since"
    begun = next((line.get("wear") for line in reversed(journal) if line["event"] == "measure"), None)
    if begun is None:
        return "nobody noted the drive's counters when the measurement began"
    before = Wear(**begun)
    lost = counters_lost(before, live)
    written_bytes = _written_bytes(before, live, lost is not None)
    if written_bytes is None:
        return f"{lost} since, and the drive has no counter of its own"
    if written_bytes < 0:
        return "the drive's write counter went back"
    if virtual_clock:
        return None
    foreign = foreign_bytes(lines, before.sectors_written, before.sectors_written + written_bytes // SECTOR_BYTES)
    return f"others wrote about {format_amount(foreign)} since" if foreign else None


def other_versions(part: Path, now: Mapping[str, Any]) -> str | None:
    """What the unfinished recording in `part` began with and is another one now, in words; None where all is the same.

    `now` has what host.json and identity.json have; cells of several versions are never one recording.
    """
    begun: dict[str, Any] = {}
    for name in ("host.json", "identity.json"):
        if (part / name).exists():
            begun |= json.loads((part / name).read_text(encoding="utf-8"))
    changed = (
        f"{words} was {begun[name]} and is {now[name]}"
        for name, words in VERSIONS.items()
        if name in begun and name in now and begun[name] != now[name]
    )
    return next(changed, None)


def _written_bytes(sealed: Wear, live: Wear, lost: bool) -> int | None:
    """Since the seal, by the kernel's counter or, where that began anew, by the drive's own; None without one."""
    if not lost:
        return SECTOR_BYTES * (live.sectors_written - sealed.sectors_written)
    if sealed.lifetime_bytes_written is None or live.lifetime_bytes_written is None:
        return None
    return live.lifetime_bytes_written - sealed.lifetime_bytes_written


def foreign_bytes(lines: Iterable[Mapping[str, Any]], first_sectors: int, sectors: int) -> int:
    """Bytes written since the last sample that the measurement itself cannot have written.

    `first_sectors` is the counter of sectors written when the measurement last began, `sectors` the counter now. The
    rate is the highest since the very first beginning; where nothing is known of it, nothing is the measurement's own.
    """
    runs: list[list[tuple[float, int]]] = [[]]
    ended = False
    for line in lines:
        if line.get("event") == "begin":
            runs.append([])
        if "sectors_written" in line:
            runs[-1].append((line["at_s"], int(line["sectors_written"])))
        ended = line.get("event") == "end"
    since = SECTOR_BYTES * (sectors - (runs[-1][-1][1] if runs[-1] else first_sectors))
    fastest = max((rate for run in runs for rate in _rates(run)), default=0.0)
    own = _IN_FLIGHT_BYTES + (0 if ended else int(BLIND_S * fastest * SECTOR_BYTES))
    return since if since > own else 0


def _rates(samples: Sequence[tuple[float, int]]) -> Iterator[float]:
    """Sectors a second over stretches of at least half a second: samples at the edges of cells lie close together."""
    for place, (start_s, start) in enumerate(samples):
        later = ((at_s, value) for at_s, value in samples[place + 1 :] if at_s - start_s >= 0.5)
        if (end := next(later, None)) is not None:
            yield (end[1] - start) / (end[0] - start_s)
