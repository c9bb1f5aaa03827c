"""Read the parts of host settings. The catalogue names these readers, see `drivelab.host.catalogue`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from drivelab.drives.sysfs import block_dir, read_text
from drivelab.drives.undo import Command, current_value
from drivelab.host.entry import Part
from drivelab.host.machine import Machine

Reader = Callable[[Machine, str], list[Part] | None]
"""Returns the parts on a host, or of the drive with a kernel name; None if not available."""
SWITCH = "kernel parameter"
"""Name of a part that is a kernel parameter."""
ONLY_NODE = "the only one"


def pcie_link(machine: Machine, drive: str) -> list[Part] | None:
    """Return speed and width of the PCIe link nearest to the drive. For a SATA drive its controller's link."""
    for folder in machine.ancestors(drive):
        now, best = (
            [read_text(folder / f"{which}_link_{quantity}") for quantity in ("speed", "width")]
            for which in ("current", "max")
        )
        if all(now) and all(best):
            return [Part(str(folder), f"{now[0]} x{now[1]} of {best[0]} x{best[1]}".replace(" PCIe", ""))]
    return None


def link_states(machine: Machine, drive: str) -> list[Part] | None:
    """Return the power states that ASPM may use on the drive's link."""
    for folder in machine.ancestors(drive):
        if names := sorted(path.name.removesuffix("_aspm") for path in (folder / "link").glob("*_aspm")):
            return [Part(name, name) for name in names if read_text(folder / "link" / f"{name}_aspm") == "1"]
    return None


def autonomous_states(machine: Machine, drive: str) -> list[Part] | None:
    """Return the longest exit latency of the drive's autonomous power states.

    Return 0 turns them off. Only drives with such states have the file (drivers/nvme/host/core.c).
    """
    controllers = machine.nvme_controllers(drive)
    parts = upward_files("power/pm_qos_latency_tolerance_us")(machine, drive) or []
    return [part for part in parts if part.path is not None and part.path.parents[1].name in controllers] or None


def suspends(machine: Machine, drive: str) -> list[Part] | None:
    """Return devices whose driver can suspend them. Other devices have the file too, without effect."""
    parts = upward_files("power/control")(machine, drive) or []
    return [part for part in parts if part.sibling("runtime_status") != "unsupported"] or None


def nvme_power_state(machine: Machine, drive: str) -> list[Part] | None:
    """Return the requested power state (NVMe feature 02h, bits 4:0)."""
    for controller in machine.nvme_controllers(drive) if machine.privileged else []:
        text = machine.ask("nvme", "get-feature", f"/dev/{controller}", "-f", "2")
        if match := re.search(r"value:\s*(?:0x)?([0-9a-fA-F]+)", text or ""):
            return [Part(controller, str(int(match[1], 16) & 0x1F))]
    return None


def numa_node(machine: Machine, drive: str) -> list[Part] | None:
    online = [path for path in (machine.sys_root / "devices/system/node").glob("node[0-9]*") if path.is_dir()]
    if not online:
        return None
    if len(online) == 1:
        return [Part("node", ONLY_NODE)]
    for folder in machine.ancestors(drive):
        number = read_text(folder / "numa_node")
        if number is not None:
            name = "unknown" if number.startswith("-") else f"node {number}"
            cpulist = machine.sys_root / f"devices/system/node/node{number}/cpulist"
            return [Part(str(cpulist), f"{name} of {len(online)}")]
    return None


def files(*patterns: str) -> Reader:
    """Read files below /sys; the first pattern with a file counts."""
    return lambda machine, drive: _parts(machine.sys_root, patterns)


def proc_files(*patterns: str) -> Reader:
    """Read files below /proc."""
    return lambda machine, drive: _parts(machine.proc_root, patterns)


def drive_files(*patterns: str) -> Reader:
    """Read files below the drive's folder in /sys/class/block."""
    return lambda machine, drive: _parts(block_dir(drive, machine.sys_root), patterns)


def upward_files(pattern: str) -> Reader:
    """Read files of every device between the drive and the root of its bus."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        parts = [part for folder in machine.ancestors(drive) for part in _parts(folder, (pattern,)) or []]
        return parts or None

    return read


def programs(*names: str) -> Reader:
    """List which of these programs run."""

    return lambda machine, drive: _named(machine.running(names))


def timers(*patterns: str) -> Reader:
    """List the active systemd timers that match; a study can stop them."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        active = machine.timers()
        return None if active is None else [_timer(unit) for unit in active if _is_one_of(unit, patterns)]

    return read


def _timer(unit: str) -> Part:
    return Part(unit, unit, do=Command(("systemctl", "stop", unit)), undo=Command(("systemctl", "start", unit)))


def other_timers(*patterns: str) -> Reader:
    """List the active systemd timers that match none of the patterns."""

    return lambda machine, drive: _named(machine.timers(), lambda unit: not _is_one_of(unit, patterns))


