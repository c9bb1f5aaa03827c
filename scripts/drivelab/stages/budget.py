"""Compare what a study has used, and may still use, with its budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from drivelab.config.study import ANY_HOST
from drivelab.errors import UserError
from drivelab.stages.outlook import Outlook
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import this_host
from drivelab.stages.spent import measured_s, written_bytes
from drivelab.units import format_amount, format_duration, format_factor


def require_within(campaign: Campaign, rows: Sequence[Outlook]) -> None:
    """Raise UserError if a study may exceed its budget; `rows` are its outlook."""
    if excesses := exceeded(campaign, rows):
        raise refusal(campaign, excesses)


def refusal(campaign: Campaign, excesses: Sequence[str]) -> UserError:
    """Return the error for a study that may exceed its budget; `excesses` come from `exceeded`."""
    return UserError(
        f"{campaign.study.path}: key 'budget' may be exceeded: {'; '.join(excesses)}; raise the budget, or measure "
        "less or shorter. Nothing was written."
    )


def exceeded(campaign: Campaign, rows: Sequence[Outlook]) -> list[str]:
    """Say which drives or hosts may exceed the budget, and by how much.

    Empty if none can. The recordings of the study show what was spent (`drivelab.stages.spent`). Remaining work counts
    with its upper estimate. Raises UserError for a share of an endurance that the drive sheet lacks, for a time budget
    if all drives are simulated, and for a damaged journal.
    """
    budget = campaign.study.budget
    excesses: list[str] = []
    if budget.time_s is not None:
        excesses += _too_long(campaign, rows, budget.time_s)
    if budget.written_bytes is None and budget.endurance is None:
        return excesses
    spent = written_bytes(campaign)
    for row in (row for row in rows if row.to_do):
        whole_bytes = spent.get(row.serial, 0.0) + row.estimate.most_bytes
        use = f"drive '{row.drive}' may be written {format_amount(whole_bytes)}{row.assumption} of"
        if budget.written_bytes is not None and whole_bytes > budget.written_bytes:
            excesses.append(_excess(use, format_amount(budget.written_bytes), whole_bytes / budget.written_bytes))
        if budget.endurance is not None:
            if row.endurance_bytes is None:
                raise UserError(
                    f"{campaign.study.path}: key 'budget.endurance': {campaign.study.drives_sheet} does not say the "
                    f"rated endurance of drive '{row.drive}'; enter it in the column endurance_tbw"
                )
            allowed_bytes = budget.endurance * row.endurance_bytes
            if whole_bytes > allowed_bytes:
                share = f"{100 * budget.endurance:g} % of its endurance, {format_amount(allowed_bytes)}"
                excesses.append(_excess(use, share, whole_bytes / allowed_bytes))
    return excesses


def _excess(use: str, allowed: str, ratio: float) -> str:
    return f"{use} {allowed} allowed, {format_factor(ratio)} times as much"


def together_s(drives_s: Collection[float], places: int) -> float:
    """Return the seconds that a host needs for drives that need `drives_s` each.

    The host measures `places` drives at a time, and each drive only once at a time.
    """
    return max(sum(drives_s) / places, max(drives_s, default=0.0))


def _too_long(campaign: Campaign, rows: Sequence[Outlook], allowed_s: float) -> Iterator[str]:
    """Say which hosts may exceed the time budget.

    Only measurements in real time count, by `together_s`. Drives without a host are measured on this host, where the
    study runs.
    """
    simulated = {wanted.plan.sheet_drive for wanted in campaign.wanted if wanted.plan.clock == "virtual"}
    if all(wanted.plan.sheet_drive in simulated for wanted in campaign.wanted):
        raise UserError(
            f"{campaign.study.path}: key 'budget.time' limits the host's time, but all drives are simulated, which "
            f"takes hardly any ({campaign.clock[1]}); remove the key"
        )
    names: dict[str, set[str]] = {}
    taken_s: dict[str, dict[str, float]] = {}
    for row in rows:
        for name, estimate in row.by_host.items() if row.drive not in simulated else ():
            host = this_host() if name == ANY_HOST else name
            names.setdefault(host, set()).add(name)
            of_drives = taken_s.setdefault(host, {})
            of_drives[row.serial] = of_drives.get(row.serial, 0.0) + estimate.most_s
    spent_s = measured_s(campaign)
    for host, called in names.items():
        # Measurements whose host is unknown may have run on this host.
        of_drives = taken_s[host]
        for place in (host, ANY_HOST) if ANY_HOST in called else (host,):
            for serial, seconds in spent_s.get(place, {}).items():
                of_drives[serial] = of_drives.get(serial, 0.0) + seconds
        # The strictest concurrency limit applies.
        places = min(campaign.study.concurrency_of(name) for name in called)
        needed_s = together_s(of_drives.values(), places)
        if needed_s > allowed_s:
            subject = "the host" if called == {ANY_HOST} else f"host '{host}'"
            yield _excess(
                f"{subject} may take {format_duration(needed_s)} of", format_duration(allowed_s), needed_s / allowed_s
            )
