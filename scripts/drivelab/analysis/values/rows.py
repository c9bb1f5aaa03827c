"""Build the common parts of rows of the table `summary`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.verdict import FAULTS, FINE, HOST_LIMITED, RSE_OK, RSE_TOO_HIGH, TAINTED, TOO_FEW_RUNS
from drivelab.criteria.host_limit import most_severe
from drivelab.criteria.taint import digest, is_busy, told
from drivelab.tables.labels import KINDS, UNITS
from drivelab.tables.schemas import KEY

RATES = ("iops", "bandwidth_mib_s", "mean_latency_us")
"""Metrics that every cell has."""


def row(key: dict[str, Any], label: str, metric: str, **value: Any) -> dict[str, Any]:
    """Return a row of the table. `key` is from `key_of`, `value` has the columns of the value.

    One without `n` is a single value; its spread is that of its `samples`, and nothing is known of what it leaves out.
    """
    samples = value.get("samples", ())
    spread = {"spread_low": min(samples), "spread_high": max(samples)} if samples else {}
    unknown = dict.fromkeys(("rse_pct", "host_limit", "disturbance_pct"))
    named = {"cell_label": label, "metric": metric, "kind": KINDS[metric], "unit": UNITS[metric]}
    return {**key, **named, "n": 1, **spread, **unknown, **value}


def key_of(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the key columns of the recording that the rows belong to."""
    return {column: rows[column].iloc[0] for column in KEY}


def turn_of(rows: pd.DataFrame) -> str:
    """Return the suffix of a label that tells the turns of a repeated step apart; empty for a step done once."""
    first = rows.iloc[0]
    if not isinstance(first["phase"], str):
        return ""
    value = first["phase_value"]
    return f", {first['phase']} {value if isinstance(value, str) else int(first['phase_pass'])}"


def odd(count: int) -> int:
    """Return the largest odd number up to `count`."""
    return count if count % 2 else count - 1


def rse_verdict(rse_pct: float | None, threshold_pct: float) -> str:
    """Return the verdict on repeats. Without a relative standard error they are too few."""
    if rse_pct is None:
        return TOO_FEW_RUNS
    return RSE_OK if rse_pct <= threshold_pct else RSE_TOO_HIGH


def gravest(verdicts: list[str]) -> str:
    """Return the gravest of several verdicts, or the first if none is a fault."""
    return next((fault for fault in FAULTS if fault in verdicts), verdicts[0])


def evidence(recording: str, directories: Iterable[str]) -> list[str]:
    """Return the paths of the cells behind a value, each once, in order."""
    return [f"{recording}/{directory}" for directory in dict.fromkeys(directories)]


BOUNDED = frozenset({"iops", "bandwidth_mib_s", "mean_latency_us", "access_time_us", "response_time_us", "duration_s"})
"""Metrics that load of others changes by at most its share of the time: rates and means, no percentiles."""
Statistic = Callable[[Sequence[float]], float]
"""Makes a value of those of rows."""


@dataclass(frozen=True)
class Trust:
    """What stands against the values of rows of table `cells`, `replays` or the like."""

    faults: Sequence[str] = ()
    """TAINTED and HOST_LIMITED, if any of the rows is so."""
    taint_reason: str | None = None
    host_limit: str | None = None
    """Why the host may be the limit of any of the rows; only cells of fio know."""
    gains: Sequence[float] | None = None

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Trust:
        """Return what stands against values of these rows."""
        host_limit = most_severe(rows["host_limit"].dropna()) if "host_limit" in rows.columns else None
        faults = [*([TAINTED] if rows["tainted"].any() else []), *([HOST_LIMITED] if host_limit else [])]
        return cls(faults, told(digest(rows["taint_reason"].dropna())), host_limit, gains(rows))

    def columns(
        self, verdict: str, metric: str, values: Sequence[float], statistic: Statistic, others: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return the columns that say how far the value of a metric can be trusted.

        `verdict` is that of its repeats and `others` are further faults; the value is the `statistic` of the rows'
        `values`.
        """
        verdicts = [verdict, *others, *self.faults]
        return {
            "verdict": gravest(verdicts),
            "taint_reason": self.taint_reason,
            "host_limit": self.host_limit,
            "disturbance_pct": disturbance_pct(metric, verdicts, self.gains, values, statistic),
        }


def disturbance_pct(
    metric: str, verdicts: Iterable[str], gained: Sequence[float] | None, values: Sequence[float], statistic: Statistic
) -> float | None:
    """Return by how much load of others may have changed a value at most, in percent; None if that is not known.

    It is known if nothing but the load stands against the value. `gained` is from `gains`. Repeats that do not agree
    count as an effect of the load: the scatter between recordings, which the tests use, includes theirs.
    """
    if gained is None or metric not in BOUNDED or not set(verdicts) <= {*FINE, TAINTED, RSE_TOO_HIGH}:
        return None
    pairs = list(zip(values, gained, strict=True))
    measured = statistic(values)
    raised, lowered = statistic([v * gain for v, gain in pairs]), statistic([v / gain for v, gain in pairs])
    return 100 * (max(raised / measured, measured / lowered) - 1) if lowered > 0 else None


def gains(rows: pd.DataFrame) -> list[float] | None:
    """Return by what factor the rate of each row might be higher without load of others; None for other disturbances.

    While others have a share s of the CPU time, a drive may lose this share of its time: its rate without them is at
    most 1 / (1 - s) of the measured one. It also loses no more than the share of the time in which a process waited for
    a CPU, where the kernel knows that.
    """
    tainted = rows["tainted"].astype(bool)
    if not tainted.any() or "load_pct" not in rows or not is_busy(told(rows.loc[tainted, "taint_reason"])):
        return None
    load_pct, steal_pct = (rows[name].astype(float).fillna(0.0) for name in ("load_pct", "steal_pct"))
    if not ((load_pct + steal_pct > 0) | ~tainted).all():
        return None
    lost_pct = np.fmin(load_pct, rows["waited_pct"].astype(float)) + steal_pct
    shares = lost_pct.where(tainted, 0.0) / 100
    if not (shares < 1).all():
        return None
    return [float(gain) for gain in 1 / (1 - shares)]
