"""Say what disturbed a cell: others' writes or load, an array's other state, throttling, stolen time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drivelab.core.grouping import grouped
from drivelab.core.units import format_amount, parse_amount

KERNEL, OWN = "kernel_writes", "own_writes"
"""Keys of a journal line: `written_bytes`, `discarded_bytes` and maybe `read_bytes`, as the kernel and as the program
counted them."""
_KINDS = {"written": "wrote", "discarded": "discarded"}


def own_writes(
    written: int, discarded: int = 0, failed_written: int = 0, failed_discarded: int = 0, *, read: int | None = None
) -> dict[str, Any]:
    """Return what a program says it wrote, and maybe read, for its journal line, in bytes.

    A failed request may have reached the drive in part, so its bytes are counted separately.
    """
    counts = {"written_bytes": written, "discarded_bytes": discarded} | ({} if read is None else {"read_bytes": read})
    failed = {"failed_written_bytes": failed_written, "failed_discarded_bytes": failed_discarded}
    return {OWN: counts | {name: count for name, count in failed.items() if count}}


def foreign_writes(line: Mapping[str, Any]) -> dict[str, float]:
    """Return `foreign_written_bytes` and `foreign_discarded_bytes` of a journal line.

    The result is empty if it has no counts.
    A negative value means that the kernel counted less than the program reports. The result has `unseen_read_bytes` if
    that is so for reads; reads of others change nothing on the drive.
    """
    if KERNEL not in line or OWN not in line:
        return {}
    foreign = {}
    for kind in _KINDS:
        own, failed = line[OWN][f"{kind}_bytes"], line[OWN].get(f"failed_{kind}_bytes", 0)
        excess = line[KERNEL][f"{kind}_bytes"] - own
        foreign[f"foreign_{kind}_bytes"] = float(min(excess, 0) + max(excess - failed, 0))
    unseen = line[OWN].get("read_bytes", 0) - line[KERNEL].get("read_bytes", math.inf)
    return foreign | ({"unseen_read_bytes": float(unseen)} if unseen > 0 else {})


def foreign_words(summary: Mapping[str, float]) -> str | None:
    """Describe the result of `foreign_writes` in words. The result is None if the counts agree or are missing."""
    excess = {verb: summary.get(f"foreign_{kind}_bytes", 0.0) for kind, verb in _KINDS.items()}
    more = [f"{verb} {format_amount(size)}" for verb, size in excess.items() if size > 0]
    fewer = [f"{format_amount(-size)} {kind}" for kind, size in zip(_KINDS, excess.values(), strict=True) if size < 0]
    if unseen := summary.get("unseen_read_bytes"):
        fewer.append(f"{format_amount(unseen)} read")
    clauses = [f"others {' and '.join(more)}"] if more else []
    if fewer:
        clauses.append(f"the kernel counted {' and '.join(fewer)} less than the measurement")
    return " and ".join(clauses) or None


STEAL_LIMIT_PCT = 5.0
"""More stolen CPU time than this taints a cell: the hypervisor ran others during the cell (ours)."""
LOAD_LIMIT_PCT = 25.0
"""More CPU time than this, used by others, taints a cell (ours)."""

_COUNTED = (
    ("thermal_1_transitions", "it slowed down lightly {0:.0f} times (thermal management temperature 1)"),
    ("thermal_1_s", "it was slowed down lightly for {0:.0f} s"),
    ("thermal_2_transitions", "it slowed down heavily {0:.0f} times (thermal management temperature 2)"),
    ("thermal_2_s", "it was slowed down heavily for {0:.0f} s"),
    ("warning_temperature_min", "it was above its warning temperature for {0:.0f} min"),
    ("critical_temperature_min", "it was above its critical temperature for {0:.0f} min"),
)
"""Counters of the NVMe SMART log that only rise while the drive is too hot."""


_NUMBER = re.compile(r"(?<!\S)(\d[\d,]*(?:\.\d+)?)(?: ([KMGT]iB|B)\b)?(?!\S)")
_OF_SEVERAL = re.compile(" at worst(, in [0-9]+ cells)?$|, in [0-9]+ cells$")
"""The end of a text by `digest` for several reasons."""


@dataclass(frozen=True)
class Limits:
    """Limits above which a cell is tainted, in percent of the host's CPU time."""

    steal_pct: float = STEAL_LIMIT_PCT
    load_pct: float = LOAD_LIMIT_PCT

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> Limits:
        """Return the limits of a study, with defaults for those that it does not set."""
        return cls(float(body.get("steal_pct", STEAL_LIMIT_PCT)), float(body.get("load_pct", LOAD_LIMIT_PCT)))


