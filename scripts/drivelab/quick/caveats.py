"""What the numbers of a quick look show besides the drive: three warnings, each begins with what was seen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from drivelab.analysis.values.quick_look import LATENCY, Value
from drivelab.core.units import format_amount, format_percentage
from drivelab.host.stack.device_class import HARD_DISK, MEMORY, NVME_SSD, RAM_DISK, SAS_SSD, SATA_SSD
from drivelab.plan.places import COMMAND
from drivelab.quick.view import amount
from drivelab.report.numbers import capital

BUSY, BETWEEN, ROUGH = "busy", "between", "rough"
KINDS: Mapping[str, str] = {
    BUSY: "Something else slows the drive or the host down. Stop it or look again later; "
    f"`{COMMAND} doctor` shows the settings of the host.",
    BETWEEN: "The numbers are not those of the drive alone. A larger --size gets past caches; "
    f"`{COMMAND} doctor` shows the settings of CPU, link and cache.",
    ROUGH: "This look is rough. Look with a larger --size or a longer --time, or free space on a full file system.",
}
"""Meaning and remedy of each kind of warning, in their order."""
Cause = tuple[str, str]
"""The kind, and what was seen: a clause."""

FULL_SHARE = 0.90
"""Ours: many SSDs have a dynamic SLC cache that shrinks with the free space."""
SMALL_FILE_BYTES = 4 << 30
"""Ours: so much fits into the SLC cache of most drives."""
ROUGH_PCT = 50.0
"""Half of the interval of a mean. Ours: with three rounds, their standard deviation is then 20 % of the mean."""
FASTEST_US = {
    ("commit", NVME_SSD): 10, ("commit", SATA_SSD): 35, ("commit", SAS_SSD): 35, ("commit", HARD_DISK): 1500,
    ("read", NVME_SSD): 5, ("read", SATA_SSD): 5, ("read", SAS_SSD): 5, ("read", HARD_DISK): 1000,
}  # fmt: skip
"""Latencies that no such drive can have, by test and class: a cache answers.

Public: fsync alone takes 12 µs and more on NVMe drives with power loss protection (smalldatum, January 2026). Ours:
write and flush are two commands of at least 20 µs each on SATA and SAS; the fastest drives (Optane P5800X) read in
6 µs; half a turn at 15,000 rpm takes 2 ms.
"""
_EARLY_COMMIT_US = 20.0
"""For other classes. Ours: a flush through a hypervisor or a network takes longer."""


def warnings(causes: Sequence[Cause]) -> tuple[str, ...]:
    """Return at most one warning of each kind: what was seen, what it means, what to do."""
    seen = {kind: "; ".join(text for other, text in dict.fromkeys(causes) if other == kind) for kind in KINDS}
    return tuple(f"{capital(text)}. {KINDS[kind]}" for kind, text in seen.items() if text)


def of_folder(folder: Path, file_bytes: int) -> Iterator[Cause]:
    """Yield what makes a look at a folder rough: a full file system, a small file."""
    about = os.statvfs(folder)
    used, available = about.f_blocks - about.f_bfree, about.f_bavail  # as df(1) counts
    if used > FULL_SHARE * (used + available):
        yield ROUGH, f"the file system of {folder} is {format_percentage(100 * used / (used + available))} % full"
    if file_bytes < SMALL_FILE_BYTES:
        yield ROUGH, f"the test file has only {format_amount(file_bytes)}, which caches may hold"


def of_values(values: Sequence[Value], device_class: str) -> Iterator[Cause]:
    """Yield what the values of a place show besides its drive: memory, a cache, the CPU, noise."""
    if device_class in (MEMORY, RAM_DISK):
        yield BETWEEN, "this place is memory, not a drive"
        return
    known = {value.shown.key: value.value for value in values}
    for key, name in (("commit", "commit"), ("read", "random read")):
        least = FASTEST_US.get((key, device_class), _EARLY_COMMIT_US if key == "commit" else 0.0)
        if known.get(key, least) < least:
            yield BETWEEN, f"a {name} takes {amount(known[key], LATENCY)}, so a cache answers before the drive does"
    if limited := [value.shown.words for value in values if value.host_limited]:
        yield BETWEEN, f"the host limits what uses most of a CPU core: {'; '.join(limited)}"
    if (widest_pct := max((value.half_width_pct or 0.0 for value in values), default=0.0)) > ROUGH_PCT:
        yield ROUGH, f"the rounds of one test differ by ±{format_percentage(widest_pct)} %"
