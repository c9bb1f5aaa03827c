"""Describe protocols: what they do to a drive, and what they take."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drivelab.campaign.ceilings import fastest_mib_s
from drivelab.campaign.estimate import Trace, assumed_mib_s
from drivelab.campaign.procedure import Part, Subject, procedure, total
from drivelab.campaign.subjects import capacity_bytes_of, logical_block_bytes_of
from drivelab.campaign.traces import TRACES
from drivelab.core.errors import UserError, suggestion
from drivelab.core.units import format_amount, format_span, parse_amount
from drivelab.drives import identity, sysfs
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.grammar import Protocol, Resolved, resolve
from drivelab.plan.places import ROOT
from drivelab.plan.plan import Plan
from drivelab.plan.yaml_file import load_yaml
from drivelab.trace import trace_catalogue
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among

_WIDTH = 110
_NEEDS = (("simultaneous", "its drives at the same time"), ("replays", "a trace"), ("takes_streams", "one trace"),
          ("applications", "an application"))  # fmt: skip


def text(
    protocol: Protocol, resolved: Sequence[Resolved], words: str, subject: Subject, drive_class: str, scale: str | None
) -> str:
    """Return the description of a protocol for the terminal; `words` describe the drive."""
    lines = [f"{protocol.name}: {protocol.body['title']}", f"    after {protocol.body['source']}"]
    lines += [f"    needs {needs}" for needs in _needs(protocol)]
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 0)).columns)
    lines += ["", *textwrap.wrap(protocol.description.strip(), width), ""]
    length = f"scale {scale}: REDUCED, not a result of the full-length test" if scale else "full length"
    lines.append(f"{drive_class} class, write cache {protocol.write_cache(drive_class)}, {length}, for {words}:")
    for variant in resolved:
        parts = procedure(variant, subject)
        lines += [""] + ([f"{variant.variant}:"] if variant.variant is not None else [])
        for part in (*parts, total(parts)):
            lines += _wrapped(part, width)
    for difference in resolved[0].altered:
        lines += textwrap.wrap(f"reduced: {difference}", width, subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def as_mapping(
    protocol: Protocol, resolved: Sequence[Resolved], subject: Subject, drive_class: str, scale: str | None
) -> dict[str, Any]:
    """Return the same description for JSON; times in seconds, volumes in bytes, null where unknown."""
    return {
        "protocol": protocol.name,
        "title": protocol.body["title"],
        "source": protocol.body["source"],
        "description": protocol.description.strip(),
        "needs": list(_needs(protocol)),
        "class": drive_class,
        "scale": scale,
        "reduced": list(resolved[0].altered),
        "drive": {"name": subject.name, "capacity_bytes": subject.capacity_bytes, "write_mib_s": subject.write_mib_s},
        "measurements": [
            {"variant": variant.variant, "steps": list(map(_step, parts)), "total": _step(total(parts))}
            for variant in resolved
            for parts in [procedure(variant, subject)]
        ],
    }


def _step(part: Part) -> dict[str, Any]:
    estimate = None if part.estimate is None else asdict(part.estimate)
    return {"words": part.words, "details": list(part.details), "estimate": estimate}


def _wrapped(part: Part, width: int) -> Iterator[str]:
    yield from textwrap.wrap(part.words, width, initial_indent="  ", subsequent_indent="    ")
    for detail in part.details:
        yield from textwrap.wrap(detail, width, initial_indent="      ", subsequent_indent="      ")
    yield f"      time {part.time}; written {part.written}"


def _needs(protocol: Protocol) -> Iterator[str]:
    for name, need in _NEEDS:
        if getattr(protocol, name) and not (name == "replays" and protocol.takes_streams):
            yield need


SHEET = Path("config/drives.tsv")
OVER_PROVISIONING = 0.07
"""Assumed if the drive is imagined or the sheet has no value: 2^30 bytes of flash for 10^9 of capacity."""


def imagined(capacity: str, write_mib_s: float, traces: tuple[Trace, ...] = ()) -> tuple[str, Subject]:
    """Return description and figures of a drive with a capacity such as `1TB` (10^12 bytes) or `512GiB`.

    Raises UserError for an invalid capacity.
    """
    capacity_bytes = int(parse_amount(capacity))
    if not capacity_bytes:
        raise UserError(f"a drive of {capacity} has no capacity; give a capacity such as 1TB")
    spaced = re.sub(r"(?<=\d)(?=[A-Z])", " ", capacity)
    spare = f"{100 * OVER_PROVISIONING:.0f} % over-provisioning"
    words = f"a drive of {spaced} that writes {write_mib_s:g} MiB/s, with {spare}"
    return words, Subject(capacity, capacity_bytes, write_mib_s, OVER_PROVISIONING, traces)


def of_sheet(name: str, traces: tuple[Trace, ...] = ()) -> tuple[str, Subject]:
    """Return description and figures of a drive in config/drives.tsv.

    Raises UserError for an unknown drive, or one that is not attached.
    """
    rows = load_sheet(ROOT / SHEET)
    if name not in rows:
        raise UserError(f"{SHEET}: has no drive '{name}'; {suggestion(name, rows)}")
    row = rows[name]
    over_provisioning = OVER_PROVISIONING if row.over_provisioning is None else row.over_provisioning
    model = None
    if row.virtual is not None:
        model = model_among(load_yaml(ROOT / VIRTUAL_DRIVES), row.virtual, row.source)
        over_provisioning = model.over_provisioning
    virtual = None if model is None else model.to_mapping()
    known = {"virtual": virtual, "size_bytes": row.size_bytes}
    drive = {key: value for key, value in known.items() if value is not None}
    plan = Plan({"drive": drive}, {"drive": name, "device": row.device})
    capacity_bytes = capacity_bytes_of(plan)
    facts = {} if drive else identity.describe(sysfs.kernel_name(row.device))
    transport, link = facts.get("transport"), facts.get("link")
    write_mib_s = assumed_mib_s(plan, transport)
    words = f"{name}, {format_amount(capacity_bytes)}, at an assumed {write_mib_s:.0f} MiB/s"
    return words, Subject(
        name, capacity_bytes, write_mib_s, over_provisioning, traces, logical_block_bytes_of(plan),
        fastest_mib_s(plan, transport, link), virtual,
    )  # fmt: skip


def trace(name: str) -> Trace:
    """Return the extent of a trace: a `.parquet` file, or a name in the catalogue."""
    from drivelab.trace.parquet_schema import extent  # imports pyarrow, which is slow; only replays need it

    path = Path(name) if name.endswith(".parquet") else trace_catalogue.entry(name, ROOT / TRACES).path
    return Trace(*extent(path))


START = ("quick", "pts-throughput", "pts-write-saturation")
"""Protocols to begin with: almost any drive can run them, and the results are easy to read."""
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "Quick looks": ("quick",),
    "SNIA Performance Test Specification": ("pts",),
    "Behaviour of a drive": ("qos", "latency", "slc", "trim", "data", "simultaneous", "hdd"),
    "Comparisons of hosts, settings and file systems": ("platform", "filesystem"),
    "Applications and traces": ("application", "trace", "rwsw", "task"),
    "Tests of other tools and publications": ("tkperf", "crystaldiskmark", "iometer", "sqlio", "stec", "solidigm"),
}
"""Families by the first word of the protocols' names."""
_OWN = "Others"


