"""Define settings of a drive and of the path to it.

Guide: Solidigm Performance Evaluation Guide, August 2022, revision 001, sections 3.4.4 to 3.4.6 if an entry says so.
 Files: Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-bus-pci, sysfs-devices-power.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from drivelab.drives.sysfs import read_text
from drivelab.host.entry import Part, Setting, Wish, anything, drive_files, exactly, in_words, only, upward_files
from drivelab.host.machine import Machine

_ONLY_NODE = "the only one"
_APST_DEFAULT_US = "100000"
"""The driver's default (nvme_core.default_ps_max_latency_us)."""


def _link(machine: Machine, drive: str) -> list[Part] | None:
    """Return speed and width of the PCIe link nearest to the drive.

    For a SATA drive its controller's link.
    """
    for folder in machine.ancestors(drive):
        now, best = (
            [read_text(folder / f"{which}_link_{quantity}") for quantity in ("speed", "width")]
            for which in ("current", "max")
        )
        if all(now) and all(best):
            return [Part(str(folder), f"{now[0]} x{now[1]} of {best[0]} x{best[1]}".replace(" PCIe", ""))]
    return None


def _is_full(part: Part) -> bool | None:
    now, _, best = part.value.partition(" of ")
    return None if "Unknown" in part.value else now == best


def _link_states(machine: Machine, drive: str) -> list[Part] | None:
    """Return the power states that ASPM may use on the drive's link."""
    for folder in machine.ancestors(drive):
        if names := sorted(path.name.removesuffix("_aspm") for path in (folder / "link").glob("*_aspm")):
            return [Part(name, name) for name in names if read_text(folder / "link" / f"{name}_aspm") == "1"]
    return None


def _names(parts: Sequence[Part]) -> str:
    return ", ".join(part.value for part in parts)


def _autonomous(machine: Machine, drive: str) -> list[Part] | None:
    """Return the longest exit latency of the drive's autonomous power states.

    Return 0 turns them off. Only drives with such states have the file (drivers/nvme/host/core.c).
    """
    controllers = machine.nvme_controllers(drive)
    parts = upward_files("power/pm_qos_latency_tolerance_us")(machine, drive) or []
    return [part for part in parts if part.path is not None and part.path.parents[1].name in controllers] or None


def _latencies(parts: Sequence[Part]) -> str:
    texts = {"0": "off (0)", "auto": "on", "any": "on, however slow"}
    return in_words([Part(part.name, texts.get(part.value, f"on, exit up to {part.value} µs")) for part in parts])


def _suspends(machine: Machine, drive: str) -> list[Part] | None:
    """Return devices whose driver can suspend them.

    Other devices have the file too, without effect.
    """
    parts = upward_files("power/control")(machine, drive) or []
    return [part for part in parts if part.sibling("runtime_status") != "unsupported"] or None


def _in_file(value: str) -> Wish:
    return Wish(
        "off (0)" if value == "0" else "on (not 0)",
        lambda part: (part.value == "0") == (value == "0"),
        lambda part: value,
    )


def _power_state(machine: Machine, drive: str) -> list[Part] | None:
    """Return the requested power state (NVMe feature 02h, bits 4:0)."""
    for controller in machine.nvme_controllers(drive) if machine.privileged else []:
        text = machine.ask("nvme", "get-feature", f"/dev/{controller}", "-f", "2")
        if match := re.search(r"value:\s*(?:0x)?([0-9a-fA-F]+)", text or ""):
            return [Part(controller, str(int(match[1], 16) & 0x1F))]
    return None


def _node(machine: Machine, drive: str) -> list[Part] | None:
    online = [path for path in (machine.sys_root / "devices/system/node").glob("node[0-9]*") if path.is_dir()]
    if not online:
        return None
    if len(online) == 1:
        return [Part("node", _ONLY_NODE)]
    for folder in machine.ancestors(drive):
        number = read_text(folder / "numa_node")
        if number is not None:
            name = "unknown" if number.startswith("-") else f"node {number}"
            return [Part(str(_cpulist(machine, number)), f"{name} of {len(online)}")]
    return None


def _cpulist(machine: Machine, number: str) -> Path:
    return machine.sys_root / f"devices/system/node/node{number}/cpulist"


def _is_near(part: Part) -> bool | None:
    """Return False for a node without CPUs.

    With several nodes None, because the load's CPUs are not known yet.
    """
    if part.value == _ONLY_NODE:
        return True
    return False if read_text(Path(part.name)) == "" else None


