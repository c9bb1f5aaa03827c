"""One quick look from the first check to the printed result."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

import drivelab
from drivelab.analysis.values.quick_look import Sustained, Value, sustained_of, values_of
from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.core.terminal import console, live_display
from drivelab.core.units import format_amount, format_duration
from drivelab.drives import sysfs
from drivelab.drives.approved import ApprovedDevice
from drivelab.host.stack.device_class import PHYSICAL
from drivelab.host.stack.stack import class_of, layers
from drivelab.host.stack.volumes import Layer
from drivelab.plan.drive_sheet import SheetRow
from drivelab.plan.places import COMMAND
from drivelab.plan.plan import Plan
from drivelab.plan.subject_kinds import FILE, READ_ONLY
from drivelab.plan.yaml_file import load_yaml
from drivelab.quick import caveats
from drivelab.quick.caveats import ROUGH, Cause, warnings
from drivelab.quick.look import look, write_tables
from drivelab.quick.study import FILL_SHARE, LEAST_AGREEING_S, RESULTS, USUAL_S, Request, planned
from drivelab.quick.subjects import known_size, size_for
from drivelab.quick.view import CHANGES, LiveView, result_table, row, sustained_words, tails
from drivelab.recording.writer import read_journal
from drivelab.run import consent, guest
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among

VIRTUAL = "virtual drive"
_COMPARABLE = 3
"""Looks at each place after which a comparison can give a verdict."""


@dataclass(frozen=True)
class Planned:
    """What a look will do."""

    requests: Sequence[Request]
    campaign: Campaign
    plans: Sequence[Plan]
    layers: Sequence[tuple[Layer, ...]]
    causes: tuple[Cause, ...]
    """What speaks against starting now."""
    approved: Mapping[str, ApprovedDevice]
    """The drives that the look destroys, except virtual ones."""

    @property
    def page(self) -> Path:
        """Return the usual path of the page."""
        return RESULTS / f"{'-and-'.join(plan.drive for plan in self.plans)}.html"

    @property
    def longest_s(self) -> float:
        return sum(request.time_s for request in self.requests)

    @property
    def rounds_s(self) -> float:
        """Return the time until the steps after the rounds."""
        steps = [fields for plan in self.plans for step in plan.subject["measure"] for fields in step.values()]
        after_s = (float(fields.get("time_s", fields.get("until", {}).get("time_s", 0.0))) for fields in steps)
        return self.longest_s - sum(after_s)


@dataclass(frozen=True)
class Place:
    """What is known of one place after its look."""

    plan: Plan
    device_class: str
    layers: Sequence[Layer]
    labels: Sequence[str]
    """What limits the numbers, such as `unconditioned`."""
    values: Sequence[Value]
    sustained: Sustained | None
    causes: Sequence[Cause]
    """What its numbers show besides the drive."""
    range_bytes: int
    """Size of the file, or of the part of a device that the look uses."""
    written_bytes: int
    """What the look wrote in all."""
    tables: Mapping[str, pd.DataFrame]

    @property
    def path(self) -> str:
        """Return the folder or device."""
        return str(Path(self.plan.context["device"]))


def plan_looks(rows: Sequence[SheetRow], time_s: float, size_bytes: int | None) -> Planned:
    """Plan a look at places, and watch the host for a second; writes the study of quick looks, and nothing else.

    Raises UserError if a place is named twice, is too small, or may not be measured.
    """
    devices = [row.device for row in rows]
    if twice := next((device for device in devices if devices.count(device) > 1), None):
        raise UserError(f"{twice} is named twice; name two different places to compare them")
    sizes = [_size(row, size_bytes, time_s) for row in rows]
    common = min((size for size in sizes if size is not None), default=None)
    requests = [_request(row, common, size_bytes, time_s) for row in rows]
    below = [() if row.virtual is not None else layers(Path(row.device)) for row in rows]
    campaign, plans = planned(requests)
    approved = campaign.approve_drives()
    causes: tuple[Cause, ...] = ()
    if any(plan.clock != "virtual" for plan in plans):  # the host does not affect simulated time
        causes = caveats.of_places([(Path(row.device), under) for row, under in zip(rows, below, strict=True)])
        small = [request.capacity_bytes for request in requests if request.has_small_file]
        causes += tuple(
            (ROUGH, f"the test file has only {format_amount(size)}, which caches may hold") for size in small
        )
        if time_s < LEAST_AGREEING_S:
            causes += ((ROUGH, f"there is time for three rounds only ({format_duration(time_s)})"),)
    return Planned(requests, campaign, plans, below, causes, approved)


def _size(row: SheetRow, wanted_bytes: int | None, time_s: float) -> int | None:
    """Return the size of a folder's file, the same as in an earlier look if possible; None for devices."""
    if row.kind != FILE.name:
        return None
    folder, before_bytes = Path(row.device), known_size(row, RESULTS)
    if wanted_bytes is None and before_bytes is not None and before_bytes <= guest.most_bytes(folder):
        return before_bytes
    return size_for(folder, wanted_bytes, FILL_SHARE * time_s)


