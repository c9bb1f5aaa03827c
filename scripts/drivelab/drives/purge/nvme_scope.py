"""Find out whether an NVMe command affects more than the drive that it is meant for."""

from __future__ import annotations

from drivelab.drives import nvme, tools
from drivelab.drives.guard import HeldDevice

_NAMESPACE_MANAGEMENT = 1 << 3
"""OACS of Identify Controller."""


def not_alone(device: HeldDevice) -> str | None:
    """Return why a command must not affect the drive's whole NVM subsystem; None if the drive is alone in it.

    Allocated namespaces that are attached to no controller of this host also count: they may hold data.
    """
    names = nvme.namespaces(device.name)
    if device.name not in names:
        return "the kernel does not say which other namespaces share its subsystem"
    if others := [name for name in names if name != device.name]:
        return f"it would also destroy {', '.join(others)}, which share the subsystem with {device.name}"
    controller = nvme.controller_of(device.name)
    answer = nvme.id_ctrl(device.path)
    if controller is None or answer is None:
        return "its controller does not answer"
    if (nvme.whole(answer.get("oacs")) or 0) & _NAMESPACE_MANAGEMENT:
        allocated = _allocated(controller)
        if allocated is None:
            return "its controller manages namespaces but does not list them, so there may be others"
        if allocated != 1:
            return (
                f"it would also destroy other namespaces: {allocated} are allocated, some perhaps not attached to "
                "this host"
            )
    return None


def _allocated(controller: str) -> int | None:
    answer = tools.read_json("nvme", "list-ns", controller, "--all", "--output-format=json")
    listed = answer.get("nsid_list") if answer is not None else None
    return len(listed) if isinstance(listed, list) else None