DEFAULT = Limits()
FOREIGN, THROTTLED = "foreign", "throttled"
"""Others wrote to the drive; the drive was too hot."""
CAUSES = (FOREIGN, "array", THROTTLED, "steal", "load")
DISTURBED = frozenset({"steal", "load"})
"""Causes outside the drive: others used the host."""


def taints(summary: Mapping[str, float], limits: Limits) -> list[str]:
    """Return why the numbers of a cell cannot be trusted, gravest reason first.

    The result is empty for a clean cell.
    `summary` is from `drivelab.telemetry.time_window`, with `foreign_writes` of the journal line. Each reason begins
    with one of CAUSES and a colon.
    """
    reasons = [f"{FOREIGN}: {words}"] if (words := foreign_words(summary)) else []
    if summary.get("array_other"):
        reasons.append("array: it was in another state than the measurement asks for")
    reasons += [f"{THROTTLED}: {reason}" for reason in _throttling(summary)]
    steal_pct, load_pct = summary.get("steal_pct", 0.0), summary.get("load_pct", 0.0)
    if steal_pct > limits.steal_pct:
        reasons.append(f"steal: {steal_pct:.0f} % of the CPU time was stolen by the hypervisor")
    if load_pct > limits.load_pct:
        reasons.append(f"load: others used {load_pct:.0f} % of the host's CPU time")
    return reasons


def throttled(summary: Mapping[str, float]) -> bool | None:
    """Say whether the drive was too hot; None if it does not report that."""
    signs = {name for name, _ in _COUNTED} | {"temperature_alarm"}
    knows_limit = {"temperature_max_c", "temperature_limit_c"} <= summary.keys()
    return bool(_throttling(summary)) if knows_limit or signs & summary.keys() else None


def _throttling(summary: Mapping[str, float]) -> list[str]:
    reasons = [template.format(summary[name]) for name, template in _COUNTED if summary.get(name, 0.0) > 0]
    hottest_c, limit_c = summary.get("temperature_max_c"), summary.get("temperature_limit_c")
    if hottest_c is not None and limit_c is not None and hottest_c >= limit_c:
        reasons.append(f"the drive reached {hottest_c:.0f} °C, it warns from {limit_c:.0f} °C")
    elif summary.get("temperature_alarm", 0.0) > 0:
        reasons.append("the drive raised its temperature alarm")
    return reasons


def told(reasons: Iterable[str]) -> str | None:
    """Join reasons to one text for a column; None for no reasons."""
    return "; ".join(reasons) or None


def digest(texts: Iterable[str]) -> list[str]:
    """Shorten the reasons of many cells: the worst of each cause, with a count.

    The count is the number of cells with this cause.
    The number is left out if a text already covers several cells, as that of a value does: values share cells.
    """
    return [_worst_of(same_cause) for same_cause in _by_cause(texts).values()]


def worst(reasons: Iterable[str]) -> list[str]:
    """Shorten the reasons of values that may share cells: the worst of each cause."""
    return [_at_worst(reason) if _OF_SEVERAL.search(reason) else reason for reason in digest(reasons)]


def causes(texts: Iterable[str]) -> list[str]:
    """Return the causes alone, each once, as a legend shows them."""
    return list(_by_cause(texts))


def is_busy(taint_reason: object) -> bool:
    """Return whether other programs or virtual machines used the host, and nothing else disturbed the value."""
    return isinstance(taint_reason, str) and set(causes([taint_reason])) <= DISTURBED


def _by_cause(texts: Iterable[str]) -> dict[str, list[str]]:
    return grouped((reason for text in texts for reason in text.split("; ")), lambda reason: reason.partition(":")[0])


def _worst_of(reasons: list[str]) -> str:
    worst = max(reasons, key=_size)
    if len(reasons) == 1:
        return worst
    several = any(map(_OF_SEVERAL.search, reasons))
    return _at_worst(worst) if several else f"{_at_worst(worst)}, in {len(reasons)} cells"


def _at_worst(reason: str) -> str:
    """Return a reason for several cells, without their count; one without a size is no worse in any of them."""
    words = _OF_SEVERAL.sub("", reason)
    return f"{words} at worst" if _NUMBER.search(words) else words


def _size(reason: str) -> float:
    """Return the first number in a reason, which is the size of the disturbance. Amounts of data in bytes."""
    match = _NUMBER.search(reason)
    if match is None:
        return 0.0
    return parse_amount(f"{match[1].replace(',', '')} {match[2]}") if match[2] else float(match[1])
