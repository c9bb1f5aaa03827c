"""The table `conditions` of a study: the facets of each recording, from the recording's own files.

A facet is a property, other than a result, in which two recordings may differ; `drivelab.analysis.deltas.differences`
compares them. A missing facet is UNKNOWN, never guessed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.collect.inventory import UNKNOWN, read_facts, settings
from drivelab.core.units import format_size
from drivelab.criteria.inert import DIRECT, FILE_SYSTEM, IO_PATH, PAGE_CACHE
from drivelab.fio.consistency import sections_of_job
from drivelab.plan.cell import submission
from drivelab.plan.plan import Plan, canonical
from drivelab.plan.subject_kinds import DRIVE
from drivelab.recording.checksums import checksummed
from drivelab.recording.writer import MANIFEST, read_journal
from drivelab.tables.schemas import SCHEMAS

TEMPERATURE = "temperature"
_FULL_LENGTH = "no: full length"
_STEP_C = 5
"""Bin width of temperatures: one degree more or less is not a difference."""
_DRIVE = {
    "model": "model",
    "serial": "serial",
    "firmware": "firmware",
    "LBA format": "lba_format",
    "transport": "transport",
    "link": "link",
    "controller": "controller",
}
_HOST = {"host": "host", "CPU": "cpu", "cores": "cores", "kernel": "kernel", "operating system": "os", "fio": "fio",
         "drivelab": "drivelab"}  # fmt: skip
_FILE_SYSTEM = {"file system": "file_system", "mkfs": "mkfs", "mount options": "mount_options"}
_NO_FACETS = ("serial", "enabled", "capacity", "over_provisioning", "logical_block")
"""Keys of a virtual drive model that its identity already contains."""
_EFFECTS = ("throttle", "housekeeping", "disturb", "variation")
"""Optional keys of a model; a model without such an effect omits them."""

Facets = Iterator[tuple[str, str, Any]]
"""Facet, kind, value; None means not recorded."""


def conditions(
    recordings: Sequence[Path], altered: Mapping[str, Sequence[str]], cells: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return table `conditions` of recordings.

    `altered` describes, by recording name, how its protocol was shortened or changed; the plan does not contain this.
    `cells` has recording, cold, temperature_min_c and temperature_max_c of the table `cells`; without it, temperatures
    are unknown.
    """
    ranges = _temperatures(cells) if cells is not None else {}
    rows = []
    for path in recordings:
        plan = Plan.read(path / "plan.json")
        name = plan.recording
        key = {"recording": name, "drive": plan.drive, "measurement": plan.measurement}
        temperature = (TEMPERATURE, "time", ranges.get(name))
        for facet, kind, value in (*_facets(path, plan, altered.get(name, ())), temperature):
            rows.append({**key, "facet": facet, "kind": kind, "value": UNKNOWN if value is None else str(value)})
    return pd.DataFrame(rows, columns=SCHEMAS["conditions"].names)


def start_times(recordings: Iterable[Path]) -> dict[str, str]:
    """Return the start of each recording, ISO 8601, by the recording's name."""
    return {"/".join(path.parts[-3:]): str(read_facts(path / MANIFEST)["started"]) for path in recordings}


def _facets(path: Path, plan: Plan, altered: Sequence[str]) -> Facets:
    identity, host = read_facts(path / "identity.json"), read_facts(path / "host.json")
    journal = list(read_journal(path))
    yield from _of_drive(identity, plan)
    for facet, name in _HOST.items():
        yield facet, "host", host.get(name)
    yield "CPUs of threads", "host", _cpus(path, journal)
    memory = host.get("memory_bytes")
    yield "memory", "host", None if memory is None else f"{memory / 2**30:.1f} GiB"
    yield from _of_hardware(host)
    yield from _of_file_system(identity)
    yield from _of_protocol(path, plan, identity, host, journal, altered)
    yield from _settings(path)
    yield "evidence", "time", "checksummed" if checksummed(path) else "not checksummed"
    yield "date", "time", journal[0]["at"][:10] if journal else None


def _of_drive(identity: Mapping[str, Any], plan: Plan) -> Facets:
    for facet, name in _DRIVE.items():
        yield facet, "drive", identity.get(name)
    yield "kind", "drive", identity.get("kind", DRIVE.name)
    yield "composition", "drive", _composition(identity, plan)
    yield "capacity", "drive", _bytes(identity.get("capacity_bytes"))
    yield "logical block", "drive", _bytes(identity.get("logical_block_bytes"))
    share = identity.get("over_provisioning_pct")
    yield "over-provisioning", "drive", None if share is None else f"{share:g} %"
    model = plan.subject["drive"].get("virtual") or {}
    for name, value in (dict.fromkeys(_EFFECTS, "none") | model).items() if model else ():
        if name not in _NO_FACETS:
            yield f"virtual drive: {_readable(name)}", "drive", value if isinstance(value, str) else canonical(value)


