"""What a study will do to its drives, and which differences it can show, before users agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from drivelab.campaign.ceilings import fastest_mib_s
from drivelab.campaign.estimate import Estimate, assumed_mib_s, estimate
from drivelab.campaign.planning import Campaign
from drivelab.campaign.subjects import capacity_bytes_of
from drivelab.core.grouping import grouped
from drivelab.core.units import counted, format_amount, format_duration, format_percentage, format_span
from drivelab.criteria.repeats import FEWEST
from drivelab.drives import holders, identity, signatures, sysfs
from drivelab.drives.openers import Host
from drivelab.plan.hosts import host_of, still_elsewhere, this_host
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST
from drivelab.recording.folders import is_recorded

ASSUMED_CAPACITY_BYTES = 10**12
"""Assumed for a drive that is not attached here."""


@dataclass(frozen=True)
class Test:
    """All runs of one measurement of a drive, on one platform if the study has platforms."""

    drive: str
    measurement: str
    runs: int
    to_do: int
    reduced: bool
    estimate: Estimate
    """Cost of the remaining runs."""


@dataclass(frozen=True)
class Outlook:
    """One drive of a study: its present content, and the work left."""

    drive: str
    device: str
    serial: str
    virtual: bool
    model: str
    capacity_bytes: int
    holds: tuple[str, ...]
    """Descriptions of the signatures that will be erased."""
    to_do: int
    """Number of measurements that are not recorded yet."""
    estimate: Estimate
    bandwidth_mib_s: float
    """Bandwidth assumed for the estimate."""
    ceiling_mib_s: float | None
    """Bandwidth that bounds the written bytes: a real drive's link, a virtual drive's bus; None if no bandwidth bounds
    them."""
    endurance_bytes: float | None
    applications: tuple[str, ...] = ()
    """Names of the applications that will run; their time and writes are not known beforehand."""
    attached: bool = True
    """Whether capacity and content are known; otherwise the capacity is ASSUMED_CAPACITY_BYTES."""
    by_host: Mapping[str, Estimate] = field(default_factory=dict)
    """The estimate by host."""
    firmware: str | None = None
    """Firmware that the drive sheet requires."""
    tests: tuple[Test, ...] = ()
    destroys: bool = True
    """Whether data of a user are lost: not those of a virtual drive, and none by a temporary file or by reads."""

    def lines(self) -> list[str]:
        """Return the printed lines of this drive."""
        pinned = f", pinned to firmware {self.firmware}" if self.firmware else ""
        capacity = format_amount(self.capacity_bytes) if self.attached else "capacity not known here"
        head = f"{self.drive}: {self.model}, serial {self.serial}{pinned}, {capacity}, {self.device}"
        hosts = [host for host in self.by_host if host != ANY_HOST]
        head += f" of host {', '.join(hosts)}" if hosts else "" if self.attached else ", which is not attached"
        if self.to_do == 0:
            return [f"{head}: all measurements are recorded, nothing will be written"]
        span = self.estimate
        written = format_span(span.least_bytes, span.most_bytes, format_amount)
        time = format_span(span.least_s, span.most_s, format_duration)
        holds = ", ".join(self.holds) or "all data"
        if self.attached and not self.holds:
            holds += "; no file system or partition table was found"
        if not self.destroys:
            holds = "the content of the virtual drive" if self.virtual else "nothing"
        return [
            f"{head}",
            f"    will be erased: {holds}",
            f"    will be written: {written}{self._share()}{self.premises}",
            f"    will take: {time} at an assumed {self.bandwidth_mib_s:.0f} MiB/s"
            f"{', in simulated time' if self.device == 'virtual clock' else ''}",
            *(f"    not known beforehand: time and writes of the application {name}" for name in self.applications),
        ]

    @property
    def premises(self) -> str:
        """Describe the assumptions of the range of written bytes; empty if there are none."""
        capacity = "" if self.attached else f"if its capacity is {format_amount(self.capacity_bytes)}"
        ceiling = f"upper bound if {condition}" if (condition := self._ceiling()) else ""
        premises = [premise for premise in (capacity, ceiling) if premise]
        return f" ({'; '.join(premises)})" if premises else ""

    def _ceiling(self) -> str:
        if self.ceiling_mib_s is None:
            return ""
        link = "its bus" if self.virtual else "its link" if self.attached else "any link"
        return f"its cells write at {self.ceiling_mib_s:,.0f} MiB/s all the time, the limit of {link}"

    def _share(self) -> str:
        if self.virtual:
            return ""
        if self.endurance_bytes is None:
            return "; its rated endurance is not in the drive sheet (column endurance_tbw)"
        volumes = self.estimate.least_bytes, self.estimate.most_bytes
        shares = (100 * volume / self.endurance_bytes for volume in volumes)
        least, most = (
            "under 0.01 %" if share < 0.01 else f"{share:.2g} %" if share < 99.5 else f"{share:,.0f} %"
            for share in shares
        )
        return f", {format_span(least, most, str)} of its rated {self.endurance_bytes / 1e12:g} TB"


def outlook(campaign: Campaign) -> list[Outlook]:
    """Return an outlook for each drive of the study; reads attached drives, writes nothing."""
    plans = grouped(campaign.here, lambda plan: plan.sheet_drive)
    estimates = Estimates(campaign)
    return [_outlook(campaign, drive, of_drive, estimates) for drive, of_drive in plans.items()]


class Estimates:
    """Estimates of a campaign's plans; estimates that drives share are computed once."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._known: dict[tuple[object, ...], Estimate] = {}

    def of(self, plan: Plan, capacity_bytes: int, bandwidth_mib_s: float, fastest_mib_s: float | None) -> Estimate:
        """Return the estimate of `drivelab.campaign.estimate.estimate`."""
        drive = plan.subject["drive"]
        key = (
            id(plan.subject["measure"]), plan.subject["condition"]["purge"], plan.measurement,
            str(drive.get("virtual")), drive.get("over_provisioning"), str(plan.file_system), capacity_bytes,
            bandwidth_mib_s, fastest_mib_s,
        )  # fmt: skip
        if key not in self._known:
            traces = self._campaign.traces.of(plan)
            self._known[key] = estimate(plan, capacity_bytes, bandwidth_mib_s, traces, fastest_mib_s)
        return self._known[key]


