"""Detect writes by others: the kernel's count minus the measurement's own.

The kernel counts at completion, before the program learns of it (block/blk-mq.c, blk_update_request). fio and the
replay engine wait for all I/Os in flight before they end, and count them. So the two counts are equal to the byte, and
no difference is tolerated. This holds for jobs without `ramp_time`, during which fio counts nothing; drivelab uses no
`ramp_time`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.units import format_amount

KERNEL, OWN = "kernel_writes", "own_writes"
"""Keys of a journal line: `written_bytes` and `discarded_bytes` as the kernel and as the program counted them."""
_KINDS = {"written": "wrote", "discarded": "discarded"}


def own_writes(written: int, discarded: int = 0, failed_written: int = 0, failed_discarded: int = 0) -> dict[str, Any]:
    """Return what a program says it wrote, for its journal line, in bytes.

    A failed request may have reached the drive in part, so its bytes are counted separately.
    """
    counts = {"written_bytes": written, "discarded_bytes": discarded}
    failed = {"failed_written_bytes": failed_written, "failed_discarded_bytes": failed_discarded}
    return {OWN: counts | {name: count for name, count in failed.items() if count}}


def foreign_writes(line: Mapping[str, Any]) -> dict[str, float]:
    """Return `foreign_written_bytes` and `foreign_discarded_bytes` of a journal line.

    The result is empty if it has no counts.
    A negative value means that the kernel counted less than the program reports.
    """
    if KERNEL not in line or OWN not in line:
        return {}
    foreign = {}
    for kind in _KINDS:
        own, failed = line[OWN][f"{kind}_bytes"], line[OWN].get(f"failed_{kind}_bytes", 0)
        excess = line[KERNEL][f"{kind}_bytes"] - own
        foreign[f"foreign_{kind}_bytes"] = float(min(excess, 0) + max(excess - failed, 0))
    return foreign


def foreign_words(summary: Mapping[str, float]) -> str | None:
    """Describe the result of `foreign_writes` in words.

    The result is None if the counts agree or are missing.
    """
    excess = {verb: summary.get(f"foreign_{kind}_bytes", 0.0) for kind, verb in _KINDS.items()}
    more = [f"{verb} {format_amount(size)}" for verb, size in excess.items() if size > 0]
    fewer = [f"{format_amount(-size)} {kind}" for kind, size in zip(_KINDS, excess.values(), strict=True) if size < 0]
    clauses = [f"others {' and '.join(more)}"] if more else []
    if fewer:
        clauses.append(f"the kernel counted {' and '.join(fewer)} less than the measurement")
    return " and ".join(clauses) or None
