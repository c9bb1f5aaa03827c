"""`drivelab bench-host`: measure what this host gives without a drive."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.core.terminal import broken, say
from drivelab.core.units import counted

_WIDTH = 100


def add_parser(commands: Any) -> None:
    """Register `bench-host`."""
    parser = commands.add_parser(
        "bench-host",
        help="measure what this host gives without a drive, and what limits it",
        description="Measures I/Os per second on null targets, and how late the host wakes a sleeping thread. Shows "
        "where the interrupts of drives go, and what to change. Changes nothing, and reads from no drive.",
    )
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help="drives, such as nvme0n1 (default: all)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(handler=_bench_host)


def _bench_host(options: argparse.Namespace) -> int:
    from drivelab.drives.identity import attached, attached_name
    from drivelab.run.bench_host import bench_host

    drives = [attached_name(device, "bench-host") for device in options.devices] or attached()
    result = bench_host(drives, say=lambda text: say(f"measuring: {text}", stderr=True))
    if options.json:
        print(json.dumps(result, indent=1, ensure_ascii=False))
        return 0
    print("\n".join(report(result)))
    return 0


def report(result: Mapping[str, Any]) -> list[str]:
    """Return lines of at most 100 columns: ceilings, wake-ups, drives, settings, then limits and advice."""
    width = max(len(ceiling["load"]) for ceiling in result["ceilings"])
    lines = [f"I/Os per second that this host gives ({result['engine']})"]
    lines += [f"  {ceiling['load']:{width}}  {ceiling['words']}" for ceiling in result["ceilings"]]
    meanings = {target["target"]: target["meaning"] for ceiling in result["ceilings"] for target in ceiling["targets"]}
    lines += [line for target, meaning in meanings.items() for line in broken(f"  {target}: {meaning}", _WIDTH)]
    if result["wakeups_us"] is not None:
        late = ", ".join(f"{name} {us:,.0f} µs" for name, us in result["wakeups_us"].items())
        lines += ["", f"A sleeping thread wakes up late by: {late}"]
    for title, texts in (
        ("Interrupts", list(map(_interrupts, result["drives"]))),
        ("Settings", [f"{row['name']}: {row['state']}" for row in result["settings"]]),
        ("What these numbers cannot say", result["limits"]),
        ("What to change", result["advice"] or ["Nothing: the host is as drivelab wants it."]),
    ):
        lines += _section(title, texts)
    return lines


def _section(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield from ("", title)
        for text in texts:
            yield from broken(f"  {text}", _WIDTH)


def _interrupts(place: Mapping[str, Any]) -> str:
    cpus = ", ".join(map(str, place["interrupt_cpus"])) or "not known"
    node = "" if place["node"] is None else f", NUMA node {place['node']}"
    queues = counted(place["queues"], "queue")
    return f"{place['drive']}: {queues}, interrupts on CPUs: {cpus}{node}"
