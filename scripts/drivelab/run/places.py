"""Limit the concurrent measurements on a host, over all studies: concurrent measurements disturb each other."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from drivelab.core.lock import alone
from drivelab.core.private import make_private, own_run_directory
from drivelab.plan.hosts import host_of
from drivelab.plan.plan import Plan
from drivelab.recording.writer import write_json
from drivelab.run.progress import Progress

RESERVED_S = 60.0
"""How long a place is reserved for the next stage of a chain: Snakemake takes seconds to start it."""
_POLL_S = 0.5
_FILE = "concurrency.json"


def announce(results: Path, concurrency: Mapping[str, int]) -> None:
    """Write beside the results how many measurements at a time each host may make. No plan depends on it."""
    write_json(results / _FILE, dict(concurrency))


@contextmanager
def place(plan: Plan, progress: Progress, *, last: bool) -> Iterator[None]:
    """Take one of the host's places for a stage, and wait until one is free.

    The strictest limit of all running studies applies. Unless the stage is the `last` of its chain, the place stays
    reserved for the next stage for a while, so that no other study's measurement runs between preconditioning and
    measurement. Drives that are measured at the same time share a place. Simulated drives need none.
    """
    if plan.clock == "virtual":
        yield
        return
    folder = make_private(own_run_directory() / "places")
    path = folder / f"{_name(plan)}.json"
    descriptor = _enter(path, plan, progress)
    try:
        yield
    except BaseException:
        last = True
        raise
    finally:
        with _alone(folder):
            if last:
                path.unlink(missing_ok=True)
            else:
                _write(path, plan, time.time() + RESERVED_S)
            os.close(descriptor)


def _enter(path: Path, plan: Plan, progress: Progress) -> int:
    """Lock the place's file and return its descriptor; the kernel releases the lock when the process ends."""
    while True:
        with _alone(path.parent):
            others = _others(path)
            if len(others) < min([_limit(plan), *others.values()]):
                _write(path, plan, 0.0)
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                fcntl.flock(descriptor, fcntl.LOCK_SH)
                return descriptor
        progress.say(f"waits for its turn on this host; running now: {', '.join(others)}", 0.0)
        time.sleep(_POLL_S)


def _others(own: Path) -> dict[str, int]:
    """Return the holders of the other places with their limits; remove places of dead processes."""
    limits = {}
    for path in own.parent.glob("*.json"):
        if path == own:
            continue
        with path.open() as file:
            try:
                body = json.load(file)
            except ValueError:  # its writer was killed
                body = {"who": "something", "limit": 1, "until_s": 0.0}
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                limits[str(body["who"])] = int(body["limit"])
                continue
        if body["until_s"] > time.time():
            limits[str(body["who"])] = int(body["limit"])
        else:
            path.unlink()
    return limits


def _write(path: Path, plan: Plan, until_s: float) -> None:
    """Overwrite the file in place, because others may hold its lock; `_alone` keeps out readers."""
    who = f"{plan.recording} ({Path(plan.context['results']).absolute()})"
    path.write_text(json.dumps({"who": who, "limit": _limit(plan), "until_s": until_s}), encoding="utf-8")


def _limit(plan: Plan) -> int:
    try:
        return int(json.loads((Path(plan.context["results"]) / _FILE).read_text())[host_of(plan)])
    except (OSError, ValueError, KeyError):  # a stage that runs without a study
        return 1


def _name(plan: Plan) -> str:
    """Return the place's name: the same for all stages of a chain, and for drives measured at the same time."""
    drives = plan.subject.get("simultaneous") or plan.drive
    chain = (str(Path(plan.context["results"]).absolute()), plan.measurement, plan.run, drives)
    return hashlib.sha256(repr(chain).encode()).hexdigest()[:16]


def _alone(folder: Path) -> AbstractContextManager[None]:
    """Keep other processes from the places for a moment."""
    return alone(folder / ".lock", 0o644)
