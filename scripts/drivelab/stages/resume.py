"""Decide whether an interrupted measurement may resume: nothing else may have used the drive in the meantime."""

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
"""Longest time between the last sample and the last write of a killed process: samples come every second."""
_IN_FLIGHT_BYTES = 2**20
"""Writes in flight when the measurement ended normally; the drive counts them when they complete."""


def lost_state(
    recording: str, last_user: str | None, journal: Sequence[Mapping[str, Any]], lines: Iterable[Mapping[str, Any]],
    live: Wear, *, virtual_clock: bool = False,
) -> str | None:  # fmt: skip
    """Return why the drive's state is not the one that an interrupted measurement left; None if it may resume.

    `lines` are the recording's telemetry. No other measurement may have used the drive. The drive must have stayed
    attached and the host running, or the drive must have its own write counter. The interrupted cell wrote at most
    BLIND_S at the highest observed rate after the last sample; any more was written by others. On the virtual clock
    nothing else can write.
    """
    if last_user != recording:
        return f"the drive was used for {last_user or 'something unknown'} in the meantime"
    first = next((line.get("wear") for line in reversed(journal) if line["event"] == "measure"), None)
    if first is None:
        return "the drive's counters were not recorded when the measurement began"
    before = Wear(**first)
    lost = counters_lost(before, live)
    written_bytes = _written_bytes(before, live, lost is not None)
    if written_bytes is None:
        return f"{lost} in the meantime, and the drive has no write counter"
    if written_bytes < 0:
        return "the drive's write counter decreased"
    if virtual_clock:
        return None
    foreign = foreign_bytes(lines, before.sectors_written, before.sectors_written + written_bytes // SECTOR_BYTES)
    return f"others wrote about {format_amount(foreign)} in the meantime" if foreign else None


def other_versions(part: Path, now: Mapping[str, Any]) -> str | None:
    """Return the first version that changed since the unfinished recording in `part` began; None if none did.

    `now` has the fields of host.json and identity.json. One recording never mixes cells of several versions.
    """
    first: dict[str, Any] = {}
    for name in ("host.json", "identity.json"):
        if (part / name).exists():
            first |= json.loads((part / name).read_text(encoding="utf-8"))
    changed = (
        f"{title} was {first[name]} and is now {now[name]}"
        for name, title in VERSIONS.items()
        if name in first and name in now and first[name] != now[name]
    )
    return next(changed, None)


def _written_bytes(sealed: Wear, live: Wear, lost: bool) -> int | None:
    """Return the bytes written since the seal: by the kernel's counter, or if that was reset, by the drive's counter.

    None if the drive has no counter.
    """
    if not lost:
        return SECTOR_BYTES * (live.sectors_written - sealed.sectors_written)
    if sealed.lifetime_bytes_written is None or live.lifetime_bytes_written is None:
        return None
    return live.lifetime_bytes_written - sealed.lifetime_bytes_written


def foreign_bytes(lines: Iterable[Mapping[str, Any]], first_sectors: int, sectors: int) -> int:
    """Return the bytes written since the last sample that the measurement cannot have written itself.

    `first_sectors` is the counter of written sectors when the measurement last started or resumed, `sectors` the
    counter now. The rate is the highest since the recording began. Without a rate, no bytes count as the measurement's.
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
    """Yield sectors per second over at least half a second, because samples at cell edges lie close together."""
    for place, (start_s, start) in enumerate(samples):
        later = ((at_s, value) for at_s, value in samples[place + 1 :] if at_s - start_s >= 0.5)
        if (end := next(later, None)) is not None:
            yield (end[1] - start) / (end[0] - start_s)
