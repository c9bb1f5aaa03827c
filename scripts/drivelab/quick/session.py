"""One quick look from the first check to the printed result."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from drivelab.analysis.values.quick_look import sustained_of, values_of
from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.core.terminal import console, live_display
from drivelab.core.units import format_amount, format_duration
from drivelab.drives import identity, sysfs
from drivelab.drives.approved import ApprovedDevice
from drivelab.host.stack.device_class import PHYSICAL
from drivelab.host.stack.stack import class_of, disks, layers
from drivelab.host.stack.volumes import Layer
from drivelab.plan.drive_sheet import SheetRow
from drivelab.plan.places import COMMAND
from drivelab.plan.plan import Plan
from drivelab.plan.subject_kinds import FILE, READ_ONLY
from drivelab.plan.yaml_file import load_yaml
from drivelab.quick import before
from drivelab.quick.expectations import sentences
from drivelab.quick.look import look, write_tables
from drivelab.quick.result import Place, for_expectations
from drivelab.quick.study import FILL_SHARE, RESULTS, SMALL_FILE_BYTES, USUAL_S, Request, planned
from drivelab.quick.subjects import known_size, size_for
from drivelab.quick.view import CHANGES, LiveView, final_table, host_limited, sustained_words, tails
from drivelab.recording.writer import read_journal
from drivelab.run import consent, guest
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among

VIRTUAL = "virtual drive"
_LINK = re.compile(r"([\d.]+) GT/s.* x(\d+)")
_COMPARABLE = 3
"""Looks at each place after which a comparison can give a verdict."""


@dataclass(frozen=True)
class Planned:
    """What a look will do."""

    requests: Sequence[Request]
    campaign: Campaign
    plans: Sequence[Plan]
    layers: Sequence[tuple[Layer, ...]]
    warnings: tuple[str, ...]
    """What speaks against starting now."""
    approved: Mapping[str, ApprovedDevice]
    """The drives that the look destroys, except virtual ones."""

    @property
    def page(self) -> Path:
        """Return the usual path of the page."""
        return RESULTS / f"{'-and-'.join(plan.drive for plan in self.plans)}.html"

    @property
    def after_rounds_s(self) -> float:
        """Return the time of the steps after the rounds."""
        steps = [fields for plan in self.plans for step in plan.subject["measure"] for fields in step.values()]
        return sum(float(fields.get("time_s", fields.get("until", {}).get("time_s", 0.0))) for fields in steps)

    @property
    def longest_s(self) -> float:
        return sum(request.time_s for request in self.requests)


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
    if all(plan.clock == "virtual" for plan in plans):
        warnings: tuple[str, ...] = ()  # the host does not affect simulated time
    else:
        warnings = before.reasons([(Path(row.device), under) for row, under in zip(rows, below, strict=True)])
        warnings += tuple(dict.fromkeys(_small(request) for request in requests if request.has_small_file))
    return Planned(requests, campaign, plans, below, warnings, approved)


def _size(row: SheetRow, wanted_bytes: int | None, time_s: float) -> int | None:
    """Return the size of a folder's file, the same as in an earlier look if possible; None for devices."""
    if row.kind != FILE.name:
        return None
    folder, before_bytes = Path(row.device), known_size(row, RESULTS)
    if wanted_bytes is None and before_bytes is not None and before_bytes <= guest.most_bytes(folder):
        return before_bytes
    return size_for(folder, wanted_bytes, FILL_SHARE * time_s)


def _small(request: Request) -> str:
    """Return the warning about a small file, with what would make it larger."""
    has_space = guest.most_bytes(Path(request.row.device)) >= SMALL_FILE_BYTES
    remedy = "Give a larger --size" if has_space else "Free some space"
    return (
        f"The test file has only {format_amount(request.capacity_bytes)}. It fits into the caches of many drives and "
        f"hosts, so the numbers can look better than they are. {remedy}, or choose another place."
    )


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
        words = ", on ".join(dict.fromkeys(layer.words for layer in under)) or VIRTUAL
        yield f"{plan.drive}: {place}, {words}"
        if plan.kind == READ_ONLY.name:
            yield "  reads only; nothing is written"
        elif plan.kind == FILE.name:
            yield (
                f"  temporary file of {format_amount(request.capacity_bytes)}, removed at the end; "
                f"{format_amount(_free_bytes(Path(place)))} are free"
            )
        else:
            yield f"  writes to the drive, and destroys what is on it ({plan.subject['drive']['serial']})"
        for caution in dict.fromkeys(caution for layer in under for caution in layer.cautions):
            yield f"  note: {caution}"
    for warning in look.warnings:
        yield f"warning: {warning}"
    yield f"About {format_duration(look.longest_s)}. Unconditioned: the drive as it is now."


def _free_bytes(folder: Path) -> int:
    from os import statvfs

    about = statvfs(folder)
    return about.f_bavail * about.f_frsize


def agree(look: Planned, yes: bool) -> None:
    """Raise UserError unless the user agreed to lose the data of the real drives of the sheet."""
    drives = [
        consent.Drive(plan.drive, device.serial, device.identity)
        for plan in look.plans
        if (device := look.approved.get(plan.sheet_drive)) is not None
    ]
    consent.require(look.campaign.study, drives, yes)


