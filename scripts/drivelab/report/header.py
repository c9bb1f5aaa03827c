"""The header block of a page, after the report pages of the PTS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from drivelab.report.banners import within
from drivelab.report.document import Fact
from drivelab.report.inputs import Inputs, Key, Row, each
from drivelab.report.numbers import MISSING, is_missing, metric_name, moment, names, percent, quantity, size, text

_MOST_CELLS = 3
"""Cells that a fact on verdicts names."""


def run_head(plans: list[Row], report_date: Any, number: int, pages: int) -> tuple[Fact, ...]:
    """Return the dates and the number of the page."""
    starts = [plan["started"] for plan in plans if not is_missing(plan.get("started"))]
    ends = [plan["finished"] for plan in plans if not is_missing(plan.get("finished"))]
    first, last = moment(min(starts, default=None)), moment(max(ends, default=None))
    return (
        fact("Test run", first if first == last else f"{first} to {last}"),
        fact("Report run", moment(report_date)),
        fact("Page", f"{number} of {pages}"),
    )


def fact(name: str, value: str, tone: str = "") -> Fact:
    """Return a named value; mark it if it is missing."""
    return Fact(name, value, tone or ("missing" if value == MISSING else ""))


def capacity(size_bytes: Any) -> str:
    """Format a capacity, followed by its exact bytes."""
    return MISSING if is_missing(size_bytes) else f"{size(size_bytes)} ({int(size_bytes):,} bytes)"


def _memory(size_bytes: Any) -> str:
    """Format main memory with a binary prefix."""
    return quantity(None if is_missing(size_bytes) else float(size_bytes) / 2**30, "GiB")


def _fio(version: Any) -> str:
    """Return the version of fio; fio does not run on the virtual clock."""
    return "not used (virtual clock)" if version == "virtual clock" else text(version)


def _in(unit: str) -> Callable[[Any], str]:
    return lambda value: quantity(value, unit)


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "capacity_bytes": capacity,
    "logical_block_bytes": size,
    "over_provisioning_pct": _in("%"),
    "virtual": lambda value: text(value) if is_missing(value) else "yes" if value else "no",
    "base_clock_mhz": _in("MHz"),
    "max_clock_mhz": _in("MHz"),
    "package_power_limit_w": _in("W"),
    "memory_bytes": _memory,
    "cores": lambda value: text(value) if is_missing(value) else str(int(value)),
    "fio": _fio,
    "queue_depth": lambda depth: f"{text(depth)} per thread" if str(depth)[-1:].isdigit() else text(depth),
}
"""Formats of columns of the tables `drives` and `hosts`, and of the facts of a recording; others are texts."""


def shown(row: Row, column: str) -> str:
    """Return the value of a column, or "not recorded"; of a property that changed, each value."""
    return each(_FORMATS.get(column, text), row.get(column))


@dataclass(frozen=True)
class _Test:
    """One test of one drive."""

    inputs: Inputs
    key: Key

    @cached_property
    def plans(self) -> list[Row]:
        return self.inputs.plans_of(self.key)

    @cached_property
    def drive(self) -> Row:
        return self.inputs.drive(self.key[0])

    @cached_property
    def host(self) -> Row:
        return self.inputs.host(self.plans)

    def rows(self, table: str) -> list[Row]:
        return self.inputs.of_key(table, self.key)

    def planned(self, nothing: str) -> str:
        """Return `nothing` for a plan (what it omits was not done), else "not recorded" (an import)."""
        return nothing if any("purge" in plan for plan in self.plans) else MISSING


Told = Callable[[_Test], str]


def _drive(column: str) -> Told:
    return lambda test: shown(test.drive, column)


def _host(column: str) -> Told:
    return lambda test: shown(test.host, column)


def _plan(value: str | Callable[[Row], str]) -> Told:
    """Return the distinct values of a test's runs."""

    def told(test: _Test) -> str:
        values = (shown(plan, value) if isinstance(value, str) else value(plan) for plan in test.plans)
        return "; ".join(dict.fromkeys(values)) or MISSING

    return told


def _transport(test: _Test) -> str:
    known = (test.drive.get(name) for name in ("transport", "link"))
    return ", ".join(str(value) for value in known if not is_missing(value)) or MISSING


