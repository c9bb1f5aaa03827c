"""The values of quick looks in words, for the terminal and for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.analysis.values.quick_look import BANDWIDTH, IOPS, LATENCY, SHOWN, Sustained, Value
from drivelab.core.terminal import print_table
from drivelab.core.units import format_factor, format_percentage

_UNITS = {BANDWIDTH: "MiB/s", IOPS: "IOPS", LATENCY: "µs"}


def amount(value: float, metric: str) -> str:
    """Return a value for people, with three digits: `3,780 IOPS`, `412 MiB/s`, `86.3 µs`, `1.25 ms`."""
    if metric == LATENCY and value >= 1000:
        return f"{format_factor(value / 1000)} ms"
    return f"{format_factor(value)} {_UNITS[metric]}"


def change(basis: Value, other: Value) -> str:
    """Return by how much the second value is better, in percent; in parentheses if the spreads overlap."""
    ratio = basis.value / other.value if basis.shown.is_time else other.value / basis.value
    text = f"{format_percentage(100 * (ratio - 1), signed=True)} %"
    return text if basis.apart(other) else f"({text})"


def print_values(places: Mapping[str, Sequence[Value]]) -> None:
    """Print the values of each place by its name, with spreads and the changes against the first place."""
    names = list(places) if len(places) > 1 else ["median"]
    columns = [column for name in names for column in (name, "spread")] + ["change"] * (len(places) - 1)
    by_place, rows = [{value.shown: value for value in values} for values in places.values()], []
    for shown in (shown for shown in SHOWN if all(shown in place for place in by_place)):
        values, cells = [place[shown] for place in by_place], [shown.words]
        for value in values:
            spread = "" if value.half_width_pct is None else f"±{format_percentage(value.half_width_pct)} %"
            cells += [amount(value.value, shown.metric), spread]
        rows.append([*cells, *(change(values[0], other) for other in values[1:])])
    print_table(["test", *columns], rows, columns)


def row(value: Value) -> dict[str, Any]:
    """Return one value for JSON."""
    unit = {**_UNITS, LATENCY: "us"}[value.shown.metric]
    same = {name: getattr(value, name) for name in ("value", "half_width_pct", "p99_us", "cpu_share", "host_limited")}
    return {"test": value.shown.words, "unit": unit, **same, "p99_9_us": value.p999_us, "rounds": list(value.samples)}


def sustained_words(sustained: Sustained) -> str:
    """Describe the sustained write in a sentence."""
    start, end = (amount(rate, BANDWIDTH) for rate in (sustained.start_mib_s, sustained.end_mib_s))
    gib = format_factor(sustained.written_bytes / (1 << 30))
    if sustained.cliff_bytes is not None:
        cliff = format_factor(sustained.cliff_bytes / (1 << 30))
        return f"Sustained write: {start} falls to {end} after {cliff} GiB (cliff), {gib} GiB in all."
    mean = amount(sustained.written_bytes / (1 << 20) / sustained.seconds[-1], BANDWIDTH)
    return f"Sustained write: {mean} ({start} at first, {end} at last), no cliff in {gib} GiB."
