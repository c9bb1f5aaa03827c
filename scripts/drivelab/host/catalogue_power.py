"""Define power settings: supply, plan, links, sleep.

Guide: Solidigm Performance Evaluation Guide, August 2022, revision 001, table of section 3.4.6 (power), and of 3.4.4
(BIOS) for PCIe ASPM.
"""

from __future__ import annotations

from drivelab.drives.sysfs import read_text
from drivelab.host.entry import Part, Setting, Wish, anything, exactly, files, nothing, only, programs
from drivelab.host.machine import Machine


def _supply(machine: Machine, drive: str) -> list[Part] | None:
    """Return the supply of a host with a battery; other hosts always run on mains."""
    folder = machine.sys_root / "class/power_supply"
    if not folder.is_dir():
        return None
    if not machine.laptop:
        return []
    mains = [supply for supply in folder.glob("*") if read_text(supply / "type") in ("Mains", "USB")]
    online = any(read_text(supply / "online") == "1" for supply in mains)
    return [Part("supply", "mains" if online else "battery")]


def _idle_action(machine: Machine, drive: str) -> list[Part] | None:
    """Return logind's action on an idle host (logind.conf(5)).

    Later files override earlier ones.
    """
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


SETTINGS = (
    Setting(
        name="Power supply",
        guide="3.4.6: laptops plugged into AC power",
        effect="on battery the firmware limits CPU, PCIe link and drive",
        how="connect the laptop to mains",
        read=_supply,
        real_world=only("mains"),
        synthetic=only("mains"),
        empty="mains (no battery)",
    ),
    Setting(
        name="Power plan",
        guide="3.4.6 Power Plan: desktop Balanced or High Performance, laptop Balanced",
        effect="the firmware's power and fan limits for CPU and drive",
        how="echo performance (real-world, and laptops: balanced) > /sys/firmware/acpi/platform_profile",
        read=files("firmware/acpi/platform_profile"),
        real_world=exactly("balanced"),
        synthetic=exactly("performance"),
        laptop=exactly("balanced", "balanced (laptop)"),
    ),
    Setting(
        name="PCIe ASPM policy",
        guide="3.4.4 PCIe ASPM; 3.4.6 PCI Express Link Power Management",
        effect="a sleeping link adds microseconds to the first I/O after a pause, up to 100 µs with L1 substates",
        how="echo performance (real-world: default) > /sys/module/pcie_aspm/parameters/policy",
        read=files("module/pcie_aspm/parameters/policy"),
        real_world=Wish("default", lambda part: part.value != "performance", lambda part: "default"),
        synthetic=exactly("performance"),
    ),
    Setting(
        name="Sleep when idle",
        guide="3.4.6 put my device to sleep, Sleep after",
        effect="a suspended host ends the study's measurement",
        how="IdleAction=ignore in /etc/systemd/logind.conf; on a desktop also its own power settings",
        read=_idle_action,
        real_world=only("ignore", "lock", words="never"),
        synthetic=only("ignore", "lock", words="never"),
    ),
    Setting(
        name="Power services",
        guide="3.4.6 Power Plan",
        effect="change governor, idle states and links automatically, also during a study",
        how="systemctl stop tuned power-profiles-daemon tlp thermald auto-cpufreq",
        read=programs("tuned", "power-profiles-daemon", "tlp", "thermald", "auto-cpufreq", "laptop_mode"),
        real_world=anything(),
        synthetic=nothing("none running"),
        empty="none running",
    ),
)