def _composition(identity: Mapping[str, Any], plan: Plan) -> str:
    """Return the parts of the subject, without the file system of its platform, which has its own facets."""
    text = str(identity.get("composition") or "")
    if plan.file_system is not None:
        text = "" if plan.kind == DRIVE.name else text.partition("; ")[2]
    return text or "whole drive"


def _readable(name: str) -> str:
    """Return the readable name of a key of a virtual drive model, as `read, µs`."""
    return f"{name.removesuffix('_us').replace('_', ' ')}{', µs' if name.endswith('_us') else ''}"


def _of_hardware(host: Mapping[str, Any]) -> Facets:
    """Yield what the host's board and firmware told; nothing for what they did not."""
    facets = {"board": "board", "system": "system", "BIOS": "bios", "memory modules": "memory_modules",
              "host note": "note"}  # fmt: skip
    numbers = {"base clock": ("base_clock_mhz", "MHz"), "maximum clock": ("max_clock_mhz", "MHz"),
               "package power limit": ("package_power_limit_w", "W")}  # fmt: skip
    for facet, name in facets.items():
        if host.get(name) is not None:
            yield facet, "host", host[name]
    for facet, (name, unit) in numbers.items():
        if host.get(name) is not None:
            yield facet, "host", f"{host[name]:g} {unit}"


def _of_file_system(identity: Mapping[str, Any]) -> Facets:
    """Yield how the measured file system was made; nothing for a drive."""
    for facet, name in _FILE_SYSTEM.items():
        if name in identity:
            yield facet, "file system", identity[name]
    if "file_bytes" in identity:
        yield "file", "file system", _bytes(identity["file_bytes"])


def _of_protocol(
    path: Path,
    plan: Plan,
    identity: Mapping[str, Any],
    host: Mapping[str, Any],
    journal: Sequence[Mapping[str, Any]],
    altered: Sequence[str],
) -> Facets:
    subject, condition = plan.subject, plan.subject["condition"]
    array_states = (str(line["state"]) for line in journal if line["event"] == "array")
    facets = {
        "protocol": subject["protocol"],
        "steps": hashlib.sha256(canonical([condition, subject["measure"]]).encode()).hexdigest()[:8],
        "reduced": "; ".join(altered) or _FULL_LENGTH,
        "class": subject["class"]["name"],
        "active range": f"{100 * subject['class']['active_range']:g} %",
        "write cache": identity.get("drive_write_cache") or identity.get("write_cache"),
        "purge": _purge(journal, subject["condition"]["purge"]),
        "fill": "; ".join(_fills(condition)) or "none",
        "rest": _rest(journal),
        "data pattern": ", ".join(sorted(set(_data_patterns(subject["measure"])))) or "random",
        "I/O submission": " | ".join(sorted(_submissions(subject["measure"]))) or "fio's defaults",
        "traces": ", ".join(_traces(subject.get("traces", ()), journal)) or "none",
        "engine": ", ".join(dict.fromkeys(_engines(journal))) or host.get("engine"),
        IO_PATH: _io_path(path, journal),
        "start of cells": _start_of_cells(journal),
        "clock": plan.clock,
        "scenario": subject["scenario"],
        "array state": ", then ".join(dict.fromkeys(array_states)) or "no array",
    }
    for facet, value in facets.items():
        yield facet, "protocol", value


def _io_path(path: Path, journal: Sequence[Mapping[str, Any]]) -> str | None:
    """Return how the measured I/Os reached the drive; several ways are joined, None if one is not recorded.

    Of each step, one job of fio is read: all jobs of a step have the same options in this respect, but for synchronous
    writes, which go through the page cache on any drive.
    """
    ways = {_of_job(directory) for directory in _jobs(path, journal)}
    for line in journal:
        if line["event"] in ("replay", "load"):  # both replay engines refuse a target without O_DIRECT
            ways.add(DIRECT)
        elif line["event"] == "application":  # with a remark, a replay replaced the application
            ways.add(DIRECT if "remark" in line else FILE_SYSTEM)
    known = [way for way in ways if way is not None]
    return " | ".join(sorted(known)) if known and len(known) == len(ways) else None


