"""What the numbers of a quick look show besides the drive: three warnings, each begins with what was seen."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from drivelab.analysis.values.quick_look import BANDWIDTH, CPU_SHARE, LATENCY, Value
from drivelab.core.lock import is_held
from drivelab.core.private import run_directory
from drivelab.core.units import format_amount, format_percentage, some
from drivelab.drives import identity
from drivelab.drives.arrays import CLEAN, array_state
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import read_text
from drivelab.host.machine import Machine
from drivelab.host.readers import power_supply
from drivelab.host.stack.device_class import HARD_DISK, MEMORY, NVME_SSD, RAM_DISK, SAS_SSD, SATA_SSD
from drivelab.host.stack.stack import disks
from drivelab.host.stack.volumes import Layer
from drivelab.plan.places import COMMAND
from drivelab.quick.activity import Process, Sample, take
from drivelab.quick.view import amount
from drivelab.report.numbers import capital
from drivelab.telemetry.drive_sensors import hwmon_folders, temperature_source

BUSY, BETWEEN, ROUGH = "busy", "between", "rough"
KINDS: Mapping[str, str] = {
    BUSY: "Something else slows the drive or the host down. Stop it or look again later; "
    f"`{COMMAND} doctor` shows the settings of the host.",
    BETWEEN: "The numbers are not those of the drive alone. A larger --size gets past caches; "
    f"`{COMMAND} doctor` shows the settings of CPU, link and cache.",
    ROUGH: "This look is rough. Free some space, or look with a larger --size or a longer --time.",
}
"""Meaning and remedy of each kind of warning, in their order."""
Cause = tuple[str, str]
"""The kind, and what was seen: a clause."""

BUSY_SHARE = 0.10
"""Share of all CPUs. Ours: an idle desktop uses 1 to 5 %."""
STEAL_SHARE = 0.02
"""Share of all CPUs. Ours: on a host that is not overcommitted it is 0."""
DISK_BYTES_PER_S, DISK_IOPS = 2 << 20, 50
"""Ours: an idle desktop writes less, on average over a second."""
HEAT_MARGIN_C = 10
"""Ours: a drive becomes 10 to 30 °C warmer under load."""
FREQUENCY_SHARE = 0.5
"""Share of the maximum, under load. Ours: base frequencies are mostly above half of the maximum."""
FULL_SHARE = 0.90
"""Ours: many SSDs have a dynamic SLC cache that shrinks with the free space."""
ROUGH_PCT = 50.0
"""Half of the interval of a mean. Ours: with three rounds, their standard deviation is then 20 % of the mean."""
FASTEST_US = {
    ("commit", NVME_SSD): 10, ("commit", SATA_SSD): 35, ("commit", SAS_SSD): 35, ("commit", HARD_DISK): 1500,
    ("read", NVME_SSD): 5, ("read", SATA_SSD): 5, ("read", SAS_SSD): 5, ("read", HARD_DISK): 1000,
}  # fmt: skip
"""Latencies that no such drive can have, by test and class: a cache answers.

Public: fsync alone takes 12 µs and more on NVMe drives with power loss protection (smalldatum, January 2026). Ours:
write and flush are two commands of at least 20 µs each on SATA and SAS; the fastest drives (Optane P5800X) read in
6 µs; half a turn at 15,000 rpm takes 2 ms.
"""
_EARLY_COMMIT_US = 20.0
"""For other classes. Ours: a flush through a hypervisor or a network takes longer."""
_LEAST_COMMIT_SHARE = 0.5
"""Commit to write at QD1. A commit contains a write, so ours leaves room for noise and for appends in a cache."""
_LINK_MARGIN = 1.02
_LINK = re.compile(r"([\d.]+) GT/s.* x(\d+)")
_CODING = {8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 22.5: 128 / 150, 64.0: 242 / 256, 128.0: 242 / 256}
"""Share of data by GT/s: PCIe 3.0 to 5.0, SAS-4, PCIe 6.0 and 7.0 (flits); else 8b/10b: SATA, SAS-3, PCIe 1.x, 2.x."""
_PROCESS_SHARE = 0.05
"""Share of one CPU: processes that use less are not named."""
_SPIN_S = 0.05
_OWN_MANAGEMENT = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose governor `powersave` also reaches the highest frequency (admin-guide/pm/intel_pstate)."""


def warnings(causes: Iterable[Cause]) -> tuple[str, ...]:
    """Return at most one warning of each kind: what was seen, what it means, what to do."""
    causes = list(dict.fromkeys(causes))
    seen = {kind: "; ".join(text for other, text in causes if other == kind) for kind in KINDS}
    return tuple(f"{capital(text)}. {KINDS[kind]}" for kind, text in seen.items() if text)