def _request(row: SheetRow, file_bytes: int | None, wanted_bytes: int | None, time_s: float) -> Request:
    if row.kind == FILE.name and file_bytes is not None:
        return Request(replace(row, size_bytes=file_bytes), file_bytes, time_s, None)
    if row.virtual is not None:
        capacity_bytes = model_among(load_yaml(VIRTUAL_DRIVES), row.virtual, row.source).capacity_bytes
    else:
        try:
            capacity_bytes = sysfs.capacity_bytes(sysfs.kernel_name(row.device))
        except OSError:
            raise UserError(f"drive '{row.drive}' is not attached: there is no {row.device}; attach it") from None
    if wanted_bytes is not None and wanted_bytes > capacity_bytes:
        raise UserError(
            f"{row.drive} has {format_amount(capacity_bytes)}, less than the --size of {format_amount(wanted_bytes)}; "
            "give a smaller size"
        )
    return Request(row, capacity_bytes, time_s, wanted_bytes)


def announcement(look: Planned) -> Iterator[str]:
    """Yield the lines to print before a look."""
    for request, plan, under in zip(look.requests, look.plans, look.layers, strict=True):
        place = plan.context["device"]
        yield f"{plan.drive}: {place}, {', on '.join(dict.fromkeys(layer.words for layer in under)) or VIRTUAL}"
        if plan.kind == READ_ONLY.name:
            yield "  reads only; nothing is written"
        elif plan.kind == FILE.name:
            about = os.statvfs(place)
            free = format_amount(about.f_bavail * about.f_frsize)
            yield f"  temporary file of {format_amount(request.capacity_bytes)}, removed at the end; {free} are free"
        else:
            yield f"  writes to the drive, and destroys what is on it ({plan.subject['drive']['serial']})"
        yield from dict.fromkeys(f"  note: {caution}" for layer in under for caution in layer.cautions)
    yield from (f"warning: {warning}" for warning in warnings(look.causes))
    yield f"About {format_duration(look.longest_s)}. Unconditioned: the drive as it is now."


def agree(look: Planned, yes: bool) -> None:
    """Raise UserError unless the user agreed to lose the data of the real drives of the sheet."""
    drives = [
        consent.Drive(plan.drive, device.serial, device.identity)
        for plan in look.plans
        if (device := look.approved.get(plan.sheet_drive)) is not None
    ]
    consent.require(look.campaign.study, drives, yes)


def take(wanted: Planned) -> list[Place]:
    """Measure, and return what was found at each place."""
    plans = wanted.plans
    names = {plan.recording: f"{plan.drive}  {plan.context['device']}" for plan in plans}
    with _virtual_drives(plans), live_display(stderr=True) as live:
        view = LiveView(names, wanted.longest_s, live)
        rounds_end_s = time.monotonic() + wanted.rounds_s
        look(plans, view.say, view.on_line, lambda: time.monotonic() > rounds_end_s)
    return [
        _place(plan, request, under, wanted)
        for plan, request, under in zip(plans, wanted.requests, wanted.layers, strict=True)
    ]


@contextmanager
def _virtual_drives(plans: Sequence[Plan]) -> Iterator[None]:
    """Stop the virtual drives that the look started."""
    running = {drive.name for drive in manage.status()}
    try:
        yield
    finally:
        names = {str(plan.context["device"]).removeprefix("virtual:") for plan in plans if plan.virtual}
        for name in names - running if any(plan.clock == "wall" for plan in plans) else ():
            with suppress(UserError):  # another command uses the drive now
                manage.stop(name)


