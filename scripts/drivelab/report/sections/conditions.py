"""Tables of what differs beside the results: between compared drives, their hosts and settings; and the traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.core.grouping import grouped
from drivelab.criteria.inert import CANNOT_ACT, reason
from drivelab.report.document import Cell, Table
from drivelab.report.header import shown
from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import MISSING, is_missing, text
from drivelab.report.table import Field, cell, durations, fields, of_each, sizes, table, words

_MANY_ROWS = 30
_IDENTITY = {"Serial", "Device", "Host"}
"""Facts that identify drives and hosts; they always differ."""
_DRIVE = {
    "Model": "model",
    "Serial": "serial",
    "Firmware": "firmware",
    "Capacity": "capacity_bytes",
    "Logical block": "logical_block_bytes",
    "Transport": "transport",
    "LBA format": "lba_format",
    "Link": "link",
    "Fastest link": "link_max",
    "Over-provisioning": "over_provisioning_pct",
    "Virtual": "virtual",
    "Device": "device",
}
_HOST = {
    "Host": "host",
    "CPU": "cpu",
    "Cores": "cores",
    "Memory": "memory_bytes",
    "Kernel": "kernel",
    "Operating system": "os",
    "fio": "fio",
    "drivelab": "drivelab",
    "Python": "python",
}
_SETTINGS = {
    "class": "class",
    "threads": "threads",
    "queue depth": "queue_depth",
    "active range": "active_range",
    "write cache": "write_cache",
    "purge": "purge",
    "idle after the purge": "settle",
    "preconditioning": "fill",
    "state of the array": "array",
    "data pattern": "data_pattern",
    "engine": "engine",
    "clock": "clock",
}
"""Columns of the facts of a recording."""


def differences_tables(inputs: Inputs) -> Iterator[Table]:
    """Yield the differences of the compared pairs, unintended ones first, and the conditions not recorded."""
    rows = inputs.tables["differences"]
    by_knowledge = grouped(rows, lambda row: unknown(row["basis_value"], row["comparison_value"]))
    known, unrecorded = by_knowledge.get(False, []), by_knowledge.get(True, [])
    measurements = len({row["measurement"] for row in rows})

    def columns(condition: str, intended: str) -> tuple[Field, ...]:
        return (
            words(condition, "facet", "comparison"), words(intended, _intended),
            words(f"{rows[0]['basis']} (basis)", "basis_value"), words("Compared drive", "comparison_value"),
            words("In", lambda row: "every test" if len(row["tests"]) == measurements else ", ".join(row["tests"])),
        )  # fmt: skip

    if known:
        yield table(
            "ceteris-paribus",
            "Differences between the compared drives",
            columns("Difference", "Intended?"),
            _by_pair(known),
            "An unintended difference may explain a delta. The verdicts list it too.",
            collapsed=len(known) > _MANY_ROWS,
        )
    if unrecorded:
        yield table(
            "conditions-not-recorded",
            not_recorded_words(len({row["facet"] for row in unrecorded})),
            columns("Condition", "Meant to differ?"),
            _by_pair(unrecorded),
            "Nobody knows whether these conditions are equal.",
            collapsed=True,
        )


def _by_pair(differences: Sequence[Row]) -> list[Row]:
    """Return a row for each condition of a pair with its `tests`, unintended ones first."""
    names = ("comparison", "facet", "basis_value", "comparison_value", "intended", "kind")
    groups = grouped(differences, lambda row: tuple(str(row[name]) for name in names))
    rows = [(alike[0], dict.fromkeys(row["measurement"] for row in alike)) for alike in groups.values()]
    return sorted(({**row, "tests": list(tests)} for row, tests in rows), key=lambda row: bool(row["intended"]))


def _intended(row: Row) -> Cell:
    if row["kind"] == CANNOT_ACT:
        return Cell(CANNOT_ACT, reason(str(row["facet"])))
    if row["intended"]:
        return Cell("yes")
    return Cell("no" if unknown(row["basis_value"], row["comparison_value"]) else "NO", tone="mark")


def conditions_tables(inputs: Inputs) -> Iterator[Table]:
    """Yield what differs between drives, their settings, hosts, settings of hosts, and traces."""
    drives = {name: inputs.drive(name) for name in inputs.drives}
    yield from _attributes("differences-drives", "Differences between drives", drives, _DRIVE)
    if len(inputs.drives) > 1:
        yield _settings(inputs)
    hosts = {}
    for place, row in enumerate(inputs.tables["hosts"], start=1):
        hosts[f"{text(row.get('host'))}{f' ({place})' if place > 1 else ''}"] = row
    caption = "Differences between hosts" if len(hosts) > 1 else "Host (same for all drives)"
    yield from _attributes("differences-hosts", caption, hosts, _HOST)
    yield from host_settings(inputs.plans)
    if inputs.tables["traces"]:
        yield _traces(inputs)


def _attributes(id_: str, caption: str, owners: Mapping[str, Row], names: Mapping[str, str]) -> Iterator[Table]:
    """Yield the attributes of drives or hosts that differ; a note has those that are the same or not recorded."""
    if not owners:
        return
    values = {name: {owner: shown(row, names[name]) for owner, row in owners.items()} for name in names}
    distinct = {name: set(of_owners.values()) for name, of_owners in values.items()}
    missing, several = [name for name in names if distinct[name] == {MISSING}], len(owners) > 1
    same = [name for name in names if several and len(distinct[name]) == 1 and name not in missing]
    notes = ["An unintended difference may explain a delta."] if several else []
    notes += [f"The same: {'; '.join(f'{name} {min(distinct[name])}' for name in same)}."] if same else []
    notes += [f"Not recorded: {', '.join(missing)}."] if missing else []
    mark = words("Differs?", lambda name: Cell("identity") if name in _IDENTITY else Cell("differs", tone="mark"))
    yield table(
        id_,
        caption,
        (
            words("", str),
            *of_each(owners, lambda owner, name: values[name][owner], show=text),
            *([mark] if several else []),
        ),
        [name for name in values if name not in (*same, *missing)],
        " ".join(notes),
    )


def _settings(inputs: Inputs) -> Table:
    """Return the settings of each measurement that differ between drives."""
    rows = []
    for measurement in inputs.measurements:
        plans = {drive: inputs.plans_of((drive, measurement)) for drive in inputs.drives}
        facets = {drive: _facets(of_drive[0]) for drive, of_drive in plans.items() if of_drive}
        for name in next(iter(facets.values()), {}):
            if len({of_drive[name] for of_drive in facets.values()}) > 1:
                values = {drive: of_drive[name] for drive, of_drive in facets.items()}
                rows.append({"Setting": f"{measurement}: {name}", **values})
    return table(
        "differences-settings",
        "Settings that differ between the drives",
        (
            words("Setting", "Setting"),
            *of_each(inputs.drives, lambda drive, row: Cell(row.get(drive, "not measured")), show=text),
        ),
        rows or [{"Setting": "All settings of all measurements", **dict.fromkeys(inputs.drives, "same")}],
    )


def _facets(plan: Row) -> dict[str, str]:
    return {
        "protocol": text((plan.get("protocol") or {}).get("title")),
        **{name: text(plan.get(column)) for name, column in _SETTINGS.items()},
        "alterations of the protocol": "; ".join(plan.get("reduced_why") or ()) or "none",
    }


def host_settings(plans: Sequence[Row]) -> Iterator[Table]:
    """Yield a row for each setting and state; nothing if all recordings used the virtual clock."""
    checked = [plan for plan in plans if plan.get("settings") is not None]
    if not checked:
        return
    found = [
        {**row, "scope": "host" if row["scope"] == "host" else f"drive {plan['drive']}", "recording": plan["recording"]}
        for plan in checked
        for row in plan["settings"]
    ]
    names = ("name", "scope", "state", "wanted", "effect")
    rows = []
    for alike in grouped(found, lambda row: tuple(row[name] for name in names)).values():
        count = len({row["recording"] for row in alike})
        rows.append({**alike[0], "recordings": "all" if count == len(checked) else f"{count} of {len(checked)}"})
    scenarios = ", ".join(dict.fromkeys(str(plan.get("scenario")) for plan in checked))
    nothing = {**dict.fromkeys(names, ""), "name": "All settings", "state": "as wanted", "recordings": "all"}
    yield table(
        "host-settings",
        f"Host settings that differ from the scenario ({scenarios})",
        (
            words("Setting", "name", "scope"),
            words("State", "state", tone=lambda _: "mark" if rows else ""),
            *of_each(("Wanted", "Effect", "Recordings"), lambda title, row: Cell(row[title.lower()]), show=text),
        ),
        rows or [nothing],
        "Run 'drivelab doctor' to see all settings and how to change them. With 'host_settings: apply', the study "
        "changes what can be changed while it runs.",
    )  # fmt: skip


def _traces(inputs: Inputs) -> Table:
    why = inputs.study.get("cannot_capture")
    return table(
        "traces-table",
        "Traces",
        (
            words("Trace", "trace"), words("Application", "application"), words("Source", "source"),
            *fields(requests="Requests", reads="Reads", writes="Writes", flushes="Flushes", discards="Discards"),
            *sizes(read_bytes="Read", write_bytes="Written", footprint_bytes="Footprint"),
            *durations(duration_s="Duration"),
            Field("Lost", lambda row: cell(row["lost"], tone="bad" if row["lossy"] else "")),
        ),
        inputs.tables["traces"],
        "" if is_missing(why) else f"This host cannot capture traces, so shipped traces replace them: {why}.",
    )  # fmt: skip
