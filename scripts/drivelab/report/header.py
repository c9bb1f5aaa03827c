"""The header block of a page, after the report pages of the PTS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drivelab.report.facts import fact, given, nothing_if_planned
from drivelab.report.inputs import Inputs, Key, Row, each
from drivelab.report.numbers import (
    MISSING,
    TIMES,
    duration,
    is_missing,
    metric_name,
    moment,
    number,
    quantity,
    share,
    size,
    text,
)
from drivelab.report.steadiness import steadiness
from drivelab.report.view import Fact, FactGroup
from drivelab.units import format_size

if TYPE_CHECKING:
    import pandas as pd


def run_head(plans: list[Row], report_date: Any, number_: int, pages: int) -> tuple[Fact, ...]:
    """Dates and the page's number."""
    began = [plan["started"] for plan in plans if not is_missing(plan.get("started"))]
    ended = [plan["finished"] for plan in plans if not is_missing(plan.get("finished"))]
    first, last = moment(min(began, default=None)), moment(max(ended, default=None))
    span = first if first == last else f"{first} to {last}"
    return (
        fact("Test run", span),
        fact("Report run", moment(report_date)),
        fact("Page", f"{number_} of {pages}"),
    )


def fact_groups(inputs: Inputs, key: Key) -> tuple[FactGroup, ...]:
    """Drive, platform, preparation, test parameters and steady state of one test of one drive."""
    plans = inputs.plans_of(key)
    return (
        FactGroup("Drive under test", _drive(inputs.drive(key[0]), key[0])),
        FactGroup("Platform", _platform(inputs.host(plans), plans)),
        FactGroup("Preparation", _preparation(plans, bool(inputs.of_key("steady_state", key)))),
        FactGroup("Test parameters", _parameters(inputs, key, plans)),
        FactGroup("Steady state", steadiness(inputs, key)),
    )


def _drive(drive: Row, name: str) -> tuple[Fact, ...]:
    facts = [
        fact("Name", name),
        fact("Model", text(drive.get("model"))),
        fact("Serial", text(drive.get("serial"))),
        fact("Firmware", text(drive.get("firmware"))),
        fact("Capacity", each(capacity, drive.get("capacity_bytes"))),
        fact("Logical block", each(size, drive.get("logical_block_bytes"))),
        fact(
            "Transport",
            ", ".join(str(drive[k]) for k in ("transport", "link") if not is_missing(drive.get(k))) or MISSING,
        ),
        fact("Device", text(drive.get("device"))),
    ]
    if not is_missing(drive.get("over_provisioning_pct")):
        facts.append(fact("Over-provisioning", each(_percent, drive["over_provisioning_pct"])))
    return tuple(facts)


def _percent(value: Any) -> str:
    return quantity(value, "%")


def capacity(size_bytes: Any) -> str:
    """Capacity for people, and exactly."""
    return MISSING if is_missing(size_bytes) else f"{size(size_bytes)} ({int(size_bytes):,} bytes)"


def _whole(value: Any) -> str:
    return str(int(value))


def memory(size_bytes: Any) -> str:
    """Main memory, which is counted in powers of two."""
    return quantity(None if is_missing(size_bytes) else float(size_bytes) / 2**30, "GiB")


def _platform(host: Row, plans: list[Row]) -> tuple[Fact, ...]:
    cores = "" if is_missing(host.get("cores")) else f" ({each(_whole, host['cores'])} cores)"
    return (
        fact("Host", text(host.get("host"))),
        fact("CPU", text(host.get("cpu")) + (cores if not is_missing(host.get("cpu")) else "")),
        fact("Memory", each(memory, host.get("memory_bytes"))),
        fact("Kernel", text(host.get("kernel"))),
        fact("Operating system", text(host.get("os"))),
        fact("fio", fio(host.get("fio"))),
        fact("I/O engine", _joined(plans, lambda plan: plan.get("engine"))),
        fact("drivelab", text(host.get("drivelab"))),
        fact("Scenario", _joined(plans, _scenario)),
        *given("Platform", _joined(plans, lambda plan: plan.get("platform"))),
    )


def fio(version: Any) -> str:
    """Its version; on the virtual clock fio does not run."""
    return "not used: the virtual clock" if version == "virtual clock" else text(version)


def _scenario(plan: Row) -> Any:
    condition = plan.get("condition")
    required = isinstance(condition, Mapping) and condition.get("scenario_required")
    name = plan.get("scenario")
    return f"{name}, checked before the first cell" if required and not is_missing(name) else name


_BY_KERNEL = ", by the kernel's counters"


def _preparation(plans: list[Row], loops: bool) -> tuple[Fact, ...]:
    return (
        fact("Purge", _joined(plans, lambda plan: purge(plan.get("condition")))),
        *given("Idle after the purge", _joined(plans, lambda plan: idle_after_purge(plan.get("condition"))), "none"),
        fact("Preconditioning, workload-independent", _joined(plans, lambda plan: fill(plan.get("condition")))),
        *given("Rest", _joined(plans, lambda plan: _rest(plan.get("condition"))), "none"),
        fact(
            "Preconditioning, workload-dependent",
            "the test's own rounds before the window" if loops else nothing_if_planned(plans, "none"),
        ),
        fact("Between the stages", _joined(plans, _seals)),
        fact("Class", _of_class(plans, "name", str)),
        fact("Write cache", _of_class(plans, "write_cache", str)),
    )