def _place(plan: Plan, request: Request, under: tuple[Layer, ...], look: Planned) -> Place:
    reduced = bool(look.campaign.by_recording[plan.recording].altered)
    tables = write_tables(plan, reduced=reduced)
    cells = tables["cells"]
    values = values_of(cells, tables["latency_bins"])
    device_class = VIRTUAL if plan.virtual else class_of(under)
    filled = sum(int(line["bytes"]) for line in read_journal(plan.recording_path) if line["event"] == "fill")
    return Place(
        plan=plan,
        device_class=device_class,
        layers=under,
        labels=_labels(plan, request, cells),
        values=values,
        sustained=sustained_of(cells),
        causes=tuple(caveats.of_values(values, device_class, under)),
        range_bytes=min(plan.subject["class"].get("range_bytes", request.capacity_bytes), request.capacity_bytes),
        written_bytes=filled + int(cells["bytes_written"].sum()),
        tables=tables,
    )


def _labels(plan: Plan, request: Request, cells: pd.DataFrame) -> list[str]:
    labels = ["unconditioned", "single recording"]
    if plan.kind == READ_ONLY.name:
        labels.append("reads only")
    if request.time_s != USUAL_S:
        labels.append(f"about {format_duration(request.time_s)}")
    if plan.virtual:
        labels.append(VIRTUAL if plan.clock == "wall" else f"{VIRTUAL}, simulated time")
    counted = cells[~cells["cold"].astype(bool)]
    if counted["tainted"].any():
        causes = sorted({str(reason).partition(":")[0] for reason in counted["taint_reason"].dropna()})
        labels += [f"tainted ({cause})" for cause in causes]
    if counted["unsound"].notna().any():
        labels.append(f"{int(counted['unsound'].notna().sum())} tests left out, see the table exclusions")
    return labels


def all_warnings(look: Planned, places: Sequence[Place]) -> tuple[str, ...]:
    """Return the warnings before and after a look; of several places, each cause names its own."""
    names = [f" ({place.plan.drive})" if len(places) > 1 else "" for place in places]
    own = [(kind, text + name) for place, name in zip(places, names, strict=True) for kind, text in place.causes]
    return warnings([*look.causes, *own])


def as_mapping(places: Sequence[Place], found: Sequence[str], page: str) -> dict[str, Any]:
    """Return a look for JSON."""
    of_places = [
        {
            "name": place.plan.drive,
            "place": place.path,
            "measurement": place.plan.measurement,
            "class": place.device_class,
            "layers": [asdict(layer) for layer in place.layers],
            "labels": place.labels,
            "recording": place.plan.recording,
            "written_bytes": place.written_bytes,
            "values": [row(value) for value in place.values],
            "sustained_write": None if place.sustained is None else asdict(place.sustained),
        }
        for place in places
    ]
    return {"drivelab": drivelab.__version__, "warnings": found, "page": page, "places": of_places}


def show(places: Sequence[Place], found: Sequence[str], page: str) -> None:
    """Print the result in at most 80 columns."""
    screen = console(highlight=False, soft_wrap=False)
    labels = list(dict.fromkeys(label for place in places for label in place.labels))
    screen.print(" · ".join(labels), style="bold", markup=False)
    screen.print(result_table({place.plan.drive: place.values for place in places}))
    for place in places:
        own = f"{place.plan.drive}: " if len(places) > 1 else ""
        for value in place.values:
            if value.shown.is_time and (percentiles := tails(value)):
                screen.print(f"{own}{value.shown.words}: {percentiles}.", markup=False)
        if place.sustained is not None:
            screen.print(f"{own}{sustained_words(place.sustained, place.range_bytes)}", markup=False)
    for warning in found:
        screen.print(warning, markup=False, style="yellow")
    if len(places) > 1:
        screen.print(CHANGES, markup=False)
    if any(value.host_limited for place in places for value in place.values):
        screen.print("* The test used most of a CPU core: the host may be the limit, the drive is at least that fast.")
    written = ", ".join(format_amount(place.written_bytes) for place in places)
    screen.print(f"The spread is that of the rounds of this look. Written: {written}.", markup=False)
    screen.print(f"Page: {page}", markup=False)
    if any(place.device_class in PHYSICAL for place in places):
        screen.print(f"Wear, spare blocks and temperature, as root: {COMMAND} drives")
    screen.print(_next(places), markup=False)


def _next(places: Sequence[Place]) -> str:
    """Return what to do after a look."""
    names, runs = [place.plan.drive for place in places], min(place.plan.run for place in places)
    if len(places) > 1:
        few = f"This holds for these looks only. For a verdict, take {_COMPARABLE} looks at each place.\n"
        return f"{few * (runs < _COMPARABLE)}Next: {COMMAND} compare {names[0]} {names[1]} --results {RESULTS}"
    place = shlex.quote(places[0].path if Path(places[0].path).exists() else names[0])
    return f"Next: {'after a change, look again; then ' * (runs == 1)}{COMMAND} quick --history {place}"
