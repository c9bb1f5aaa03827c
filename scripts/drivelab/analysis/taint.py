"""What disturbed a cell: writes by others, and by its telemetry throttling, stolen CPU time, load by others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drivelab.analysis.foreign_writes import foreign_words
from drivelab.units import parse_amount

STEAL_LIMIT_PCT = 5.0
"""More stolen time than this taints a cell: the hypervisor ran others while the cell was timed. Ours."""
LOAD_LIMIT_PCT = 25.0
"""More CPU time than this, used by others, taints a cell. Ours."""

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
_OF_SEVERAL = re.compile(" at worst(, in [0-9]+ cells)?$")
"""What `digest` makes of several."""


@dataclass(frozen=True)
class Limits:
    """Above these a cell is tainted; percent of the CPU time of the whole host."""

    steal_pct: float = STEAL_LIMIT_PCT
    load_pct: float = LOAD_LIMIT_PCT

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> Limits:
        """The limits of a study; one that it does not name is ours."""
        return cls(float(body.get("steal_pct", STEAL_LIMIT_PCT)), float(body.get("load_pct", LOAD_LIMIT_PCT)))


DEFAULT = Limits()


def taints(summary: Mapping[str, float], limits: Limits) -> list[str]:
    """Why the numbers of a cell cannot be trusted, gravest first; empty if nothing is known against them.

    `summary` is of `drivelab.telemetry.window`, with `foreign_writes` of the journal line. Each reason begins with its
    cause and a colon: `foreign`, `throttled`, `steal` or `load`.
    """
    found = [f"foreign: {words}"] if (words := foreign_words(summary)) else []
    found += [f"throttled: {reason}" for reason in _throttling(summary)]
    steal_pct, load_pct = summary.get("steal_pct", 0.0), summary.get("load_pct", 0.0)
    if steal_pct > limits.steal_pct:
        found.append(f"steal: {steal_pct:.0f} % of the CPU time was stolen by the hypervisor")
    if load_pct > limits.load_pct:
        found.append(f"load: others used {load_pct:.0f} % of the host's CPU time")
    return found


def throttled(summary: Mapping[str, float]) -> bool | None:
    """Whether the drive was too hot; None if it does not say."""
    told = {name for name, _ in _COUNTED} | {"temperature_alarm"}
    knows_limit = {"temperature_max_c", "temperature_limit_c"} <= summary.keys()
    return bool(_throttling(summary)) if knows_limit or told & summary.keys() else None


def _throttling(summary: Mapping[str, float]) -> list[str]:
    found = [words.format(summary[name]) for name, words in _COUNTED if summary.get(name, 0.0) > 0]
    hottest_c, limit_c = summary.get("temperature_max_c"), summary.get("temperature_limit_c")
    if hottest_c is not None and limit_c is not None and hottest_c >= limit_c:
        found.append(f"the drive reached {hottest_c:.0f} °C, it warns from {limit_c:.0f} °C")
    elif summary.get("temperature_alarm", 0.0) > 0:
        found.append("the drive raised its temperature alarm")
    return found


def told(reasons: Iterable[str]) -> str | None:
    """Reasons as one text, for a column; None if there are none."""
    return "; ".join(reasons) or None


def digest(texts: Iterable[str]) -> list[str]:
    """The reasons of many cells in few words: of each cause the worst, with the number of cells that have it.

    Without that number where a text is of several cells already, as of a value that stands on them: values share cells.
    """
    by_cause: dict[str, list[str]] = {}
    for text in texts:
        for reason in text.split("; "):
            by_cause.setdefault(reason.partition(":")[0], []).append(reason)
    return [_worst_of(found) for found in by_cause.values()]


def worst(reasons: Iterable[str]) -> list[str]:
    """The reasons of many values that may share cells: of each cause the worst, without a number of cells."""
    return [_OF_SEVERAL.sub(" at worst", one) for one in digest(reasons)]


def causes(texts: Iterable[str]) -> list[str]:
    """The causes alone, each once, as a legend shows them."""
    return list(dict.fromkeys(reason.partition(":")[0] for text in texts for reason in text.split("; ")))


def _worst_of(reasons: list[str]) -> str:
    worst = max(reasons, key=_size)
    if len(reasons) == 1:
        return worst
    if any(map(_OF_SEVERAL.search, reasons)):
        return f"{_OF_SEVERAL.sub('', worst)} at worst"
    return f"{worst} at worst, in {len(reasons)} cells"


def _size(reason: str) -> float:
    """The first number in a reason, which is what is too large; an amount of data in bytes."""
    found = _NUMBER.search(reason)
    if found is None:
        return 0.0
    return parse_amount(f"{found[1].replace(',', '')} {found[2]}") if found[2] else float(found[1])
