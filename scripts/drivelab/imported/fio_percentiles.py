"""Percentiles of the latency from fio's JSON output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PERCENTS = {"50": 50.0, "90": 90.0, "99": 99.0, "999": 99.9, "9999": 99.99, "99999": 99.999, "999999": 99.9999}


def percentiles(jobs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of the whole latency: from the bins of json+, else fio's own of a single direction of a single job."""
    used = [part for job in jobs for part in (job["read"], job["write"]) if part["total_ios"]]
    bins: dict[int, int] = {}
    if all(part["lat_ns"].get("bins") for part in used):
        for part in used:
            for latency_ns, count in part["lat_ns"]["bins"].items():
                bins[int(latency_ns)] = bins.get(int(latency_ns), 0) + int(count)
        largest_ns = max(float(part["lat_ns"]["max"]) for part in used)
        return dict(_of_bins(bins, largest_ns))
    if len(used) != 1:
        return {}
    known = {float(name): value for name, value in used[0]["lat_ns"].get("percentile", {}).items()}
    return {f"p{n}_latency_us": known[percent] / 1000 for n, percent in _PERCENTS.items() if percent in known}


def _of_bins(bins: Mapping[int, int], largest_ns: float) -> Iterator[tuple[str, float]]:
    """As fio: the first bin that gets there; no more than the largest latency, which its middle may lie above."""
    total = sum(bins.values())
    for name, percent in _PERCENTS.items():
        so_far = 0
        for latency_ns in sorted(bins):
            so_far += bins[latency_ns]
            if so_far >= percent / 100 * total * (1 - 1e-12):
                yield f"p{name}_latency_us", min(latency_ns, largest_ns) / 1000
                break