def vulnerabilities(*switches: str) -> Reader:
    """Read the kernel's vulnerabilities, and the kernel parameters that begin with one of `switches`."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        parts = files("devices/system/cpu/vulnerabilities/*")(machine, drive)
        words = [word for word in machine.kernel_parameters() or [] if word.startswith(switches)]
        return parts and [*parts, *(Part(SWITCH, word) for word in words)]

    return read


def kernel_parameters(*beginnings: str) -> Reader:
    """List the kernel parameters that begin with one of these texts."""

    return lambda machine, drive: _named(machine.kernel_parameters(), lambda word: word.startswith(beginnings))


def modules(*names: str) -> Reader:
    """List which of these kernel modules are loaded."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        text = read_text(machine.proc_root / "modules")
        loaded = {line.partition(" ")[0] for line in (text or "").splitlines()}
        return None if text is None else [Part(name, name) for name in names if name in loaded]

    return read


def frequency_drivers(machine: Machine, drive: str) -> list[Part] | None:
    parts = files("devices/system/cpu/cpufreq/policy*/scaling_driver")(machine, drive)
    modes = [
        read_text(machine.sys_root / f"devices/system/cpu/{name}/status") for name in ("intel_pstate", "amd_pstate")
    ]
    mode = next((f", {text}" for text in modes if text), "")
    return parts and [Part(part.name, part.value + mode) for part in parts]


def hypervisor(machine: Machine, drive: str) -> list[Part] | None:
    cpuinfo = read_text(machine.proc_root / "cpuinfo")
    if cpuinfo is None:
        return None
    name = read_text(machine.sys_root / "hypervisor/type") or read_text(machine.sys_root / "class/dmi/id/sys_vendor")
    flags = next((line.split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    return [Part("hypervisor", f"virtual machine ({name or 'maker unknown'})")] if "hypervisor" in flags else []


def power_supply(machine: Machine, drive: str) -> list[Part] | None:
    """Return the supply of a host with a battery; other hosts always run on mains."""
    folder = machine.sys_root / "class/power_supply"
    if not folder.is_dir():
        return None
    if not machine.laptop:
        return []
    mains = [supply for supply in folder.glob("*") if read_text(supply / "type") in ("Mains", "USB")]
    online = any(read_text(supply / "online") == "1" for supply in mains)
    return [Part("supply", "mains" if online else "battery")]


def idle_action(machine: Machine, drive: str) -> list[Part] | None:
    """Return logind's action on an idle host (logind.conf(5)). Later files override earlier ones."""
    if not (machine.run_root / "systemd/system").is_dir():
        return None
    folder = machine.etc_root / "systemd"
    action = "ignore"
    for path in (folder / "logind.conf", *sorted((folder / "logind.conf.d").glob("*.conf"))):
        for line in (read_text(path) or "").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "IdleAction":
                action = value.strip() or "ignore"
    return [Part("IdleAction", action)]


def swaps(machine: Machine, drive: str) -> list[Part] | None:
    """Return the swap areas. Used ones stay unchanged, because their pages would first be read back into memory."""
    table = machine.proc_root / "swaps"
    text = read_text(table)
    if text is None:
        return None
    parts = []
    for line in text.splitlines()[1:]:
        path, _, size, used, priority = line.split()
        value = f"{path} ({int(size) // 1024} MiB, {'unused' if used == '0' else f'{int(used) // 1024 or 1} MiB used'})"
        # The kernel chooses negative priorities; swapon cannot request them.
        wanted = ("--priority", priority) if int(priority) >= 0 else ()
        undo = Command(("swapon", *wanted, path), unless_listed_in=str(table))
        escaped = "\\" in path  # proc_swaps(5) escapes special characters
        do = Command(("swapoff", path)) if used == "0" and not escaped else None
        parts.append(Part(path, value, do=do, undo=undo))
    return parts


def clock(machine: Machine, drive: str) -> list[Part] | None:
    state = machine.synchronised()
    return None if state is None else [Part("clock", "synchronised" if state else "not synchronised")]


def _named(names: Iterable[str] | None, wanted: Callable[[str], bool] = lambda name: True) -> list[Part] | None:
    return None if names is None else [Part(name, name) for name in names if wanted(name)]


def _is_one_of(unit: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(unit, pattern) for pattern in patterns)


def _parts(root: Path, patterns: Sequence[str]) -> list[Part] | None:
    for pattern in patterns:
        values = [(path, current_value(path)) for path in sorted(root.glob(pattern))]
        if parts := [Part(str(path), value, path) for path, value in values if value is not None]:
            return parts
    return None


READERS: Mapping[str, Reader] = {
    reader.__name__: reader
    for reader in (
        frequency_drivers, hypervisor, power_supply, idle_action, swaps, clock, pcie_link, link_states,
        autonomous_states, suspends, nvme_power_state, numa_node,
    )
}  # fmt: skip
LISTING: Mapping[str, Callable[..., Reader]] = {
    reader.__name__: reader
    for reader in (
        files, proc_files, drive_files, upward_files, programs, timers, vulnerabilities, kernel_parameters, modules
    )
}  # fmt: skip
"""Readers that need a list of patterns or names."""
