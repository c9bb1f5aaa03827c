"""The header block of a page, after the report pages of the PTS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
        Fact("Test run", first if first == last else f"{first} to {last}"),
        Fact("Report run", moment(report_date)),
        Fact("Page", f"{number} of {pages}"),
    )


def capacity(size_bytes: Any) -> str:
    """Format a capacity, followed by its exact bytes."""
    return MISSING if is_missing(size_bytes) else f"{size(size_bytes)} ({int(size_bytes):,} bytes)"


def _in(unit: str, divisor: float = 1) -> Callable[[Any], str]:
    return lambda value: quantity(None if is_missing(value) else float(value) / divisor, unit)


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "capacity_bytes": capacity,
    "logical_block_bytes": size,
    "over_provisioning_pct": _in("%"),
    "virtual": lambda value: text(value) if is_missing(value) else "yes" if value else "no",
    "base_clock_mhz": _in("MHz"),
    "max_clock_mhz": _in("MHz"),
    "package_power_limit_w": _in("W"),
    "memory_bytes": _in("GiB", 2**30),
    "cores": lambda value: text(value) if is_missing(value) else str(int(value)),
    "fio": lambda version: "not used (virtual clock)" if version == "virtual clock" else text(version),
    "queue_depth": lambda depth: f"{text(depth)} per thread" if str(depth)[-1:].isdigit() else text(depth),
}
"""Formats of columns of the tables `drives` and `hosts`, and of the facts of a recording; others are texts."""


def shown(row: Row, column: str) -> str:
    """Return the value of a column, or "not recorded"; of a property that changed, each value."""
    return each(_FORMATS.get(column, text), row.get(column))


Told = str | Callable[["_Test"], str]
"""A fact: `drive.COLUMN`, `host.COLUMN`, `plan.COLUMN` (of each run), or a function of the test."""


@dataclass(frozen=True)
class _Test:
    """One test of one drive."""

    inputs: Inputs
    key: Key

    @property
    def drive(self) -> Row:
        return self.inputs.drive(self.key[0])

    @property
    def host(self) -> Row:
        return self.inputs.host(self.inputs.plans_of(self.key))

    def rows(self, table: str) -> list[Row]:
        return self.inputs.of_key(table, self.key)

    def told(self, fact: Told) -> str:
        """Return the value of a fact; of the runs, the distinct values."""
        if callable(fact):
            return fact(self)
        source, _, column = fact.partition(".")
        if source == "plan":
            show = _OF_PLANS.get(column, partial(shown, column=column))
            return "; ".join(dict.fromkeys(map(show, self.rows("plans")))) or MISSING
        return shown(getattr(self, source), column)

    def planned(self, nothing: str) -> str:
        """Return `nothing` for a plan (what it omits was not done), else "not recorded" (an import)."""
        return nothing if any("purge" in plan for plan in self.rows("plans")) else MISSING


def _scenario(plan: Row) -> str:
    scenario = shown(plan, "scenario")
    checked = plan.get("scenario_required") and scenario != MISSING
    return f"{scenario}, checked before the first cell" if checked else scenario


def _protocol(plan: Row) -> str:
    parts = map((plan.get("protocol") or {}).get, ("name", "title"))
    return ": ".join(str(part) for part in parts if not is_missing(part)) or MISSING


_OF_PLANS: Mapping[str, Callable[[Row], str]] = {"scenario": _scenario, "protocol": _protocol}
"""What a plan tells in more than a column."""


def _kind(test: _Test) -> str:
    """Return the kind of a hard disk; the kernel assumes one of virtio disks."""
    zones = test.drive.get("zoned")
    if test.drive.get("rotational") is not True or test.drive.get("transport") == "virtio":
        return ""
    return "hard disk" if zones in (None, "none") else f"hard disk, {zones} zones"


def _cpu(test: _Test) -> str:
    cpu, cores = test.told("host.cpu"), test.told("host.cores")
    return cpu if MISSING in (cpu, cores) else f"{cpu} ({cores} cores)"


def _clocks(test: _Test) -> str:
    """Return the base and the maximum clock, as far as they are known."""
    clocks = {"base": test.told("host.base_clock_mhz"), "at most": test.told("host.max_clock_mhz")}
    return ", ".join(f"{word} {clock}" for word, clock in clocks.items() if clock != MISSING)


def _tracked(test: _Test) -> str:
    windows = test.rows("steady_state")
    return "; ".join(dict.fromkeys(f"{row['variable']}, {metric_name(row['metric'])}" for row in windows)) or (
        test.planned("none")
    )


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
        ("Name", lambda test: test.key[0]), ("Model", "drive.model"), ("Manufacturer?", "drive.manufacturer"),
        ("Serial", "drive.serial"), ("Firmware", "drive.firmware"), ("Capacity", "drive.capacity_bytes"),
        ("Logical block", "drive.logical_block_bytes"), ("Transport", lambda test: ", ".join(
            str(value) for value in map(test.drive.get, ("transport", "link")) if not is_missing(value)) or MISSING),
        ("Fastest link?", "drive.link_max"), ("LBA format?", "drive.lba_format"), ("Device", "drive.device"),
        ("Consists of?", "drive.composition"), ("Kind?", _kind),
        ("Over-provisioning?", "drive.over_provisioning_pct"), ("File system?", "drive.file_system"),
        ("mkfs?", "drive.mkfs"), ("Mount options?", "drive.mount_options"),
    ),
    "Platform": (
        ("Host", "host.host"), ("CPU", _cpu), ("Clock?", _clocks),
        ("Package power limit?", "host.package_power_limit_w"), ("Memory", "host.memory_bytes"),
        ("Memory modules?", "host.memory_modules"), ("Board?", "host.board"), ("System?", "host.system"),
        ("BIOS?", "host.bios"), ("Note?", "host.note"), ("Kernel", "host.kernel"),
        ("Operating system", "host.os"), ("fio", "host.fio"), ("I/O engine", "plan.engine"),
        ("drivelab", "host.drivelab"), ("Scenario", "plan.scenario"), ("Platform?", "plan.platform"),
    ),
    "Preparation": (
        ("Purge", "plan.purge"), ("Idle after the purge?", "plan.settle"),
        ("Preconditioning, workload-independent", "plan.fill"), ("Rest?", "plan.rest"),
        ("Preconditioning, workload-dependent", lambda test: "the test's own rounds before the window"
         if test.rows("steady_state") else test.planned("none")), ("Between the stages", "plan.seals"),
        ("State of the array?", "plan.array"), ("Class", "plan.class"), ("Write cache", "plan.write_cache"),
    ),
    "Test parameters": (
        ("Protocol", "plan.protocol"), ("Data pattern", "plan.data_pattern"),
        ("Active range", "plan.active_range"), ("Threads", "plan.threads"), ("Queue depth", "plan.queue_depth"),
        ("Clock", "plan.clock"), ("Tracked", _tracked), ("Ends after?", "plan.ends"),
        ("Rounds and pauses?", "plan.rounds"), ("At the same time as?", "plan.together_with"),
        ("Trace?", lambda test: "; ".join(dict.fromkeys(str(row["trace"]) for row in test.rows("replays")))),
        ("Evidence?", "plan.evidence"), ("Power?", _power),
    ),
}  # fmt: skip
"""Facts by group, in their order; one whose name ends in `?` is left out if it is missing or none."""


def fact_groups(inputs: Inputs, key: Key) -> dict[str, list[Fact]]:
    """Return drive, platform, preparation, parameters and steady state of one test of one drive."""
    test = _Test(inputs, key)
    groups: dict[str, list[Fact]] = {}
    for title, declared in _GROUPS.items():
        told = [(name, test.told(of)) for name, of in declared]
        groups[title] = [Fact(name.removesuffix("?"), value) for name, value in told
                         if not name.endswith("?") or value not in ("", "none", MISSING)]  # fmt: skip
    return {**groups, "Steady state": list(_steadiness(test))}


def _steadiness(test: _Test) -> Iterator[Fact]:
    """Yield the steady-state facts of loops and soaks; without such a rule, the verdicts on the values."""
    windows, soaks = test.rows("steady_state"), _soaks(test.inputs.frame_of("cells", test.key))
    if windows or soaks:
        missed = [row["variable"] for row in windows if not row["reached"]] + [name for name, span in soaks if not span]
        some = f": {names(list(dict.fromkeys(missed)))}" if len(missed) < len(windows) + len(soaks) else ""
        yield Fact("Reached", f"NO{some}" if missed else "YES", "bad" if missed else "good")
        rounds = dict.fromkeys(f"{row['window_start']} to {row['window_end']} of {row['rounds']}" for row in windows)
        spans = [
            *([f"rounds {'; '.join(rounds)}"] if rounds else []),
            *dict.fromkeys(span for _, span in soaks if span),
        ]
        if spans:
            yield Fact("Window", "; ".join(spans))
    else:
        yield Fact("Reached", test.planned("no steady-state rule in this test"))
    if windows:
        drifts = [row["residual_drift_pct"] for row in windows]
        largest = max(drifts, key=lambda drift: -1.0 if is_missing(drift) else abs(float(drift)))
        yield Fact("Variables", f"{sum(map(within, windows))} of {len(windows)} within the limits")
        yield Fact("Largest residual drift", percent(largest, signed=True))
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
        yield Fact("Values are", next(iter(cells_by_verdict), MISSING))
        return
    for verdict, cells in cells_by_verdict.items():
        more = [f"and {len(cells) - _MOST_CELLS} more"] if len(cells) > _MOST_CELLS else []
        yield Fact(f"Values: {verdict}", "; ".join([*list(cells)[:_MOST_CELLS], *more]))
