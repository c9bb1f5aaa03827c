"""One quick look from the first check to the printed result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

import drivelab
from drivelab.analysis.values.quick_look import Sustained, Value, sustained_of, values_of
from drivelab.analysis.values.recording_tables import write_tables
from drivelab.campaign.outlook import outlook
from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.core.terminal import progress_line, say
from drivelab.core.units import format_amount, format_duration, format_span
from drivelab.drives import sysfs
from drivelab.host.stack.device_class import VIRTUAL_DRIVE
from drivelab.host.stack.stack import class_of, disks, layers
from drivelab.host.stack.volumes import Layer
from drivelab.plan.drive_sheet import SheetRow
from drivelab.plan.places import COMMAND
from drivelab.plan.plan import Plan
from drivelab.plan.subject_kinds import FILE, READ_ONLY
from drivelab.plan.yaml_file import load_yaml
from drivelab.quick.caveats import BUSY, Cause, of_folder, of_values, warnings
from drivelab.quick.look import measure
from drivelab.quick.study import RESULTS, Request, known_size, planned
from drivelab.quick.subjects import USUAL_BYTES, size_for
from drivelab.quick.view import print_values, row, sustained_words
from drivelab.recording.writer import read_journal
from drivelab.run import consent
from drivelab.telemetry.other_programs import disturbances
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among


@dataclass(frozen=True)
class Look:
    """What a look will do."""

    campaign: Campaign
    plans: Sequence[Plan]
    layers: Sequence[tuple[Layer, ...]]
    causes: Sequence[Cause]
    """What speaks against starting now."""
    longest_s: float


@dataclass(frozen=True)
class Place:
    """What a look found at one place."""

    device_class: str
    values: Sequence[Value]
    sustained: Sustained | None
    written_bytes: int
    tables: Mapping[str, pd.DataFrame]


def plan_look(rows: Sequence[SheetRow], time_s: float, size_bytes: int | None) -> Look:
    """Plan a look at places, and watch the host for a second; writes the study of quick looks, and nothing else.

    Raises UserError if a place is named twice, is too small, or may not be measured.
    """
    places = [(row.device if row.kind == FILE.name else "", row.serial) for row in rows]
    if twice := next((row.device for row, place in zip(rows, places, strict=True) if places.count(place) > 1), None):
        raise UserError(f"{twice} is named twice; name two different places to compare them")
    folders = [row for row in rows if row.kind == FILE.name]
    sizes = (size_for(Path(row.device), size_bytes, known_size(row), time_s) for row in folders)
    file_bytes = min(sizes, default=0)
    requests = [_request(row, file_bytes, size_bytes, time_s) for row in rows]
    below = [() if row.virtual is not None else layers(Path(row.device)) for row in rows]
    campaign, plans = planned(requests)
    causes = [cause for row in folders for cause in of_folder(Path(row.device), file_bytes)]
    if any(plan.clock != "virtual" for plan in plans):  # the host does not affect simulated time
        causes += [(BUSY, text) for text in disturbances([name for under in below for name in disks(under)])]
    return Look(campaign, plans, below, causes, len(rows) * time_s)


def _request(row: SheetRow, file_bytes: int, wanted_bytes: int | None, time_s: float) -> Request:
    if row.kind == FILE.name:
        row, wanted_bytes, capacity_bytes = replace(row, size_bytes=file_bytes), file_bytes, file_bytes
    elif row.virtual is not None:
        capacity_bytes = model_among(load_yaml(VIRTUAL_DRIVES), row.virtual, row.source).capacity_bytes
    else:
        try:
            capacity_bytes = sysfs.capacity_bytes(sysfs.kernel_name(row.device))
        except OSError:
            raise UserError(f"drive '{row.drive}' is not attached: there is no {row.device}; attach it") from None
    if wanted_bytes is not None and wanted_bytes > capacity_bytes:
        wanted, there = format_amount(wanted_bytes), format_amount(capacity_bytes)
        raise UserError(f"{row.drive} has {there}, less than the --size of {wanted}; give a smaller size")
    if row.kind != READ_ONLY.name:
        used_bytes = wanted_bytes or min(capacity_bytes, USUAL_BYTES)
        wanted_bytes = None if used_bytes == USUAL_BYTES else used_bytes
    return Request(row, time_s, wanted_bytes)


def announcement(look: Look) -> Iterator[str]:
    """Yield the lines to print before a look: where, how much is written, and what speaks against it."""
    estimates = {row.drive: row.estimate for row in outlook(look.campaign)}
    for plan, under in zip(look.plans, look.layers, strict=True):
        estimate, drive = estimates[plan.sheet_drive], plan.subject["drive"]
        through = ", on ".join(dict.fromkeys(layer.words for layer in under)) or VIRTUAL_DRIVE
        yield f"{plan.drive}: {plan.context['device']}, {through}"
        where = f"to the drive, and destroys what is on it ({drive['serial']})"
        if plan.kind == FILE.name:
            where = f"to a temporary file of {format_amount(drive['size_bytes'])}, removed at the end"
        written = f"writes {format_span(estimate.least_bytes, estimate.most_bytes, format_amount)} {where}"
        yield f"  {'reads only; nothing is written' if plan.kind == READ_ONLY.name else written}"
        yield from dict.fromkeys(f"  note: {caution}" for layer in under for caution in layer.cautions)
    yield from (f"warning: {warning}" for warning in warnings(look.causes))
    yield f"About {format_duration(look.longest_s)}. Unconditioned: the drive as it is now."


def agree(look: Look, yes: bool) -> None:
    """Raise UserError unless each real drive of the sheet may be destroyed, and the user agreed to that."""
    approved = look.campaign.approve_drives()
    drives = [consent.Drive(name, device.serial, device.identity) for name, device in approved.items()]
    consent.require(look.campaign.study, drives, yes)


def take(look: Look) -> list[Place]:
    """Measure, and return what was found at each place; stop the virtual drives that this started."""
    running = {drive.name for drive in manage.status()}
    try:
        with progress_line() as show:
            measure(look.plans, show, look.longest_s)
    finally:
        for name in {*look.campaign.virtual_drives} - running:
            with suppress(UserError):  # another command uses the drive now
                manage.stop(name)
    return [_place(look, plan, under) for plan, under in zip(look.plans, look.layers, strict=True)]


def _place(look: Look, plan: Plan, under: tuple[Layer, ...]) -> Place:
    tables = write_tables(plan.recording_path, reduced=bool(look.campaign.by_recording[plan.recording].altered))
    cells, journal = tables["cells"], read_journal(plan.recording_path)
    filled = sum(int(line["bytes"]) for line in journal if line["event"] == "fill")
    device_class = VIRTUAL_DRIVE if plan.virtual else class_of(under)
    values, written = values_of(cells, tables["latency_bins"]), filled + int(cells["bytes_written"].sum())
    return Place(device_class, values, sustained_of(cells), written, tables)


def all_warnings(look: Look, places: Sequence[Place]) -> tuple[str, ...]:
    """Return the warnings before and after a look; of several places, each cause names its own."""
    own = [(kind, f"{text} ({plan.drive})" if len(places) > 1 else text)
           for plan, place in zip(look.plans, places, strict=True)
           for kind, text in of_values(place.values, place.device_class)]  # fmt: skip
    return warnings([*look.causes, *own])


Labels = Mapping[str, Sequence[str]]
"""What limits the numbers, by drive, as the page says."""


def as_mapping(look: Look, places: Sequence[Place], found: Sequence[str], labels: Labels, page: str) -> dict[str, Any]:
    """Return a look for JSON."""
    of_places = [
        {
            "name": plan.drive,
            "place": plan.context["device"],
            "measurement": plan.measurement,
            "class": place.device_class,
            "layers": [asdict(layer) for layer in under],
            "labels": labels[plan.drive],
            "recording": plan.recording,
            "written_bytes": place.written_bytes,
            "values": [row(value) for value in place.values],
            "sustained_write": None if place.sustained is None else asdict(place.sustained),
        }
        for plan, under, place in zip(look.plans, look.layers, places, strict=True)
    ]
    return {"drivelab": drivelab.__version__, "warnings": found, "page": page, "places": of_places}


def show(look: Look, places: Sequence[Place], found: Sequence[str], labels: Labels, page: str) -> None:
    """Print the result."""
    of_names = dict(zip((plan.drive for plan in look.plans), places, strict=True))
    say(" · ".join(dict.fromkeys(label for own in labels.values() for label in own)))
    print_values({name: place.values for name, place in of_names.items()})
    for name, place in of_names.items():
        say(*([f"{name}: {sustained_words(place.sustained)}"] if place.sustained else []))
        say(f"{name}: {format_amount(place.written_bytes)} written in all.")
    say(*found, "The spread is that of the rounds of this look.")
    first, *others = of_names
    following = f"quick --history {first}"
    if others:
        say("Change: + is better (more IOPS or MiB/s, less time); in parentheses, the spreads overlap.")
        following = f"compare {first} {others[0]} --results {RESULTS}"
    say(f"Page: {page}", f"Next: {COMMAND} {following}")