SETTINGS = (
    Setting(
        name="I/O scheduler",
        guide="",
        effect="sorting and waiting cost CPU time per I/O and change the order of I/Os at the drive",
        how="echo none > /sys/block/DRIVE/queue/scheduler",
        read=drive_files("queue/scheduler"),
        real_world=anything(),
        synthetic=exactly("none"),
        per_drive=True,
    ),
    Setting(
        name="Merging of requests",
        guide="",
        effect="off: sequential loads reach the drive in smaller requests than in normal use",
        how="echo 0 > /sys/block/DRIVE/queue/nomerges",
        read=drive_files("queue/nomerges"),
        real_world=exactly("0", "allowed (0)"),
        synthetic=exactly("0", "allowed (0)"),
        per_drive=True,
    ),
    Setting(
        name="Read-ahead",
        guide="3.4.5 EnablePrefetcher: 3, or 0",
        effect="buffered reads fetch more than requested; direct I/O, which fio uses here, is not affected",
        how="echo 0 > /sys/block/DRIVE/queue/read_ahead_kb",
        read=drive_files("queue/read_ahead_kb"),
        real_world=anything(),
        synthetic=exactly("0"),
        per_drive=True,
    ),
    Setting(
        name="I/O statistics",
        guide="",
        effect="needed to prove that nothing else wrote to the drive; they cost about 1 % of IOPS",
        how="echo 1 > /sys/block/DRIVE/queue/iostats",
        read=drive_files("queue/iostats"),
        real_world=exactly("1", "on (1)"),
        synthetic=exactly("1", "on (1)"),
        per_drive=True,
    ),
    Setting(
        name="Write cache",
        guide="",
        effect="off: every write waits for the medium or for its power-loss protection",
        how="the study's class sets it: enterprise off, client on",
        read=drive_files("queue/write_cache"),
        real_world=anything("as the study's class says"),
        synthetic=anything("as the study's class says"),
        per_drive=True,
    ),
    Setting(
        name="Command queue",
        guide="",
        effect="SATA and SAS: a depth of 1 means that the drive never sees a second command (no NCQ)",
        how="echo 31 > /sys/block/DRIVE/device/queue_depth; AHCI mode in the BIOS",
        read=drive_files("device/queue_depth"),
        real_world=Wish("deeper than 1", lambda part: part.value != "1"),
        synthetic=Wish("deeper than 1", lambda part: part.value != "1"),
        per_drive=True,
    ),
    Setting(
        name="PCIe link",
        guide="",
        effect="a link below the drive's maximum speed or width caps its bandwidth",
        how="use a slot of that generation and width connected to the CPU, reseat the drive, check the BIOS",
        read=_link,
        real_world=Wish("the drive's maximum", _is_full),
        synthetic=Wish("the drive's maximum", _is_full),
        per_drive=True,
    ),
    Setting(
        name="PCIe link power saving",
        guide="3.4.4 PCIe ASPM",
        effect="result of the ASPM policy for this link: a sleeping link delays the first I/O after a pause",
        how="by the PCIe ASPM policy, or echo 0 > /sys/class/nvme/nvmeN/device/link/l1_aspm",
        read=_link_states,
        real_world=anything(),
        synthetic=Wish("off", lambda part: False),
        per_drive=True,
        describe=_names,
        empty="off",
    ),
    Setting(
        name="Runtime power management",
        guide="3.4.6 USB selective suspend",
        effect="a suspended controller, bridge or drive needs milliseconds to wake",
        how="echo on > power/control of the drive's device and its parents in /sys/devices",
        read=_suspends,
        real_world=anything(),
        synthetic=exactly("on"),
        per_drive=True,
    ),
    Setting(
        name="SATA link power saving",
        guide="3.4.6 Turn off hard disk after; similar to 3.4.4 PCIe ASPM",
        effect="a slumbering SATA link takes up to 10 ms to wake",
        how="echo max_performance > /sys/class/scsi_host/hostN/link_power_management_policy",
        read=upward_files("scsi_host/host*/link_power_management_policy"),
        real_world=anything(),
        synthetic=exactly("max_performance"),
        per_drive=True,
    ),
    Setting(
        name="NVMe autonomous power states",
        guide="3.4.4 C-States, of the drive",
        effect="a drive in an autonomous power state (APST) answers the next I/O milliseconds later",
        how="echo 0 > /sys/class/nvme/nvmeN/power/pm_qos_latency_tolerance_us, or the kernel parameter "
        "nvme_core.default_ps_max_latency_us=0",
        read=_autonomous,
        real_world=_in_file(_APST_DEFAULT_US),
        synthetic=_in_file("0"),
        per_drive=True,
        describe=_latencies,
    ),
    Setting(
        name="NVMe power state",
        guide="3.4.4 P-States, of the drive",
        effect="a state other than 0 limits the drive's power, and therefore its bandwidth",
        how="nvme set-feature /dev/nvmeN -f 2 -v 0",
        read=_power_state,
        real_world=only("0"),
        synthetic=only("0"),
        per_drive=True,
    ),
    Setting(
        name="NUMA node",
        guide="",
        effect="I/O from CPUs of another node crosses the socket link: more latency, less bandwidth",
        how="run the load on CPUs of the drive's node (numactl --cpunodebind), or move the drive",
        read=_node,
        real_world=Wish("a node with CPUs, the load on them", _is_near),
        synthetic=Wish("a node with CPUs, the load on them", _is_near),
        per_drive=True,
    ),
)