def purge(condition: Any) -> str | None:
    """How the drive was purged, and how that was verified."""
    if not isinstance(condition, Mapping) or is_missing(condition.get("purge")):
        return None
    done = condition["purge"]
    if not isinstance(done, Mapping):
        return str(done)
    verified = done.get("verified")
    told = "" if is_missing(verified) else "; verified" if verified is True else f"; verified: {verified}"
    name = done.get("title") or done.get("method")
    return text(name) + ("; not verified" if verified is False else told)


def idle_after_purge(condition: Any) -> str:
    """How long the drive was left alone before it was filled."""
    settle_s = condition.get("settle_s") if isinstance(condition, Mapping) else None
    return "none" if is_missing(settle_s) else f"{settle_s:g} s"


def _seals(plan: Row) -> str | None:
    """What the seals told of the drive between conditioning and measuring; a broken one is among the notes.

    The model of the virtual clock is no block device: no kernel counts what it does.
    """
    condition = plan.get("condition")
    found = dict.fromkeys(condition.get("seals") or ()) if isinstance(condition, Mapping) else {}
    told = "; ".join(found)
    return (told.replace(_BY_KERNEL, "") if plan.get("clock") == "virtual" else told) or None


def _rest(condition: Any) -> str:
    """Idle time after the fill, where the protocol has some."""
    rest_s = condition.get("rest_s") if isinstance(condition, Mapping) else None
    return "none" if is_missing(rest_s) else f"cache flushed, then {duration(rest_s)} idle"


def fill(condition: Any) -> str | None:
    """Workload-independent preconditioning in words; a condition without a fill has none."""
    if not isinstance(condition, Mapping):
        return None
    done = condition.get("fill")
    if isinstance(done, list):
        return "; then ".join(_pass(one) for one in done) or "none"
    return _pass(done) if isinstance(done, Mapping) else "none" if is_missing(done) else str(done)


def _pass(done: Mapping[str, Any]) -> str:
    """One pass of a fill."""
    block: Any = done.get("block_size_bytes")
    whole = "the active range" if is_missing(done.get("range_share")) else f"{share(done['range_share'])} of the range"
    multiples = (("capacity_multiple", whole), ("raw_capacity_multiple", "the raw capacity"))
    parts = [
        *(f"{number(done[name])} {TIMES} {words}," for name, words in multiples if not is_missing(done.get(name))),
        text(done.get("pattern")),
        "" if is_missing(block) else format_size(int(block)),
        "writes",
        "" if is_missing(done.get("bytes")) else f"({size(done['bytes'])})",
    ]
    return " ".join(part for part in parts if part)


def _parameters(inputs: Inputs, key: Key, plans: list[Row]) -> tuple[Fact, ...]:
    windows = inputs.of_key("steady_state", key)
    tracked = dict.fromkeys(f"{row['variable']}, {metric_name(row['metric'])}" for row in windows)
    traces = dict.fromkeys(str(row["trace"]) for row in inputs.of_key("replays", key))
    return (
        fact("Protocol", _joined(plans, lambda plan: _protocol(plan.get("protocol")))),
        fact("Data pattern", _joined(plans, lambda plan: plan.get("data_pattern"))),
        fact("Active range", _of_class(plans, "active_range", share)),
        fact("Threads", _of_class(plans, "threads", str)),
        fact("Queue depth", _of_class(plans, "queue_depth", _per_thread)),
        fact("Clock", _joined(plans, lambda plan: plan.get("clock"))),
        fact("Tracked", "; ".join(tracked) or nothing_if_planned(plans, "none")),
        *given("Ends after", _lines(plans, "ends")),
        *given("Rounds and pauses", _lines(plans, "rounds")),
        *given("At the same time as", _lines(plans, "together_with")),
        *given("Trace", "; ".join(traces)),
        *given("Evidence", _joined(plans, lambda plan: plan.get("evidence"))),
        *given("Power", _power(inputs.frame_of("cells", key), nothing_if_planned(plans, "no power was measured"))),
    )


def _per_thread(depth: Any) -> str:
    return f"{depth} per thread" if isinstance(depth, int) or str(depth)[-1:].isdigit() else str(depth)


def _lines(plans: list[Row], name: str) -> str:
    return "; ".join(dict.fromkeys(str(one) for plan in plans for one in plan.get(name) or ())) or MISSING


_METERS = {"meter": "by the power meter", "drive": "by the drive's own sensor"}


def _power(cells: pd.DataFrame, nothing: str) -> str:
    """What measured the drive's power; that nothing did is said, because IOPS per watt need it."""
    if cells.empty or "power_w" not in cells:
        return MISSING
    powered = cells[cells["power_w"].notna()]
    if powered.empty:
        return nothing
    told = " and ".join(_METERS.get(str(one), "source unknown") for one in powered["power_source"].unique())
    return told + ("; not in all cells" if len(powered) < len(cells) else "")


def _protocol(protocol: Any) -> Any:
    if not isinstance(protocol, Mapping):
        return protocol
    return ": ".join(str(protocol[k]) for k in ("name", "title") if not is_missing(protocol.get(k)))


def _of_class(plans: list[Row], name: str, show: Any) -> str:
    def value(plan: Row) -> str | None:
        found = plan.get("class")
        given = found.get(name) if isinstance(found, Mapping) else None
        return None if is_missing(given) else show(given)

    return _joined(plans, value)


def _joined(plans: list[Row], value: Any) -> str:
    """What the runs of a test have in common; several values if they differ."""
    found = dict.fromkeys(text(value(plan)) for plan in plans)
    return "; ".join(found) or MISSING
