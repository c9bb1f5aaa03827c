"""Say what speaks against starting a measurement now: load, heat, power, space, arrays, other studies."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.lock import is_held
from drivelab.core.private import run_directory
from drivelab.core.units import format_amount, format_percentage, some
from drivelab.drives.arrays import CLEAN, ArrayState, array_state
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import read_text
from drivelab.host.machine import Machine
from drivelab.host.readers import power_supply
from drivelab.host.stack.stack import disks
from drivelab.host.stack.volumes import Layer
from drivelab.plan.places import COMMAND
from drivelab.quick.activity import Process, Sample, take
from drivelab.telemetry.drive_sensors import hwmon_folders, temperature_source

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
_PROCESS_SHARE = 0.05
"""Share of one CPU: processes that use less are not named."""
_SPIN_S = 0.05
_OWN_MANAGEMENT = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose governor `powersave` also reaches the highest frequency (admin-guide/pm/intel_pstate)."""


@dataclass(frozen=True)
class Facts:
    """What does not change within a second; None and empty where unknown or absent."""

    temperatures_c: tuple[tuple[str, float, float], ...] = ()
    """Disk, temperature, limit."""
    frequency_mhz: float | None = None
    """That of the fastest CPU under load."""
    frequency_limit_mhz: float | None = None
    """What the host's settings allow."""
    frequency_max_mhz: float | None = None
    """What the CPU can do."""
    governor: str | None = None
    frequency_driver: str | None = None
    on_battery: bool = False
    used_bytes: int | None = None
    available_bytes: int | None = None
    """To users other than root, as df(1) shows it."""
    arrays: tuple[ArrayState, ...] = ()
    studies: tuple[str, ...] = ()
    """Measurements of drivelab that run now."""


def reasons(
    places: Sequence[tuple[Path, tuple[Layer, ...]]],
    host: Host = Host(),  # noqa: B008 - immutable
    pause: Callable[[], None] = lambda: time.sleep(1.0),
) -> tuple[str, ...]:
    """Watch the host for a second, without writing, and return what speaks against a measurement at `places` now."""
    names = [name for _, layers in places for name in disks(layers)]
    first = take(names, host)
    pause()
    second = take(names, host)
    found = [text for path, layers in places for text in sentences(first, second, read_facts(path, layers, host))]
    return tuple(dict.fromkeys(found))


def disturbances(
    names: Sequence[str],
    host: Host = Host(),  # noqa: B008 - immutable
    pause: Callable[[], None] = lambda: time.sleep(1.0),
) -> tuple[str, ...]:
    """Watch the host and the disks `names` for a second, and return which programs would disturb a measurement now."""
    first = take(names, host)
    pause()
    return sentences(first, take(names, host), Facts(studies=running_studies()))


def sentences(first: Sample, second: Sample, facts: Facts) -> tuple[str, ...]:
    """Return what speaks against a start: what was seen, why it matters, what to do."""
    return (
        *(f"drivelab measures now: {study}. Both measurements disturb each other. Wait until it ends; "
          f"`{COMMAND} watch` shows its progress." for study in facts.studies),
        *_load(first, second), *_traffic(first, second), *_heat(facts), *_frequency(facts), *_power(facts),
        *_space(facts), *_arrays(facts),
    )  # fmt: skip


def _load(first: Sample, second: Sample) -> Iterator[str]:
    total_s = second.cpu_total_s - first.cpu_total_s
    if total_s <= 0:
        return
    share = (second.cpu_busy_s - first.cpu_busy_s) / total_s
    if share > BUSY_SHARE:
        names = _busiest(first, second, lambda process: process.cpu_s, _PROCESS_SHARE)
        yield (
            f"Other programs use {format_percentage(100 * share)} % of the CPU{names}. Small I/Os become slower and "
            "less even. Stop these programs, or start again later."
        )
    stolen = (second.cpu_steal_s - first.cpu_steal_s) / total_s
    if stolen > STEAL_SHARE:
        yield (
            f"The hypervisor takes {format_percentage(100 * stolen)} % of the CPU time for other virtual machines. "
            "Latencies become longer at random. Repeat the measurement at another time, and compare."
        )


def _traffic(first: Sample, second: Sample) -> Iterator[str]:
    elapsed_s = second.time_s - first.time_s
    if elapsed_s <= 0:
        return
    for name, after in second.disks.items():
        before = first.disks.get(name, after)
        bytes_per_s = (after.moved_bytes - before.moved_bytes) / elapsed_s
        iops = (after.requests - before.requests) / elapsed_s
        if bytes_per_s > DISK_BYTES_PER_S or iops > DISK_IOPS:
            names = _busiest(first, second, lambda process: process.io_bytes, DISK_BYTES_PER_S / 20)
            yield (
                f"Other I/O reaches {name}: {format_amount(bytes_per_s)}/s, {iops:,.0f} IOPS{names}. "
                "It shares the drive with the measurement. Stop what causes it, or start again later."
            )


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


