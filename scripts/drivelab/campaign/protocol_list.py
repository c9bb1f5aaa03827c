"""List protocols by family, with the time and the bytes that they take on a drive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drivelab.campaign.procedure import Part, Subject, procedure, total
from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.plan.grammar import Protocol, resolve

START = ("quick", "pts-throughput", "pts-write-saturation")
"""Protocols to begin with: almost any drive can run them, and the results are easy to read."""
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "Quick looks": ("quick",),
    "SNIA Performance Test Specification": ("pts",),
    "Behaviour of a drive": ("qos", "latency", "slc", "trim", "data", "simultaneous", "hdd", "volume"),
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
    unfit: str = ""
    """Why the drive cannot run it."""

    @property
    def time(self) -> str:
        """Return the time in whole minutes or hours: `20 to 50 min`, `5 to 24 h`."""
        span = self.takes.estimate if self.takes is not None else None
        if span is None:
            return ""
        (least, unit), (most, most_unit) = _coarse(span.least_s), _coarse(span.most_s)
        if (least, unit) == (most, most_unit):
            return f"{most} {most_unit}"
        return f"{least} to {most} {unit}" if unit == most_unit else f"{least} {unit} to {most} {most_unit}"

    @property
    def written(self) -> str:
        """Return the upper bound of the bytes written."""
        span = self.takes.estimate if self.takes is not None else None
        return "" if span is None else format_amount(span.most_bytes) if span.most_bytes else "nothing"


def _coarse(seconds: float) -> tuple[int, str]:
    minutes = max(round(seconds / 60), 1)
    return (minutes, "min") if minutes < 100 else (round(seconds / 3600), "h")


def entries(protocols: Iterable[Protocol], subject: Subject) -> list[Entry]:
    """Return the protocols in the order of FAMILIES, then by name, those of START first."""
    found = [_entry(protocol, subject) for protocol in protocols]
    order = [*FAMILIES, _OWN]
    return sorted(found, key=lambda entry: (order.index(entry.family), not entry.start, entry.name))


def _entry(protocol: Protocol, subject: Subject) -> Entry:
    first = protocol.name.partition("-")[0]
    family = next((title for title, words in FAMILIES.items() if first in words), _OWN)
    takes, unfit = None, ""
    try:
        variants = resolve(protocol, protocol.usual_class, None, {}, protocol.name)
        takes = total([part for variant in variants for part in procedure(variant, subject)])
    except UserError as error:
        unfit = str(error)
    title, source = str(protocol.body["title"]), str(protocol.body["source"])
    return Entry(family, protocol.name, title, source, protocol.name in START, takes, unfit)
