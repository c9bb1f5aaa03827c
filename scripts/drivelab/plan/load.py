"""Resolve a load step: requests that arrive at rising rates, until their tail latency passes a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.plan.loop_cells import cell
from drivelab.plan.value_types import MisfitError, Values, at, duration_s, share_of

MOST_IN_FLIGHT = 4096
TRACE = "trace"
"""Arrivals with the bursts and pauses of a trace of the study."""
MOST_REQUESTS = 5_000_000
"""Largest number of requests of one measurement, which limits memory and evidence; the runtime is shorter then."""
_GRACE_S = 1.0
_DEMAND = {"threads": 1, "queue_depth": MOST_IN_FLIGHT}
"""Defaults: one thread issues, and only the engine limits the requests in flight."""
_TRIES = 3


def load(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """Return the step for a plan.

    `queue_depth` of its cell limits the requests in flight of all threads together. Raises MisfitError for rates out of
    order, and for a workload that is none of an open-loop load.
    """
    resolved = cell({**_DEMAND, **fields}, values, None)
    if "block_size_max_bytes" in resolved or "block_sizes" in resolved:
        raise MisfitError("a load has one block size; write it like 4KiB", ("block_size",))
    if resolved["threads"] > resolved["queue_depth"]:
        raise MisfitError("each thread needs a place in the queue; use a higher queue_depth", ("threads",))
    with at("limit"):
        response_time_s = duration_s(fields["limit"], "response_time")
        if not response_time_s > 0:
            raise MisfitError("is 0; give a time above 0", ("response_time",))
    runtime_s = duration_s(fields, "runtime")
    with at("rates"):
        rates = _rates(fields["rates"])
    return {
        "cell": resolved,
        "arrivals": fields["arrivals"],
        "limit": {"percentile": float(fields["limit"]["percentile"]), "response_time_us": response_time_s * 1e6},
        "rates": rates,
        "runtime_s": runtime_s,
        "tries": fields.get("tries", _TRIES),
    }


def _rates(fields: Mapping[str, Any]) -> dict[str, float]:
    if fields["most"] < fields["start"]:
        raise MisfitError("is below 'start'; give a higher rate", ("most",))
    return {
        "start_iops": float(fields["start"]),
        "factor": float(fields["factor"]),
        "resolution": share_of(fields, "resolution"),
        "most_iops": float(fields["most"]),
    }


def grace_s(fields: Mapping[str, Any]) -> float:
    """Return how long requests are issued after the last one is due.

    An overloaded drive never gets to all of them. It is longer than the limit, so what is not issued has failed it.
    """
    return max(_GRACE_S, 2e-6 * float(fields["limit"]["response_time_us"]))


def load_words(fields: Mapping[str, Any]) -> str:
    """Return a load step of a plan in words, such as `RND 4KiB 70/30, poisson arrivals, p99.99 below 1 ms`."""
    arrivals, limit = fields["arrivals"], fields["limit"]
    return (
        f"{Cell(**fields['cell']).workload}, {arrivals} arrivals, "
        f"{limit_words(limit['percentile'], limit['response_time_us'])}"
    )


def limit_words(percentile: float, limit_us: float) -> str:
    """Return a limit in words, such as `p99.99 below 1 ms`."""
    return f"p{percentile:g} below {time_words(limit_us)}"


def time_words(time_us: float) -> str:
    """Return a time with three digits, in a suitable unit."""
    if time_us < 999.5:
        return f"{time_us:.3g} µs"
    return f"{time_us / 1e3:.3g} ms" if time_us < 999.5e3 else f"{time_us / 1e6:.3g} s"