def _kind(test: _Test) -> str:
    """Return the kind of a hard disk; the kernel assumes one of virtio disks."""
    zones = test.drive.get("zoned")
    if test.drive.get("rotational") is not True or test.drive.get("transport") == "virtio":
        return ""
    return "hard disk" if zones in (None, "none") else f"hard disk, {zones} zones"


def _cpu(test: _Test) -> str:
    cpu, cores = _host("cpu")(test), _host("cores")(test)
    return cpu if MISSING in (cpu, cores) else f"{cpu} ({cores} cores)"


def _clocks(test: _Test) -> str:
    """Return the base and the maximum clock, as far as they are known."""
    clocks = {"base": _host("base_clock_mhz")(test), "at most": _host("max_clock_mhz")(test)}
    return ", ".join(f"{word} {clock}" for word, clock in clocks.items() if clock != MISSING)


def _scenario(plan: Row) -> str:
    name = shown(plan, "scenario")
    checked = plan.get("scenario_required") and name != MISSING
    return f"{name}, checked before the first cell" if checked else name


def _rounds_before(test: _Test) -> str:
    return "the test's own rounds before the window" if test.rows("steady_state") else test.planned("none")


def _protocol(plan: Row) -> str:
    protocol = plan.get("protocol") or {}
    return ": ".join(str(protocol[k]) for k in ("name", "title") if not is_missing(protocol.get(k))) or MISSING


def _tracked(test: _Test) -> str:
    windows = test.rows("steady_state")
    return "; ".join(dict.fromkeys(f"{row['variable']}, {metric_name(row['metric'])}" for row in windows)) or (
        test.planned("none")
    )


def _traces(test: _Test) -> str:
    return "; ".join(dict.fromkeys(str(row["trace"]) for row in test.rows("replays")))


_METERS = {"meter": "by the power meter", "drive": "by the drive's sensor"}


def _power(test: _Test) -> str:
    """Return what measured the drive's power, as IOPS per watt needs it."""
    cells = test.inputs.frame_of("cells", test.key)
    if cells.empty or "power_w" not in cells:
        return MISSING
    powered = cells[cells["power_w"].notna()]
    if powered.empty:
        return test.planned("not measured")
    sources = " and ".join(_METERS.get(str(source), "source unknown") for source in powered["power_source"].unique())
    return sources + ("; not in all cells" if len(powered) < len(cells) else "")


_GROUPS: Mapping[str, Sequence[tuple[str, Told]]] = {
    "Drive under test": (
        ("Name", lambda test: test.key[0]), ("Model", _drive("model")), ("Manufacturer?", _drive("manufacturer")),
        ("Serial", _drive("serial")), ("Firmware", _drive("firmware")), ("Capacity", _drive("capacity_bytes")),
        ("Logical block", _drive("logical_block_bytes")), ("Transport", _transport), ("Device", _drive("device")),
        ("Consists of?", _drive("composition")), ("Kind?", _kind),
        ("Over-provisioning?", _drive("over_provisioning_pct")), ("File system?", _drive("file_system")),
        ("mkfs?", _drive("mkfs")), ("Mount options?", _drive("mount_options")),
    ),
    "Platform": (
        ("Host", _host("host")), ("CPU", _cpu), ("Clock?", _clocks),
        ("Package power limit?", _host("package_power_limit_w")), ("Memory", _host("memory_bytes")),
        ("Memory modules?", _host("memory_modules")), ("Board?", _host("board")), ("System?", _host("system")),
        ("BIOS?", _host("bios")), ("Note?", _host("note")), ("Kernel", _host("kernel")),
        ("Operating system", _host("os")), ("fio", _host("fio")), ("I/O engine", _plan("engine")),
        ("drivelab", _host("drivelab")), ("Scenario", _plan(_scenario)), ("Platform?", _plan("platform")),
    ),
    "Preparation": (
        ("Purge", _plan("purge")), ("Idle after the purge?", _plan("settle")),
        ("Preconditioning, workload-independent", _plan("fill")), ("Rest?", _plan("rest")),
        ("Preconditioning, workload-dependent", _rounds_before), ("Between the stages", _plan("seals")),
        ("State of the array?", _plan("array")), ("Class", _plan("class")), ("Write cache", _plan("write_cache")),
    ),
    "Test parameters": (
        ("Protocol", _plan(_protocol)), ("Data pattern", _plan("data_pattern")),
        ("Active range", _plan("active_range")), ("Threads", _plan("threads")), ("Queue depth", _plan("queue_depth")),
        ("Clock", _plan("clock")), ("Tracked", _tracked), ("Ends after?", _plan("ends")),
        ("Rounds and pauses?", _plan("rounds")), ("At the same time as?", _plan("together_with")),
        ("Trace?", _traces), ("Evidence?", _plan("evidence")), ("Power?", _power),
    ),
}  # fmt: skip
"""Facts by group, in their order; one whose name ends in `?` is left out if it is missing or none."""


