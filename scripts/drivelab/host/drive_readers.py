"""Read the parts of settings of a drive and of the path to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from drivelab.drives.sysfs import read_text
from drivelab.host.entry import Part
from drivelab.host.machine import Machine
from drivelab.host.readers import Reader, upward_files

ONLY_NODE = "the only one"


def pcie_link(machine: Machine, drive: str) -> list[Part] | None:
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
    """Return devices whose driver can suspend them.

    Other devices have the file too, without effect.
    """
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
            return [Part(str(_cpulist(machine, number)), f"{name} of {len(online)}")]
    return None


def _cpulist(machine: Machine, number: str) -> Path:
    return machine.sys_root / f"devices/system/node/node{number}/cpulist"


READERS: Mapping[str, Reader] = {
    reader.__name__: reader
    for reader in (pcie_link, link_states, autonomous_states, suspends, nvme_power_state, numa_node)
}
