"""The order in which a host makes the measurements of a study."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from drivelab.plan.plan import Plan
from drivelab.stages.platforms import host_of


def positions(plans: Iterable[Plan], seed: int | None, drives: Sequence[str] | None = None) -> dict[str, int]:
    """Position of each recording among those of its host, from 0.

    Without a seed, as the plans come. With one, in randomised complete blocks (Montgomery, Design and Analysis of
    Experiments, chapter 4): a run is a block, which has every combination once, and within it they are in random
    order. So a course of time - the room warms up, the drives wear - spreads over all drives, and what differs from
    block to block is the same for all.

    With `drives`, those of a fleet, a host does all of one drive before the next: in that order, or with a seed in a
    random one, and only within a drive each run in random order. The drives are in no blocks then: a course of time is
    a difference between drives, only not one that follows their names.
    """
    hosts: dict[str, list[Plan]] = {}
    for plan in plans:
        hosts.setdefault(host_of(plan), []).append(plan)
    if seed is not None:
        for host, of_host in hosts.items():
            of_host.sort(key=lambda plan, host=host: (plan.run, _lot(seed, host, plan), plan.recording))  # type: ignore[misc]
    if drives is not None:
        for host, of_host in hosts.items():
            turn = {drive: place for place, drive in enumerate(_in_turn(drives, seed, host))}
            of_host.sort(key=lambda plan, turn=turn: turn[plan.sheet_drive])  # type: ignore[misc]
    return {plan.recording: position for of_host in hosts.values() for position, plan in enumerate(of_host)}


def _in_turn(drives: Sequence[str], seed: int | None, host: str) -> Sequence[str]:
    """Drives of a fleet in the order in which a host comes to them."""
    return drives if seed is None else sorted(drives, key=lambda drive: (_drawn(seed, host, drive), drive))


def _lot(seed: int, host: str, plan: Plan) -> bytes:
    """A number drawn by hashing: the same on every machine, and the same for the others when a drive is added.

    Drives that are measured at the same time draw one together.
    """
    who = plan.subject.get("simultaneous") or plan.sheet_drive
    platform = plan.subject.get("platform", {}).get("name", "")
    return _drawn(seed, host, plan.run, plan.measurement, platform, who)


def _drawn(seed: int, *of: object) -> bytes:
    return hashlib.sha256(repr((seed, *of)).encode()).digest()