@dataclass(frozen=True)
class Entry:
    """A protocol, and what it takes on one drive."""

    family: str
    name: str
    title: str
    source: str
    start: bool
    """Whether it is one of START."""
    takes: Part | None
    """The estimate of all of its measurements; None if the drive cannot run it."""
    more: str = ""
    """What the estimate leaves out: a trace or application that is not known."""
    unfit: str = ""
    """Why the drive cannot run it."""

    @property
    def time(self) -> str:
        """Return the time in whole minutes or hours: `20 min to 50 min`, `5 h to 24 h`."""
        span = self.takes.estimate if self.takes is not None else None
        if span is None:
            return ""
        return f"{format_span(span.least_s, span.most_s, _coarse)}{self.more}"

    @property
    def written(self) -> str:
        """Return the upper bound of the bytes written."""
        span = self.takes.estimate if self.takes is not None else None
        if span is None:
            return ""
        return f"{format_amount(span.most_bytes) if span.most_bytes else 'nothing'}{self.more}"


def _coarse(seconds: float) -> str:
    minutes = max(round(seconds / 60), 1)
    return f"{minutes} min" if minutes < 100 else f"{round(seconds / 3600)} h"


def entries(protocols: Iterable[Protocol], subject: Subject) -> list[Entry]:
    """Return the protocols in the order of FAMILIES, then by name, those of START first."""
    found = [_entry(protocol, subject) for protocol in protocols]
    order = [*FAMILIES, _OWN]
    return sorted(found, key=lambda entry: (order.index(entry.family), not entry.start, entry.name))


def _entry(protocol: Protocol, subject: Subject) -> Entry:
    first = protocol.name.partition("-")[0]
    family = next((title for title, words in FAMILIES.items() if first in words), _OWN)
    takes, more, unfit = None, "", ""
    try:
        variants = resolve(protocol, protocol.usual_class, None, {}, protocol.name)
        parts = [part for variant in variants for part in procedure(variant, subject)]
        takes, more = total(parts), " + trace" if any(part.estimate is None for part in parts) else ""
    except UserError as error:
        unfit = str(error)
    title, source = str(protocol.body["title"]), str(protocol.body["source"])
    return Entry(family, protocol.name, title, source, protocol.name in START, takes, more, unfit)
