"""What a study will do to its drives, for people to read before they agree to it."""

from __future__ import annotations

from dataclasses import dataclass

from drivelab.drives import holders, identity, signatures, sysfs
from drivelab.stages.ceilings import fastest_mib_s
from drivelab.stages.estimate import Estimate, assumed_mib_s, estimate
from drivelab.stages.planning import Campaign
from drivelab.units import format_amount, format_duration


@dataclass(frozen=True)
class Outlook:
    """One drive of a study: what it holds now, and what is left to be done to it."""

    drive: str
    device: str
    serial: str
    virtual: bool
    model: str
    capacity_bytes: int
    holds: tuple[str, ...]
    """Signatures of what will be erased, in words."""
    to_do: int
    """Measurements that are not recorded yet."""
    estimate: Estimate
    bandwidth_mib_s: float
    """Assumed for the estimate."""
    endurance_bytes: float | None
    applications: tuple[str, ...] = ()
    """Names of those that will run; how long they take and how much they write is not known beforehand."""

    def lines(self) -> list[str]:
        """For people."""
        head = f"{self.drive}: {self.model}, serial {self.serial}, {format_amount(self.capacity_bytes)}, {self.device}"
        if self.to_do == 0:
            return [f"{head}: all is recorded, nothing will be written"]
        span = self.estimate
        written = _span(format_amount(span.least_bytes), format_amount(span.most_bytes))
        time = _span(format_duration(span.least_s), format_duration(span.most_s))
        holds = ", ".join(self.holds) or "all that it holds; no file system or partition table was found"
        return [
            f"{head}",
            f"    will be erased: {'the content of the virtual drive' if self.virtual else holds}",
            f"    will be written: {written}{self._share()}",
            f"    will take: {time} at an assumed {self.bandwidth_mib_s:.0f} MiB/s"
            f"{', in simulated time' if self.device == 'virtual clock' else ''}",
            *(f"    not known beforehand: time and writes of the application {one}" for one in self.applications),
        ]

    def _share(self) -> str:
        if self.virtual:
            return ""
        if self.endurance_bytes is None:
            return "; its rated endurance is not in the drive sheet (column endurance_tbw)"
        shares = (
            100 * volume / self.endurance_bytes for volume in (self.estimate.least_bytes, self.estimate.most_bytes)
        )
        least, most = ("under 0.01 %" if share < 0.01 else f"{share:.2g} %" for share in shares)
        return f", {_span(least, most)} of its rated {self.endurance_bytes / 1e12:g} TB"


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def outlook(campaign: Campaign) -> list[Outlook]:
    """A row for each drive of the study; reads the drives that are attached, writes nothing."""
    return [_outlook(campaign, drive) for drive in dict.fromkeys(plan.sheet_drive for plan in campaign.here)]


def _outlook(campaign: Campaign, drive: str) -> Outlook:
    row = campaign.sheet[drive]
    plans = [plan for plan in campaign.here if plan.sheet_drive == drive]
    left = [plan for plan in plans if not (plan.recording_path / "recording.json").exists()]
    name = None if row.virtual is not None else sysfs.kernel_name(row.device)
    facts = identity.describe(name) if name else {"model": "virtual drive", "transport": None, "link": None}
    capacity_bytes = campaign.capacity_bytes(plans[0])
    transport = str(facts["transport"])
    fastest = fastest_mib_s(plans[0], transport, str(facts["link"]))
    bandwidth_mib_s = min(assumed_mib_s(plans[0], transport), fastest)
    spans = (estimate(plan, capacity_bytes, bandwidth_mib_s, campaign.traces_of(plan), fastest) for plan in left)
    total = sum(spans, Estimate())
    applications = tuple(
        dict.fromkeys(plan.subject["application"]["name"] for plan in left if "application" in plan.subject)
    )
    device = f"/dev/{name}" if name else "virtual clock" if plans[0].clock == "virtual" else row.device
    return Outlook(
        drive, device, row.serial, row.virtual is not None, str(facts["model"] or "unknown model"), capacity_bytes,
        _holds(name), len(left), total, bandwidth_mib_s, row.endurance_bytes, applications,
    )  # fmt: skip


def _holds(name: str | None) -> tuple[str, ...]:
    if name is None:
        return ()
    try:
        found = signatures.read([name, *holders.partitions(name, holders.Host())])
    except OSError as error:
        return (f"what cannot be read ({error})",)
    return tuple(dict.fromkeys(one.words for one in found))