def _jobs(path: Path, journal: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Return the folder of one job of fio of each step."""
    jobs = {
        line["step"]: path / line["directory"]
        for line in journal
        if line["event"] in ("cell", "soak") and not line["workload"].get("synchronous")
    }
    return list(jobs.values())


def _cpus(path: Path, journal: Sequence[Mapping[str, Any]]) -> str | None:
    """Return who chose the CPUs of fio's threads; None if a job is missing."""
    ways = set()
    for directory in _jobs(path, journal):
        sections = sections_of_job(directory)
        if not sections:
            return None
        bound = any("cpus_allowed" in options for options in sections)
        ways.add("one for each, near the drive" if bound else "left to the scheduler")
    return " | ".join(sorted(ways)) or "no fio"


def _of_job(directory: Path) -> str | None:
    sections = sections_of_job(directory)
    if not sections:
        return None
    return DIRECT if all(options.get("direct") == "1" for options in sections) else PAGE_CACHE


def _mappings(part: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every mapping in a plan's steps."""
    if isinstance(part, Mapping):
        yield part
        part = list(part.values())
    for item in part if isinstance(part, list | tuple) else ():
        yield from _mappings(item)


def _data_patterns(steps: Any) -> Iterator[str]:
    """Yield the entropies in a plan's steps whose data are not fully random."""
    for part in _mappings(steps):
        if part.get("entropy") is not None:
            yield f"{100 * part['entropy']:g} % random"
        if part.get("reuse_buffers"):
            yield "random, buffers reused"


def _submissions(steps: Any) -> set[str]:
    """Return how the cells in a plan's steps submit I/Os, where it differs from fio's defaults."""
    return {words for part in _mappings(steps) if (words := ", ".join(submission(part)))}


def _settings(path: Path) -> Facets:
    """Yield host and drive settings; nothing if they were not checked, as on the virtual clock."""
    states: dict[str, dict[str | None, None]] = {}
    for row in settings(path, "name", "scope", "state") or ():
        scope = "" if row["scope"] == "host" else "drive "
        states.setdefault(f"{scope}setting: {row['name']}", {})[row["state"]] = None
    for facet, several in states.items():  # a subject on several disks has the settings of each
        yield facet, "setting", None if set(several) == {None} else " + ".join(map(str, several))


def _purge(journal: Sequence[Mapping[str, Any]], asked: str) -> str | None:
    """Return the last purge: drivelab purges a drive again if its state changed. A quick look appends none."""
    purges = [str(line.get("title", line["method"])) for line in journal if line["event"] == "purge"]
    return purges[-1] if purges else asked if asked == "none" else None


def _rest(journal: Sequence[Mapping[str, Any]]) -> str:
    """Return the rest after the fill, and whether the drive then wrote as when it was empty."""
    rests = [line for line in journal if line["event"] == "rest"]
    if not rests:
        return "none"
    last = rests[-1]
    cache = {True: ", cache free", False: ", cache perhaps not free", None: ""}[last.get("as_empty")]
    return f"{last['rest_s']:g} s{cache}"


def _fills(condition: Mapping[str, Any]) -> Iterator[str]:
    fill = condition.get("fill", ())
    for part in [fill] if isinstance(fill, Mapping) else fill:
        amounts = {name: part[name] for name in sorted(part) if name.endswith(("multiple", "range_share"))}
        texts = [f"{value:g} x {name.removesuffix('_multiple').replace('_', ' ')}" for name, value in amounts.items()]
        yield " ".join([*texts, part["pattern"], format_size(part["block_size_bytes"])])


def _traces(traces: Sequence[Mapping[str, Any]], journal: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield name and digest of each trace; the digest of a capture on this host is in the journal."""
    used = {line["trace"]: line["trace_sha256"] for line in journal if "trace_sha256" in line}
    for trace in traces:
        digest = trace.get("sha256") or used.get(trace["name"])
        yield f"{trace['name']} {UNKNOWN if digest is None else digest[:8]}"


def _engines(journal: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for line in journal:
        if line["event"] in ("replay", "load"):
            yield str(line["engine"])
        elif line["event"] == "application":
            yield str(line.get("remark", f"application {line['application']}"))


def _start_of_cells(journal: Sequence[Mapping[str, Any]]) -> str:
    """Return whether a loop's fio was prepared before the end of the cell before: the drive then rests 0.3 s less."""
    cells = [line for line in journal if line["event"] == "cell"]
    if len(cells) < 2:
        return "no sequence of cells"
    return "prepared" if any(line.get("prepared") for line in cells) else "not prepared"


def _temperatures(cells: pd.DataFrame) -> dict[str, str]:
    """Return the drive's temperature range by recording, in bins of _STEP_C, without cold cells."""
    known = cells[~cells["cold"].astype(bool)].dropna(subset=["temperature_min_c", "temperature_max_c"])
    ranges = known.groupby("recording").agg({"temperature_min_c": "min", "temperature_max_c": "max"})
    return {
        str(row.Index): f"{_STEP_C * math.floor(row.temperature_min_c / _STEP_C)} to "
        f"{_STEP_C * (math.floor(row.temperature_max_c / _STEP_C) + 1)} °C"
        for row in ranges.itertuples()
    }


def _bytes(number: object) -> str | None:
    return None if number is None else f"{number:,} B"
