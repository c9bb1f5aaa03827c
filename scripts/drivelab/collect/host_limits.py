"""The columns of cells that say whether the host was the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.criteria.host_limit import LEAST_S, Ceiling, cpu_use, host_limits, is_host_limited
from drivelab.fio.null_target import CEILINGS, key_of, load_of
from drivelab.fio.result import FioResult
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_object

Ceilings = Mapping[str, tuple[Ceiling, str]]
"""Ceiling and targets of each load, by its key."""
_NAMES = (
    "busiest_cpus_pct", "interrupt_cpus_pct", "host_at_least_iops", "host_at_most_iops", "host_targets", "host_limited",
    "host_limit",
)  # fmt: skip


def ceilings_of(recording: Path) -> Ceilings:
    """Return what a recording holds of the host's ceilings; empty for one without."""
    ceilings = {}
    for entry in read_object(recording / CEILINGS).get("loads", ()):
        results = [result for result in entry["measured"] if result["bounds"]]
        targets = ", ".join(f"{result['target']} ({' and '.join(result['bounds'])})" for result in results)
        ceilings[key_of(Cell(**entry["load"]))] = Ceiling.of(results), targets
    return ceilings


def host_limit_columns(
    plan: Plan,
    ceilings: Ceilings,
    cell: Cell,
    result: FioResult,
    facts: Mapping[str, Any],
    telemetry: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the columns of a cell; all are null where the question does not apply.

    That is on the virtual clock, where no host took part, and for a virtual drive, which is a program on the host. All
    slices of a soak share the CPU use of the soak, except that of fio's threads.
    """
    if plan.virtual or plan.clock == "virtual":
        return dict.fromkeys(_NAMES)
    load = load_of(cell)
    ceiling, targets = ceilings.get("" if load is None else key_of(load), (Ceiling(), ""))
    use = cpu_use(facts, cell.total_threads, _threads_pct(result), telemetry.get("load_pct"))
    judged = math.isfinite(result.iops)  # damaged evidence may have any value
    reasons = host_limits(result.iops, ceiling, use) if judged else []
    values = (
        use.busiest_pct, use.interrupt_pct, ceiling.at_least_iops, ceiling.at_most_iops, targets or None,
        is_host_limited(result.iops, ceiling, use) if judged else None, "; ".join(reasons) or None,
    )  # fmt: skip
    return dict(zip(_NAMES, values, strict=True))


def _threads_pct(result: FioResult) -> float | None:
    """Return the CPU time of fio's threads, in percent of each; None for a short run and for damaged evidence."""
    share_pct = result.user_cpu_pct + result.system_cpu_pct
    return share_pct if math.isfinite(share_pct) and result.runtime_s >= LEAST_S else None
