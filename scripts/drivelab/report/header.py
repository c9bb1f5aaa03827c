"""The header block of a page, after the report pages of the PTS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drivelab.core.units import format_size
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
from drivelab.report.sections.steadiness import fact, given, nothing_if_planned, steadiness
from drivelab.report.view import Fact, FactGroup

if TYPE_CHECKING:
    import pandas as pd


def run_head(plans: list[Row], report_date: Any, number_: int, pages: int) -> tuple[Fact, ...]:
    """Return the dates and the number of the page."""
    starts = [plan["started"] for plan in plans if not is_missing(plan.get("started"))]
    ends = [plan["finished"] for plan in plans if not is_missing(plan.get("finished"))]
    first, last = moment(min(starts, default=None)), moment(max(ends, default=None))
    span = first if first == last else f"{first} to {last}"
    return (
        fact("Test run", span),
        fact("Report run", moment(report_date)),
        fact("Page", f"{number_} of {pages}"),
    )


def fact_groups(inputs: Inputs, key: Key) -> tuple[FactGroup, ...]:
    """Return drive, platform, preparation, parameters and steady state of one test of one drive."""
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
        *(() if is_missing(drive.get("manufacturer")) else (fact("Manufacturer", text(drive["manufacturer"])),)),
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
    if not is_missing(drive.get("composition")):
        facts.append(fact("Consists of", text(drive["composition"])))
    if drive.get("rotational") is True and drive.get("transport") != "virtio":  # the kernel assumes it of virtio disks
        zoned = "" if drive.get("zoned") in (None, "none") else f", {drive['zoned']} zones"
        facts.append(fact("Kind", f"hard disk{zoned}"))
    if not is_missing(drive.get("over_provisioning_pct")):
        facts.append(fact("Over-provisioning", each(_percent, drive["over_provisioning_pct"])))
    for label, column in (("File system", "file_system"), ("mkfs", "mkfs"), ("Mount options", "mount_options")):
        if not is_missing(drive.get(column)):
            facts.append(fact(label, each(text, drive[column])))
    return tuple(facts)


def _percent(value: Any) -> str:
    return quantity(value, "%")


def capacity(size_bytes: Any) -> str:
    """Format a capacity, followed by its exact bytes."""
    return MISSING if is_missing(size_bytes) else f"{size(size_bytes)} ({int(size_bytes):,} bytes)"


def _whole(value: Any) -> str:
    return str(int(value))


def memory(size_bytes: Any) -> str:
    """Format main memory with a binary prefix."""
    return quantity(None if is_missing(size_bytes) else float(size_bytes) / 2**30, "GiB")


def _platform(host: Row, plans: list[Row]) -> tuple[Fact, ...]:
    cores = "" if is_missing(host.get("cores")) else f" ({each(_whole, host['cores'])} cores)"
    return (
        fact("Host", text(host.get("host"))),
        fact("CPU", text(host.get("cpu")) + (cores if not is_missing(host.get("cpu")) else "")),
        *given("Clock", _clock(host)),
        *given("Package power limit", each(lambda watts: quantity(watts, "W"), host.get("package_power_limit_w"))),
        fact("Memory", each(memory, host.get("memory_bytes"))),
        *given("Memory modules", text(host.get("memory_modules"))),
        *given("Board", text(host.get("board"))),
        *given("System", text(host.get("system"))),
        *given("BIOS", text(host.get("bios"))),
        *given("Note", text(host.get("note"))),
        fact("Kernel", text(host.get("kernel"))),
        fact("Operating system", text(host.get("os"))),
        fact("fio", fio(host.get("fio"))),
        fact("I/O engine", _joined(plans, lambda plan: plan.get("engine"))),
        fact("drivelab", text(host.get("drivelab"))),
        fact("Scenario", _joined(plans, _scenario)),
        *given("Platform", _joined(plans, lambda plan: plan.get("platform"))),
    )


def _clock(host: Row) -> str:
    """Return the base and the maximum clock, as far as they are known."""
    clocks = {"base": host.get("base_clock_mhz"), "at most": host.get("max_clock_mhz")}
    known = {word: clock for word, clock in clocks.items() if not is_missing(clock)}
    return ", ".join(f"{word} {each(lambda mhz: quantity(mhz, 'MHz'), clock)}" for word, clock in known.items())


def fio(version: Any) -> str:
    """Return the version of fio; fio does not run on the virtual clock."""
    return "not used (virtual clock)" if version == "virtual clock" else text(version)


def _scenario(plan: Row) -> Any:
    condition = plan.get("condition")
    required = isinstance(condition, Mapping) and condition.get("scenario_required")
    name = plan.get("scenario")
    return f"{name}, checked before the first cell" if required and not is_missing(name) else name


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
        *given("State of the array", _joined(plans, lambda plan: array_state(plan.get("condition")))),
        fact("Class", _of_class(plans, "name", str)),
        fact("Write cache", _of_class(plans, "write_cache", str)),
    )


def purge(condition: Any) -> str | None:
    """Return the purge method and its verification; None without a purge."""
    if not isinstance(condition, Mapping) or is_missing(condition.get("purge")):
        return None
    line = condition["purge"]
    if not isinstance(line, Mapping):
        return str(line)
    verified = line.get("verified")
    if line.get("method") == "none":
        return f"{line.get('title') or 'none'} ({verified})"
    result = "" if is_missing(verified) else "; verified" if verified is True else f"; verified: {verified}"
    name = line.get("title") or line.get("method")
    return text(name) + ("; not verified" if verified is False else result)


def idle_after_purge(condition: Any) -> str:
    """Return the idle time between purge and fill."""
    settle_s = condition.get("settle_s") if isinstance(condition, Mapping) else None
    return "none" if is_missing(settle_s) else f"{settle_s:g} s"


def array_state(condition: Any) -> str | None:
    """Return the states of an array at the beginning and the end of the measurement; None without an array."""
    states = condition.get("array_states") if isinstance(condition, Mapping) else None
    return ", then ".join(dict.fromkeys(states)) if states else None


def _seals(plan: Row) -> str | None:
    """Return what the intact seals show; the notes list broken seals."""
    condition = plan.get("condition")
    seals = "; ".join(dict.fromkeys(condition.get("seals") or ())) if isinstance(condition, Mapping) else ""
    return seals or None


def _rest(condition: Any) -> str:
    """Return the idle time after the fill, and whether the cache was then free, or `none`."""
    rest = condition.get("rest") if isinstance(condition, Mapping) else None
    if not rest:
        return "none"
    words = f"cache flushed, then {duration(rest['rest_s'])} idle"
    if rest.get("as_empty") is None:
        return words
    times = f", {rest['rests']} times" if rest["rests"] > 1 else ""
    factor = number(rest["empty_us"] / rest["rested_us"])
    verdict = "cache free" if rest["as_empty"] else "cache perhaps not free"
    return f"{words}{times}: {verdict}, writes at {factor}{TIMES} the speed of the empty drive"


def fill(condition: Any) -> str | None:
    """Describe the workload-independent preconditioning, or `none` for a condition without a fill."""
    if not isinstance(condition, Mapping):
        return None
    passes = condition.get("fill")
    if isinstance(passes, list):
        return "; then ".join(map(_pass, passes)) or "none"
    return _pass(passes) if isinstance(passes, Mapping) else "none" if is_missing(passes) else str(passes)


def _pass(fields: Mapping[str, Any]) -> str:
    """Describe one pass of a fill."""
    block: Any = fields.get("block_size_bytes")
    span = fields.get("range_share")
    target = "the active range" if is_missing(span) else f"{share(span)} of the range"
    multiples = (("capacity_multiple", target), ("raw_capacity_multiple", "the raw capacity"))
    parts = [
        *(
            f"{number(fields[name])} {TIMES} {target},"
            for name, target in multiples
            if not is_missing(fields.get(name))
        ),
        text(fields.get("pattern")),
        "" if is_missing(block) else format_size(int(block)),
        "writes",
        "" if is_missing(fields.get("bytes")) else f"({size(fields['bytes'])})",
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
        *given("Power", _power(inputs.frame_of("cells", key), nothing_if_planned(plans, "not measured"))),
    )


def _per_thread(depth: Any) -> str:
    return f"{depth} per thread" if isinstance(depth, int) or str(depth)[-1:].isdigit() else str(depth)


def _lines(plans: list[Row], name: str) -> str:
    return "; ".join(dict.fromkeys(str(line) for plan in plans for line in plan.get(name) or ())) or MISSING


_METERS = {"meter": "by the power meter", "drive": "by the drive's sensor"}


def _power(cells: pd.DataFrame, nothing: str) -> str:
    """Return what measured the drive's power, or `nothing`: IOPS per watt needs it."""
    if cells.empty or "power_w" not in cells:
        return MISSING
    powered = cells[cells["power_w"].notna()]
    if powered.empty:
        return nothing
    sources = " and ".join(_METERS.get(str(source), "source unknown") for source in powered["power_source"].unique())
    return sources + ("; not in all cells" if len(powered) < len(cells) else "")


def _protocol(protocol: Any) -> Any:
    if not isinstance(protocol, Mapping):
        return protocol
    return ": ".join(str(protocol[k]) for k in ("name", "title") if not is_missing(protocol.get(k)))


def _of_class(plans: list[Row], name: str, show: Any) -> str:
    def value(plan: Row) -> str | None:
        fields = plan.get("class")
        setting = fields.get(name) if isinstance(fields, Mapping) else None
        return None if is_missing(setting) else show(setting)

    return _joined(plans, value)


def _joined(plans: list[Row], value: Any) -> str:
    """Join the distinct values of a test's runs."""
    return "; ".join(dict.fromkeys(text(value(plan)) for plan in plans)) or MISSING