def disturbances(
    names: Sequence[str],
    host: Host = Host(),  # noqa: B008 - immutable
    pause: Callable[[], None] = lambda: time.sleep(1.0),
) -> tuple[Cause, ...]:
    """Watch the host and the disks `names` for a second, and return what would disturb a measurement now."""
    first = take(names, host)
    pause()
    return (
        *((BUSY, f"drivelab measures {study} now") for study in running_studies()),
        *activity(first, take(names, host)),
    )


def of_places(places: Sequence[tuple[Path, tuple[Layer, ...]]], host: Host = Host()) -> tuple[Cause, ...]:  # noqa: B008
    """Watch the host for a second, without writing, and return what speaks against a measurement at `places` now."""
    names = [name for _, layers in places for name in disks(layers)]
    found = [*disturbances(names, host), *_heat(names, host), *_frequency(host)]
    if any(part.value == "battery" for part in power_supply(Machine(host.sys_root, host.proc_root), "") or ()):
        found.append((BUSY, "the host runs on battery and saves power"))
    for path, layers in places:
        found += [*_arrays(layers, host), *_space(path)]
    return tuple(found)


def activity(first: Sample, second: Sample) -> Iterator[Cause]:
    """Yield what other programs and the hypervisor did between two samples."""
    elapsed_s, total_s = second.time_s - first.time_s, second.cpu_total_s - first.cpu_total_s
    if elapsed_s <= 0 or total_s <= 0:
        return
    share = (second.cpu_busy_s - first.cpu_busy_s) / total_s
    if share > BUSY_SHARE:
        names = _busiest(first, second, lambda process: process.cpu_s, _PROCESS_SHARE)
        yield BUSY, f"other programs use {format_percentage(100 * share)} % of the CPU{names}"
    stolen = (second.cpu_steal_s - first.cpu_steal_s) / total_s
    if stolen > STEAL_SHARE:
        yield BUSY, f"the hypervisor takes {format_percentage(100 * stolen)} % of the CPU time for others"
    for name, after in second.disks.items():
        before = first.disks.get(name, after)
        bytes_per_s = (after.moved_bytes - before.moved_bytes) / elapsed_s
        iops = (after.requests - before.requests) / elapsed_s
        if bytes_per_s > DISK_BYTES_PER_S or iops > DISK_IOPS:
            names = _busiest(first, second, lambda process: process.io_bytes, DISK_BYTES_PER_S / 20)
            yield BUSY, f"other I/O reaches {name}: {format_amount(bytes_per_s)}/s, {iops:,.0f} IOPS{names}"


def _busiest(first: Sample, second: Sample, counter: Callable[[Process], float | None], least_per_s: float) -> str:
    """Return the names of the processes whose counter grew most, as ` (name PID, ...)`."""
    elapsed_s = max(second.time_s - first.time_s, 1e-9)
    growth = []
    for key, process in second.processes.items():
        earlier = first.processes.get(key)
        before, after = counter(earlier) if earlier else 0.0, counter(process)
        if before is not None and after is not None and (after - before) / elapsed_s > least_per_s:
            growth.append((after - before, f"{process.name} {key[0]}"))
    names = [name for _, name in sorted(growth, reverse=True)]
    return f" ({some(names, 3)})" if names else ""


def running_studies() -> tuple[str, ...]:
    """Return the measurements that hold a place of this host (see `drivelab.run.places`), without taking one."""
    found = []
    for path in sorted((run_directory() / "places").glob("*.json")):
        held = is_held(path)
        try:
            place = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # removed or rewritten at this moment
            place = {"who": "a measurement", "until_s": 0.0}
        if held or place["until_s"] > time.time():
            found.append(str(place["who"]))
    return tuple(found)


def _heat(names: Iterable[str], host: Host) -> Iterator[Cause]:
    """Compare temperatures with the warning temperature, or else the critical one (Documentation/hwmon/nvme)."""
    for name in names:
        try:
            source = temperature_source(name, host.sys_root)
            values = source.read() if source else {}
        except OSError:  # the sensor does not answer, for example in a sleeping drive
            continue
        limit_c = values.get("temperature_limit_c")
        for folder in hwmon_folders(name, host.sys_root):
            text = read_text(folder / "temp1_crit") or ""
            if limit_c is None and text.isdecimal() and int(text):
                limit_c = int(text) / 1000
        now_c = values.get("temperature_c")
        if now_c is not None and limit_c is not None and now_c > limit_c - HEAT_MARGIN_C:
            yield BUSY, f"{name} has {now_c:.0f} °C, near its limit of {limit_c:.0f} °C"


