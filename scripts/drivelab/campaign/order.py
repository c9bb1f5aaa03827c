"""The order of a study's measurements on each host."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from drivelab.core.grouping import grouped
from drivelab.plan.hosts import host_of
from drivelab.plan.plan import Plan


def positions(plans: Iterable[Plan], seed: int | None, drives: Sequence[str] | None = None) -> dict[str, int]:
    """Return the position of each recording among the recordings of its host, from 0.

    Without a seed the plans keep their order. With a seed they form randomised complete blocks (Montgomery, Design and
    Analysis of Experiments, chapter 4): a run is a block with every combination once, in random order. So drift over
    time - the room warms up, the drives wear - spreads over all drives, and differences between blocks are the same for
    all drives.

    With `drives` (a fleet) a host finishes one drive before the next: in that order, or with a seed in random order;
    the seed also randomises each run within a drive. The drives are then not in blocks: drift over time looks like a
    difference between drives, but is independent of their names.
    """
    hosts = grouped(plans, host_of)
    if seed is not None:
        for host, of_host in hosts.items():
            of_host.sort(key=lambda plan, host=host: (plan.run, _lot(seed, host, plan), plan.recording))  # type: ignore[misc]
    if drives is not None:
        for host, of_host in hosts.items():
            turn = {drive: place for place, drive in enumerate(_in_turn(drives, seed, host))}
            of_host.sort(key=lambda plan, turn=turn: turn[plan.sheet_drive])  # type: ignore[misc]
    return {plan.recording: position for of_host in hosts.values() for position, plan in enumerate(of_host)}


def _in_turn(drives: Sequence[str], seed: int | None, host: str) -> Sequence[str]:
    """Return the drives of a fleet in the order in which a host measures them."""
    return drives if seed is None else sorted(drives, key=lambda drive: (_drawn(seed, host, drive), drive))


def _lot(seed: int, host: str, plan: Plan) -> bytes:
    """Return a hash for sorting: the same on every machine, and unchanged when other drives are added.

    Drives that are measured at the same time share one hash.
    """
    drives = plan.subject.get("simultaneous") or plan.sheet_drive
    platform = plan.subject.get("platform", {}).get("name", "")
    return _drawn(seed, host, plan.run, plan.measurement, platform, drives)


def _drawn(seed: int, *of: object) -> bytes:
    return hashlib.sha256(repr((seed, *of)).encode()).digest()
