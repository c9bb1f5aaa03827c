"""What a study has taken and may take yet, against what it is allowed to."""

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
    """Raise UserError if a study may exceed its budget, before anything is touched; `rows` are its outlook."""
    if found := exceeded(campaign, rows):
        raise refusal(campaign, found)


def refusal(campaign: Campaign, found: Sequence[str]) -> UserError:
    """The error of a study that may exceed its budget, with the remedy; `found` is what `exceeded` gives."""
    return UserError(
        f"{campaign.study.path}: key 'budget' may be exceeded: {'; '.join(found)}; allow more, or measure less or "
        "shorter. Nothing was written."
    )


def exceeded(campaign: Campaign, rows: Sequence[Outlook]) -> list[str]:
    """In words, by how much a study may exceed its budget, and who; empty if it cannot, as when nothing is left to do.

    What was spent is told by all that was recorded for the study (`drivelab.stages.spent`); what is left to be done
    counts with its upper estimate. Raises UserError for a share of an endurance that the drive sheet does not tell, for
    a time where all is simulated, and for a journal that is damaged.
    """
    budget = campaign.study.budget
    found: list[str] = []
    if budget.time_s is not None:
        found += _too_long(campaign, rows, budget.time_s)
    if budget.written_bytes is None and budget.endurance is None:
        return found
    spent = written_bytes(campaign)
    for row in (one for one in rows if one.to_do):
        whole_bytes = spent.get(row.serial, 0.0) + row.estimate.most_bytes
        words = f"drive '{row.drive}' may be written {format_amount(whole_bytes)}{row.assumption} of"
        if budget.written_bytes is not None and whole_bytes > budget.written_bytes:
            found.append(_words(words, format_amount(budget.written_bytes), whole_bytes / budget.written_bytes))
        if budget.endurance is not None:
            if row.endurance_bytes is None:
                raise UserError(
                    f"{campaign.study.path}: key 'budget.endurance': {campaign.study.drives_sheet} does not say the "
                    f"rated endurance of drive '{row.drive}'; enter it in the column endurance_tbw"
                )
            allowed_bytes = budget.endurance * row.endurance_bytes
            if whole_bytes > allowed_bytes:
                share = f"{100 * budget.endurance:g} % of its endurance, {format_amount(allowed_bytes)}"
                found.append(_words(words, share, whole_bytes / allowed_bytes))
    return found


def _words(what: str, allowed: str, ratio: float) -> str:
    return f"{what} {allowed} allowed, {format_factor(ratio)} times as much"


def together_s(drives_s: Collection[float], places: int) -> float:
    """Seconds that a host takes for the drives that take so many each: so many at a time as it has places, but none of
    them twice at once."""
    return max(sum(drives_s) / places, max(drives_s, default=0.0))


def _too_long(campaign: Campaign, rows: Sequence[Outlook], allowed_s: float) -> Iterator[str]:
    """A host takes what `together_s` says, of its measurements in real time.

    Drives without a host are measured on this one, where the study is run.
    """
    simulated = {one.plan.sheet_drive for one in campaign.wanted if one.plan.clock == "virtual"}
    if all(one.plan.sheet_drive in simulated for one in campaign.wanted):
        raise UserError(
            f"{campaign.study.path}: key 'budget.time' is of the host's time, but all drives are simulated, which "
            f"takes it hardly any ({campaign.clock[1]}); leave it out"
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
        # What was measured on a host that nothing tells may have been measured on this one.
        of_drives = taken_s[host]
        for place in (host, ANY_HOST) if ANY_HOST in called else (host,):
            for serial, seconds in spent_s.get(place, {}).items():
                of_drives[serial] = of_drives.get(serial, 0.0) + seconds
        # There are as many places as the least that any measurement at work allows.
        places = min(campaign.study.concurrency_of(name) for name in called)
        needed_s = together_s(of_drives.values(), places)
        if needed_s > allowed_s:
            who = "the host" if called == {ANY_HOST} else f"host '{host}'"
            yield _words(
                f"{who} may take {format_duration(needed_s)} of", format_duration(allowed_s), needed_s / allowed_s
            )