def _frequency(host: Host) -> Iterator[Cause]:
    policies = sorted((host.sys_root / "devices/system/cpu/cpufreq").glob("policy*"))
    if not policies:
        return
    governor, driver = (read_text(policies[0] / f"scaling_{name}") for name in ("governor", "driver"))
    if governor == "powersave" and driver not in _OWN_MANAGEMENT:
        yield BUSY, "the CPU stays at its lowest frequency (governor powersave)"
        return
    end_s = time.monotonic() + _SPIN_S
    while time.monotonic() < end_s:  # the frequency under load
        pass
    limit, now, most = (_highest_mhz(policies, name) for name in ("scaling_max", "scaling_cur", "cpuinfo_max"))
    for value, words in ((limit, "may use at most"), (now, "reaches under load")):
        if value < FREQUENCY_SHARE * most:
            yield BUSY, f"the CPU {words} {value:,.0f} of {most:,.0f} MHz"
            return


def _highest_mhz(policies: Iterable[Path], name: str) -> float:
    """Return the frequency of the fastest CPU; infinity for one that is not known, so that nothing is compared."""
    values = [int(text) / 1000 for policy in policies if (text := read_text(policy / f"{name}_freq") or "").isdecimal()]
    return max(values, default=0.0 if name == "cpuinfo_max" else float("inf"))


def _arrays(layers: tuple[Layer, ...], host: Host) -> Iterator[Cause]:
    for layer in layers:
        array = array_state(layer.name, host.sys_root) if layer.kind == "md" else None
        if array is not None and array.state != CLEAN:
            yield BUSY, f"the array {array.name} is {array.words}"


def _space(path: Path) -> Iterator[Cause]:
    if not (path.is_dir() or path.is_file()):
        return
    about = os.statvfs(path)
    used, available = about.f_blocks - about.f_bfree, about.f_bavail  # as df(1) counts
    if used > FULL_SHARE * (used + available):
        share = format_percentage(100 * used / (used + available))
        yield ROUGH, f"the file system is {share} % full, so an SSD has a smaller cache and collects more garbage"


def of_values(values: Sequence[Value], device_class: str, layers: tuple[Layer, ...]) -> Iterator[Cause]:
    """Yield what the values of a place show besides its drive: memory, a cache, a slow link, the CPU, noise."""
    if device_class in (MEMORY, RAM_DISK):
        yield BETWEEN, "this place is memory, not a drive"
        return
    names = disks(layers)
    known = {value.shown.key: value.value for value in values}
    for key, name in (("commit", "commit"), ("read", "random read")):
        least = FASTEST_US.get((key, device_class), _EARLY_COMMIT_US if key == "commit" else 0.0)
        if known.get(key, least) < least:
            yield BETWEEN, f"a {name} takes {amount(known[key], LATENCY)}, so a cache answers before the drive does"
        elif key == "commit" and key in known and known[key] < _LEAST_COMMIT_SHARE * known.get("write", 0.0):
            commit, write = amount(known[key], LATENCY), amount(known["write"], LATENCY)
            yield BETWEEN, f"a commit takes {commit} and a write {write}, so fsync probably does not wait for the drive"
    if len(names) == 1:
        facts = identity.describe(names[0])
        yield from of_link(values, str(facts.get("link") or ""), str(facts.get("link_max") or ""))
    if values and (busiest := max(values, key=lambda value: value.cpu_share)).cpu_share > CPU_SHARE:
        crypt = " with encryption" if any(layer.kind == "dm-crypt" for layer in layers) else ""
        share = format_percentage(100 * busiest.cpu_share)
        yield BETWEEN, f"{busiest.shown.words} uses {share} % of a CPU core{crypt}, so the host limits it"
    if (widest_pct := max((value.half_width_pct or 0.0 for value in values), default=0.0)) > ROUGH_PCT:
        yield ROUGH, f"the rounds of one test differ by ±{format_percentage(widest_pct)} %"


def of_link(values: Sequence[Value], link: str, fastest: str) -> Iterator[Cause]:
    """Compare sequential rates with what a link carries, and the link with the fastest that its ends support."""
    now, most = (
        link_mib_s(float(match[1]), float(match[2])) if (match := _LINK.search(text)) else 0.0
        for text in (link, fastest)
    )
    for value in values if now else ():
        if value.shown.metric == BANDWIDTH and value.value > _LINK_MARGIN * now:
            rates = f"{amount(value.value, BANDWIDTH)}, more than the {amount(now, BANDWIDTH)} of the link"
            yield BETWEEN, f"{value.shown.words} reaches {rates}, so a cache answers or data are compressed"
            break
    if now and now < most / _LINK_MARGIN:
        yield BETWEEN, f"the link runs at {link} of {fastest}, and carries {amount(now, BANDWIDTH)} only"


def link_mib_s(gt_s: float, lanes: float) -> float:
    """Return the data rate of a link without its protocol's overhead, from the speed per lane and its line code."""
    return gt_s * 1e9 * lanes * _CODING.get(gt_s, 0.8) / 8 / (1 << 20)