def _outlook(campaign: Campaign, drive: str, plans: list[Plan], estimates: Estimates) -> Outlook:
    row = campaign.sheet[drive]
    left = [plan for plan in plans if not is_recorded(plan)]
    is_file = row.size_bytes is not None
    name = None if row.virtual is not None or is_file else _attached(row.device, plans)
    facts = _facts(row.virtual is not None, name)
    if is_file:
        facts = {**facts, "model": "temporary file"}
    attached = row.virtual is not None or name is not None or is_file
    capacity_bytes = capacity_bytes_of(plans[0]) if attached else ASSUMED_CAPACITY_BYTES
    transport = str(facts["transport"])
    fastest = fastest_mib_s(plans[0], transport, str(facts["link"]))
    bandwidth_mib_s = min(assumed_mib_s(plans[0], transport), fastest)
    by_host: dict[str, Estimate] = {}
    by_test = {(plan.drive, plan.measurement): Estimate() for plan in plans}
    ceiling_mib_s = None
    for plan in left:
        bounded = estimates.of(plan, capacity_bytes, bandwidth_mib_s, fastest)
        slower = estimates.of(plan, capacity_bytes, bandwidth_mib_s, None)
        if bounded.most_bytes > slower.most_bytes:
            ceiling_mib_s = fastest
        by_host[host_of(plan)] = by_host.get(host_of(plan), Estimate()) + bounded
        by_test[plan.drive, plan.measurement] += bounded
    total = sum(by_host.values(), Estimate())
    applications = tuple(
        dict.fromkeys(plan.subject["application"]["name"] for plan in left if "application" in plan.subject)
    )
    runs, to_do = (Counter((plan.drive, plan.measurement) for plan in some) for some in (plans, left))
    reduced = {(known.plan.drive, known.plan.measurement) for known in campaign.plans if known.altered}
    tests = tuple(Test(*test, runs[test], to_do[test], test in reduced, sums) for test, sums in by_test.items())
    device = f"/dev/{name}" if name else "virtual clock" if plans[0].clock == "virtual" else row.device
    return Outlook(
        drive, device, row.serial, row.virtual is not None, str(facts["model"] or "unknown model"), capacity_bytes,
        _holds(name), len(left), total, bandwidth_mib_s, ceiling_mib_s, row.endurance_bytes, applications, attached,
        by_host, row.firmware, tests, plans[0].destroys,
    )  # fmt: skip