def _heat(facts: Facts) -> Iterator[str]:
    for name, now_c, limit_c in facts.temperatures_c:
        if now_c > limit_c - HEAT_MARGIN_C:
            yield (
                f"{name} has {now_c:.0f} °C, and its limit is {limit_c:.0f} °C. It throttles above the limit, so the "
                "numbers would show its cooling. Let it cool down, and improve the air flow."
            )


def _frequency(facts: Facts) -> Iterator[str]:
    maximum_mhz = facts.frequency_max_mhz
    advice = f"`{COMMAND} doctor` shows the settings."
    if facts.governor == "powersave" and facts.frequency_driver not in _OWN_MANAGEMENT:
        yield (
            "The CPU stays at its lowest frequency (governor powersave). Fast drives then wait for the CPU. "
            f"As root, `cpupower frequency-set -g performance`. {advice}"
        )
    elif maximum_mhz and facts.frequency_limit_mhz and facts.frequency_limit_mhz < FREQUENCY_SHARE * maximum_mhz:
        yield (
            f"The CPU may use at most {facts.frequency_limit_mhz:,.0f} of {maximum_mhz:,.0f} MHz. Fast drives then "
            f"wait for the CPU. Raise the limit in the power settings. {advice}"
        )
    elif maximum_mhz and facts.frequency_mhz and facts.frequency_mhz < FREQUENCY_SHARE * maximum_mhz:
        yield (
            f"The CPU reaches {facts.frequency_mhz:,.0f} of {maximum_mhz:,.0f} MHz under load. It is probably "
            f"throttled by heat or power, so latencies become longer. Check cooling and power supply. {advice}"
        )


def _power(facts: Facts) -> Iterator[str]:
    if facts.on_battery:
        yield (
            "The host runs on battery. It saves power, which slows down CPU, link and drive. "
            "Connect the power supply, and start again."
        )


def _space(facts: Facts) -> Iterator[str]:
    used, available = facts.used_bytes, facts.available_bytes
    if used is None or available is None:
        return
    full = used / (used + available) if used else 0.0
    if full > FULL_SHARE:
        yield (
            f"The file system is {format_percentage(100 * full)} % full. An SSD with little free space has a smaller "
            "cache and collects more garbage. Delete files, then run `fstrim -v` on it as root."
        )


def _arrays(facts: Facts) -> Iterator[str]:
    for array in facts.arrays:
        if array.state != CLEAN:
            yield (
                f"The array {array.name} is {array.words}. It is slower meanwhile. Replace a failed disk, or wait: "
                f"`cat /proc/mdstat` shows the progress, `mdadm --detail /dev/{array.name}` the disks."
            )


def read_facts(path: Path, layers: tuple[Layer, ...], host: Host = Host()) -> Facts:  # noqa: B008
    """Read what does not change within a second; spins one CPU for a moment to see its frequency under load."""
    machine = Machine(host.sys_root, host.proc_root)
    supply = power_supply(machine, "") or []
    policies = sorted((host.sys_root / "devices/system/cpu/cpufreq").glob("policy*"))
    if policies:
        _spin()
    space = os.statvfs(path) if path.is_dir() or path.is_file() else None
    return Facts(
        tuple(found for name in disks(layers) for found in _temperature(name, host)),
        _highest_mhz(policies, "scaling_cur_freq"),
        _highest_mhz(policies, "scaling_max_freq"),
        _highest_mhz(policies, "cpuinfo_max_freq"),
        read_text(policies[0] / "scaling_governor") if policies else None,
        read_text(policies[0] / "scaling_driver") if policies else None,
        any(part.value == "battery" for part in supply),
        space and (space.f_blocks - space.f_bfree) * space.f_frsize,
        space and space.f_bavail * space.f_frsize,
        tuple(state for layer in layers if layer.kind == "md" and (state := array_state(layer.name, host.sys_root))),
        running_studies(),
    )


def _temperature(name: str, host: Host) -> Iterator[tuple[str, float, float]]:
    """Yield temperature and warning temperature, or else the critical one (Documentation/hwmon/nvme)."""
    try:
        source = temperature_source(name, host.sys_root)
        values = source.read() if source else {}
    except OSError:  # the sensor does not answer, for example in a sleeping drive
        return
    limit_c = values.get("temperature_limit_c")
    for folder in hwmon_folders(name, host.sys_root):
        text = read_text(folder / "temp1_crit") or ""
        if limit_c is None and text.isdecimal() and int(text):
            limit_c = int(text) / 1000
    if "temperature_c" in values and limit_c is not None:
        yield name, values["temperature_c"], limit_c


def _spin() -> None:
    end_s = time.monotonic() + _SPIN_S
    while time.monotonic() < end_s:
        pass


def _highest_mhz(policies: list[Path], file: str) -> float | None:
    values = [int(text) / 1000 for policy in policies if (text := read_text(policy / file) or "").isdecimal()]
    return max(values, default=None)


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
