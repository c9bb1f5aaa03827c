"""Describe journal lines as sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from drivelab.core.units import format_amount
from drivelab.criteria.taint import foreign_words, foreign_writes
from drivelab.plan.cell import Cell


def at_s(line: Mapping[str, Any]) -> float:
    """Return the Unix time of a journal line."""
    return datetime.fromisoformat(line["at"]).timestamp()


def sentence(line: Mapping[str, Any]) -> str | None:
    """Return a sentence for a journal line; None for a line that only programs need."""
    event = str(line.get("event"))
    if event in ("cell", "tainted"):
        again = f", measured again: {'; '.join(line['reasons'])}" if event == "tainted" else ""
        return f"{'cold ' if line.get('cold') else ''}round {line['round']}: {_cell(line['workload'])}, " + (
            metrics_words(line["metrics"]) + (again or _foreign(line))
        )
    sentences: dict[str, Callable[[], str | None]] = {
        "purge": lambda: (
            "not purged" if line.get("method") == "none" else f"purged: {line.get('title', line.get('method'))}"
        ),
        "fill": lambda: f"preconditioned: {format_amount(line['bytes'])} written, {_cell(line['cell'])}",
        "verdict": lambda: None if line["intact"] else f"conditioned again: {line['reason']}",
        "measure": lambda: "measurement begins",
        "gap": lambda: str(line["reason"]),
        "soak-begins": lambda: f"soak begins: {_cell(line['workload'])}",
        "soak": lambda: f"soak {_soak_end(line)}: {format_amount(line['bytes'])} in {line['runtime_s']:.0f} s"
        + _foreign(line),
        "loop": lambda: f"loop ended after {line['rounds']} rounds" + _loop_end(line),
        "replay": lambda: f"replayed {line.get('trace', 'the trace')}" + _foreign(line),
        "application": lambda: "application run",
        "load": lambda: f"load of {line['rate_iops']:,.0f} IOPS {line['outcome']}" + _foreign(line),
        "failed": lambda: f"failed: {line['reason']}",
        "abandoned": lambda: f"set aside: {line['reason']}",
        "complete": lambda: "recording complete",
    }  # fmt: skip
    return sentences[event]() if event in sentences else None


def metrics_words(metrics: Mapping[str, float]) -> str:
    """Return IOPS, bandwidth and mean latency of a cell."""
    rates = f"{metrics['iops']:,.0f} IOPS, {metrics['bandwidth_mib_s']:,.1f} MiB/s"
    return f"{rates}, {latency_words(metrics['mean_latency_us'])}"


def latency_words(latency_us: float | None) -> str:
    """Return a latency with three digits, in a suitable unit."""
    if latency_us is None:
        return "-"
    if latency_us < 999.5:
        return f"{latency_us:.3g} µs"
    return f"{latency_us / 1e3:.3g} ms" if latency_us < 999.5e3 else f"{latency_us / 1e6:.3g} s"


def _foreign(line: Mapping[str, Any]) -> str:
    reason = foreign_words(foreign_writes(line))
    return f"; tainted: {reason}" if reason else ""


def _cell(workload: Mapping[str, Any]) -> str:
    return Cell(**workload).label


def _soak_end(line: Mapping[str, Any]) -> str:
    if not line["finished"]:
        return "interrupted"
    return f"ended by {line['ended_by']}" if "ended_by" in line else "ended"


def _loop_end(line: Mapping[str, Any]) -> str:
    for key, good, bad in (("steady", "steady", "not steady"), ("agreed", "rounds agree", "rounds do not agree")):
        if key in line:
            return f", {good if line[key] else bad}"
    return ""