def _facts(virtual: bool, name: str | None) -> Mapping[str, object]:
    if name is not None:
        return identity.describe(name)
    return {"model": "virtual drive" if virtual else "model not known here", "transport": None, "link": None}


def _attached(device: str, plans: Iterable[Plan]) -> str | None:
    """Return the kernel name of a drive; None if it is not attached here."""
    if not {host_of(plan) for plan in plans} & {ANY_HOST, this_host()}:
        return None
    try:
        return sysfs.kernel_name(device)
    except OSError:
        return None


def _holds(name: str | None) -> tuple[str, ...]:
    if name is None:
        return ()
    try:
        read = signatures.read([name, *holders.partitions(name, Host())])
    except OSError as error:
        return (f"unreadable content ({error})",)
    return tuple(dict.fromkeys(signature.words for signature in read))


def verdict_outlook(campaign: Campaign) -> str | None:
    """Return which differences the study can show, and how many recordings its margin needs.

    The scatter between recordings is that of the study's finished ones, else assumed. None for a study that compares
    nothing.
    """
    from drivelab.analysis.deltas.power import MOST_RECORDINGS, POWER, detectable, recordings_for

    study = campaign.study
    if len(study.subjects) < 2 or not campaign.plans:
        return None
    confidence_pct, margin = study.confidence_pct, math.log1p(study.margin_pct / 100)
    recordings = min(Counter((planned.plan.drive, planned.plan.measurement) for planned in campaign.plans).values())
    if study.growth is not None:
        recordings = study.growth.most
        confidence_pct = study.growth.confidence_pct(confidence_pct, recordings)
    alpha = 1 - confidence_pct / 100
    scatter, source = _scatter(campaign)
    seen = max(recordings, FEWEST)
    least = 100 * math.expm1(detectable(scatter, seen, alpha))
    needed = recordings_for(scatter, margin, alpha)
    if recordings < FEWEST:
        begin = f"none with {counted(recordings, 'recording')} of each drive and measurement; {seen} would show"
    else:
        begin = f"{'at most ' if study.growth else ''}{seen} recordings of each drive and measurement show"
    end = ""
    if needed is None or needed > seen:
        how_many = f"more than {MOST_RECORDINGS}" if needed is None else needed
        end = f"; {how_many} would show the margin of {format_percentage(study.margin_pct)} %"
    return (
        f"Verdicts: {begin} a difference of {format_percentage(least)} % or more with probability {100 * POWER:.0f} %, "
        f"tested alone, if recordings scatter by {format_percentage(100 * scatter)} % ({source}){end}."
    )


def _scatter(campaign: Campaign) -> tuple[float, str]:
    """Return the standard deviation of the logarithm between recordings, and where it is from."""
    from drivelab.analysis.deltas.power import ASSUMED_SCATTER, scatter_of
    from drivelab.tables import io

    path = campaign.study.results / "tables/summary.parquet"
    scatter = scatter_of(io.read(path, "summary")) if path.exists() else None
    return (ASSUMED_SCATTER, "assumed") if scatter is None else (scatter, "as those so far")


def headline(campaign: Campaign) -> str:
    """Return a summary of the study, with reasons for anything unexpected, and a table of what other hosts measure."""
    study = campaign.study
    on = f" on {len(study.platforms)} platforms; this is host '{this_host()}'" if study.platforms else ""
    drives, measurements = counted(len(study.drives), "drive"), counted(len(campaign.plans), "measurement")
    text = f"Study {study.name}: {drives}{on}, {measurements}."
    if not campaign.basis_is_there:
        text += f" No deltas yet, because another host still has to measure the basis, {study.basis}."
    if any(planned.plan.virtual for planned in campaign.plans):
        clock, reason = campaign.clock
        text += " Virtual drives in real time." if clock == "wall" else f" Virtual clock, not real time: {reason}."
    for name, source in study.traces.items():
        if source.capture is not None and not campaign.traces.is_captured(name):
            text += (
                f" Trace {name}: the shipped trace, because this host cannot trace: {campaign.traces.cannot_capture}."
            )
    table = still_elsewhere((planned.plan for planned in campaign.elsewhere), study.path)
    return "\n".join(filter(None, [text, table]))