def fact_groups(inputs: Inputs, key: Key) -> dict[str, list[Fact]]:
    """Return drive, platform, preparation, parameters and steady state of one test of one drive."""
    test = _Test(inputs, key)
    groups = {title: list(_facts(test, told)) for title, told in _GROUPS.items()}
    return {**groups, "Steady state": list(_steadiness(test))}


def _facts(test: _Test, declared: Sequence[tuple[str, Told]]) -> Iterator[Fact]:
    for name, told in declared:
        value = told(test)
        if not name.endswith("?") or value not in ("", "none", MISSING):
            yield fact(name.removesuffix("?"), value)


def _steadiness(test: _Test) -> Iterator[Fact]:
    """Yield the steady-state facts of loops and soaks; without such a rule, the verdicts on the values."""
    windows, soaks = test.rows("steady_state"), _soaks(test.inputs.frame_of("cells", test.key))
    if windows or soaks:
        missed = [row["variable"] for row in windows if not row["reached"]] + [name for name, span in soaks if not span]
        some = f": {names(list(dict.fromkeys(missed)))}" if len(missed) < len(windows) + len(soaks) else ""
        yield fact("Reached", f"NO{some}" if missed else "YES", "bad" if missed else "good")
        rounds = dict.fromkeys(f"{row['window_start']} to {row['window_end']} of {row['rounds']}" for row in windows)
        spans = [
            *([f"rounds {'; '.join(rounds)}"] if rounds else []),
            *dict.fromkeys(span for _, span in soaks if span),
        ]
        if spans:
            yield fact("Window", "; ".join(spans))
    else:
        yield fact("Reached", test.planned("no steady-state rule in this test"))
    if windows:
        drifts = [row["residual_drift_pct"] for row in windows]
        largest = max(drifts, key=lambda drift: -1.0 if is_missing(drift) else abs(float(drift)))
        yield fact("Variables", f"{sum(map(within, windows))} of {len(windows)} within the limits")
        yield fact("Largest residual drift", percent(largest, signed=True))
    else:
        yield from _verdicts(test.rows("summary"))


def _soaks(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Return (label, window) of each soak with a steady-state rule; the window is empty if not reached."""
    if not {"ended_by", "cell_label"} <= set(cells):
        return []
    soaks = []
    for (_, label), slices in cells[cells["ended_by"].notna()].groupby(["recording", "cell_label"], sort=False):
        window = slices.loc[slices["in_window"].astype(bool), "round"]
        span = f"slices {window.min()} to {window.max()} of {slices['round'].max()}"
        soaks.append((str(label), span if (slices["ended_by"] == "steady state").all() else ""))
    return soaks


def _verdicts(summary: list[Row]) -> Iterator[Fact]:
    """Yield the verdicts on the values; name the cells if the verdicts differ."""
    cells_by_verdict: dict[str, dict[str, None]] = {}
    for row in summary:
        if not is_missing(row.get("verdict")):
            cells_by_verdict.setdefault(str(row["verdict"]), {})[str(row["cell_label"])] = None
    if len(cells_by_verdict) < 2:
        yield fact("Values are", next(iter(cells_by_verdict), MISSING))
        return
    for verdict, cells in cells_by_verdict.items():
        more = [f"and {len(cells) - _MOST_CELLS} more"] if len(cells) > _MOST_CELLS else []
        yield fact(f"Values: {verdict}", "; ".join([*list(cells)[:_MOST_CELLS], *more]))