def take(look_planned: Planned) -> list[Place]:
    """Measure, and return what was found at each place."""
    plans = look_planned.plans
    reduced = {known.plan.recording: bool(known.altered) for known in look_planned.campaign.plans}
    names = {plan.recording: f"{plan.drive}  {plan.context['device']}" for plan in plans}
    with _virtual_drives(plans), live_display(stderr=True) as live:
        view = LiveView(names, look_planned.longest_s, live)
        rounds_end_s = time.monotonic() + look_planned.longest_s - look_planned.after_rounds_s
        look(plans, view.say, view.on_line, lambda: time.monotonic() > rounds_end_s)
    return [
        _place(plan, request, under, write_tables(plan, reduced=reduced[plan.recording]))
        for plan, request, under in zip(plans, look_planned.requests, look_planned.layers, strict=True)
    ]


@contextmanager
def _virtual_drives(plans: Sequence[Plan]) -> Iterator[None]:
    """Stop the virtual drives that the look started."""
    running = {drive.name for drive in manage.status()}
    try:
        yield
    finally:
        for plan in plans:
            if plan.virtual and plan.clock == "wall":
                name = str(plan.context["device"]).removeprefix("virtual:")
                if name not in running:
                    with suppress(UserError):  # another command uses the drive now
                        manage.stop(name)


def _place(plan: Plan, request: Request, under: tuple[Layer, ...], tables: dict[str, pd.DataFrame]) -> Place:
    cells = tables["cells"]
    values, sustained = values_of(cells, tables["latency_bins"]), sustained_of(cells)
    device_class = VIRTUAL if plan.virtual else class_of(under)
    known, busiest = for_expectations(values, sustained, _link(under))
    path = Path(plan.context["device"])
    return Place(
        name=plan.drive,
        path=str(path),
        device_class=device_class,
        layers=under,
        labels=_labels(plan, request, cells),
        values=values,
        sustained=sustained,
        sentences=sentences(known, device_class, under, path, busiest),
        recording=plan.recording,
        run=plan.run,
        range_bytes=min(plan.subject["class"].get("range_bytes", request.capacity_bytes), request.capacity_bytes),
        written_bytes=_written_bytes(plan, cells),
        tables=tables,
    )


def _written_bytes(plan: Plan, cells: pd.DataFrame) -> int:
    """Return the bytes of the fill and of all cells."""
    filled = sum(int(line["bytes"]) for line in read_journal(plan.recording_path) if line["event"] == "fill")
    return filled + int(cells["bytes_written"].sum())


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


def _link(under: tuple[Layer, ...]) -> dict[str, float]:
    """Return speed and width of the link of the only disk, as far as known."""
    names = disks(under)
    if len(names) != 1:
        return {}
    facts = identity.describe(names[0])
    link: dict[str, float] = {}
    for key, prefix in (("link", "link"), ("link_max", "link_max")):
        if match := _LINK.search(str(facts.get(key) or "")):
            link |= {f"{prefix}_gt_s": float(match[1]), f"{prefix}_lanes": float(match[2])}
    return link


def show(places: Sequence[Place], page: str) -> None:
    """Print the result in at most 80 columns."""
    screen = console(highlight=False, soft_wrap=False)
    labels = list(dict.fromkeys(label for place in places for label in place.labels))
    screen.print(f"[bold]{' · '.join(labels)}[/]")
    screen.print(final_table([place.name for place in places], [place.values for place in places]))
    for place in places:
        own = f"{place.name}: " if len(places) > 1 else ""
        for value in place.values:
            if value.shown.is_time and (percentiles := tails(value)):
                screen.print(f"{own}{value.shown.words}: {', '.join(percentiles)}.", markup=False)
        if place.sustained is not None:
            screen.print(f"{own}{sustained_words(place.sustained, place.range_bytes)}", markup=False)
        for sentence in place.sentences:
            screen.print(f"{own}{sentence}", markup=False, style="yellow" if "usual" in sentence else "")
    if len(places) > 1:
        screen.print(CHANGES, markup=False)
    if any(host_limited(place.values) for place in places):
        screen.print("* The test used most of a CPU core: the host may be the limit, the drive is at least that fast.")
    written = ", ".join(format_amount(place.written_bytes) for place in places)
    screen.print(f"The spread is that of the rounds of this look. Written: {written}.", markup=False)
    screen.print(f"Page: {page}", markup=False)
    if any(place.device_class in PHYSICAL for place in places):
        screen.print(f"Wear, spare blocks and temperature, as root: {COMMAND} drives")
    if len(places) > 1 and min(place.run for place in places) < _COMPARABLE:
        screen.print(f"This holds for these looks only. For a verdict, take {_COMPARABLE} looks at each place.")
    first = places[0].name
    then = (
        f"compare {first} {places[1].name} --results {RESULTS}"
        if len(places) > 1
        else f"quick --history {shlex.quote(places[0].path if Path(places[0].path).exists() else first)}"
    )
    again = "after a change, look again; then " if places[0].run == 1 and len(places) == 1 else ""
    screen.print(f"Next: {again}{COMMAND} {then}", markup=False)
