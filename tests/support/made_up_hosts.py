"""Test hosts: folders in the form of /sys, /proc, /run and /etc, and programs that act on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from drivelab.host.machine import Machine

CPU = "sys/devices/system/cpu"
POLICY = f"{CPU}/cpufreq/policy"
NVME = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
SATA = "sys/devices/pci0000:00/0000:00:17.0"
DISK = f"{SATA}/ata1/host0/target0:0:0/0:0:0:0"

VM = {
    "proc/cpuinfo": "processor : 0\nflags : fpu hypervisor\n", "proc/cmdline": "console=ttyS0 quiet",
    "proc/swaps": "Filename Type Size Used Priority", "proc/1/comm": "init", "sys/hypervisor/type": "xen",
    f"{CPU}/smt/control": "notsupported", "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/queue/scheduler": "[none] mq-deadline",
    "sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/queue/iostats": "1",
    "sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/size": "2048",
}  # fmt: skip

LAPTOP = {
    "proc/cpuinfo": "processor : 0\nflags : fpu tsc\n",
    "proc/cmdline": "quiet splash",
    "proc/swaps": "Filename Type Size Used Priority",
    "proc/1/comm": "systemd",
    "sys/class/power_supply/AC/type": "Mains",
    "sys/class/power_supply/AC/online": "0",
    "sys/class/power_supply/BAT0/type": "Battery",
    "sys/firmware/acpi/platform_profile": "low-power",
    f"{POLICY}0/scaling_driver": "intel_pstate",
    f"{POLICY}0/scaling_governor": "powersave",
    f"{POLICY}0/scaling_min_freq": "400000",
    f"{POLICY}0/scaling_max_freq": "4800000",
    f"{POLICY}0/cpuinfo_max_freq": "4800000",
    "run/systemd/system/ready": "",
    "etc/systemd/logind.conf": "[Login]\n#IdleAction=ignore\n",
    "etc/systemd/logind.conf.d/50.conf": "[Login]\nIdleAction=suspend\n",
}

SERVER = {
    "proc/cpuinfo": "processor : 0\nflags : fpu tsc\n",
    "proc/cmdline": "root=/dev/sda1 mitigations=off nvme_core.default_ps_max_latency_us=0",
    "proc/modules": "nf_tables 1 0 - Live 0x0\next4 2 0 - Live 0x0",
    "proc/swaps": "Filename Type Size Used Priority\n{swap} partition 8388604 0 -2",
    "proc/sys/kernel/numa_balancing": "1",
    "proc/1/comm": "systemd",
    "proc/700/comm": "irqbalance",
    "proc/701/comm": "unattended-upgr",
    "run/systemd/system/ready": "",
    "sys/class/power_supply/AC/type": "Mains",
    f"{CPU}/smt/control": "off",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/vulnerabilities/meltdown": "Vulnerable",
    f"{CPU}/vulnerabilities/mds": "Not affected",
    "sys/module/pcie_aspm/parameters/policy": "[default] performance powersave powersupersave",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
    "sys/devices/system/node/node0/cpulist": "0-3",
    "sys/devices/system/node/node1/cpulist": "",
    **{
        f"{POLICY}{cpu}/{name}": value
        for cpu in range(4)
        for name, value in {
            "scaling_driver": "intel_pstate",
            "scaling_governor": "powersave" if cpu else "performance",
            "scaling_min_freq": "800000",
            "scaling_max_freq": "3600000",
            "cpuinfo_max_freq": "3600000",
            "energy_performance_preference": "balance_performance",
        }.items()
    },
    **{
        f"{CPU}/cpu{cpu}/cpuidle/state{number}/{name}": value
        for cpu in range(4)
        for number, state in enumerate((("POLL", "0"), ("C1", "2"), ("C1E", "10"), ("C6", "133")))
        for name, value in (("name", state[0]), ("latency", state[1]), ("disable", "0"), ("default_status", "enabled"))
    },
    f"{NVME}/current_link_speed": "8.0 GT/s PCIe",
    f"{NVME}/current_link_width": "4",
    f"{NVME}/max_link_speed": "16.0 GT/s PCIe",
    f"{NVME}/max_link_width": "4",
    f"{NVME}/link/l1_aspm": "1",
    f"{NVME}/link/l0s_aspm": "0",
    f"{NVME}/numa_node": "1",
    f"{NVME}/power/control": "auto",
    f"{NVME}/power/runtime_status": "active",
    f"{NVME}/nvme/nvme0/power/pm_qos_latency_tolerance_us": "100000",
    f"{NVME}/nvme/nvme0/power/control": "auto",
    f"{NVME}/nvme/nvme0/power/runtime_status": "unsupported",
    f"{NVME}/nvme/nvme0/nvme0n1/queue/scheduler": "none [mq-deadline] bfq",
    f"{NVME}/nvme/nvme0/nvme0n1/queue/read_ahead_kb": "128",
    f"{NVME}/nvme/nvme0/nvme0n1/queue/iostats": "0",
    f"{NVME}/nvme/nvme0/nvme0n1/queue/nomerges": "0",
    f"{NVME}/nvme/nvme0/nvme0n1/queue/write_cache": "write back",
    f"{DISK}/queue_depth": "1",
    f"{DISK}/block/sda/queue/scheduler": "none [mq-deadline] bfq",
    f"{SATA}/ata1/host0/scsi_host/host0/link_power_management_policy": "med_power_with_dipm",
}

BLOCK_DEVICES = {
    "vda": "sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda",
    "nvme0n1": f"{NVME}/nvme/nvme0/nvme0n1",
    "sda": f"{DISK}/block/sda",
}

SYSTEMCTL = """#!/bin/sh
case "$1" in
  list-units) while read unit; do echo "$unit loaded active waiting text"; done < "{root}/timers" ;;
  stop) grep -vx "$2" "{root}/timers" > "{root}/timers.new"; mv "{root}/timers.new" "{root}/timers" ;;
  start) echo "$2" >> "{root}/timers"; sort -u -o "{root}/timers" "{root}/timers" ;;
esac
"""
SWAPOFF = """#!/bin/sh
grep -v "^$1 " "{root}/proc/swaps" > "{root}/swaps.new"; mv "{root}/swaps.new" "{root}/proc/swaps"
"""
SWAPON = """#!/bin/sh
grep -q "^$1 " "{root}/proc/swaps" && {{ echo "swapon: $1: swapon failed: Device or resource busy" >&2; exit 255; }}
echo "$1 partition 8388604 0 -2" >> "{root}/proc/swaps"
"""
PROGRAMS = {"systemctl": SYSTEMCTL, "swapoff": SWAPOFF, "swapon": SWAPON, "nvme": "#!/bin/false\n"}

Build = Callable[..., Machine]


def lay_out(root: Path, files: Mapping[str, str]) -> None:
    """Write the files of a test host, with the links to its block devices."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{swap}", "/no/swap") + "\n")
    for name, folder in BLOCK_DEVICES.items():
        if (root / folder).is_dir():
            link = root / "sys/class/block" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(root / folder)
            if not (root / folder / "device").exists():
                (root / folder / "device").symlink_to((root / folder).parent if name != "sda" else root / DISK)


def programs(root: Path) -> Path:
    """Return a folder of programs that act on a test host, in place of those that could change the real one."""
    folder = root / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text.format(root=root))
        (folder / name).chmod(0o755)
    return folder


def machine_of(root: Path, *, synchronised: bool | None = True) -> Machine:
    return Machine(
        root / "sys", root / "proc", root / "run", root / "etc", privileged=True, synchronised=lambda: synchronised
    )
