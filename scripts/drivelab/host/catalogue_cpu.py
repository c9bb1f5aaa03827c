"""Define processor and platform settings that affect completion latency.

Guide: Solidigm Performance Evaluation Guide, August 2022, revision 001: table of section 3.4.4 (BIOS), and of 3.4.6
(power) if an entry says so. Files: Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate,cpuidle}.rst.
"""

from __future__ import annotations

from collections.abc import Sequence

from drivelab.drives.sysfs import read_text
from drivelab.host.entry import Part, Setting, Wish, anything, exactly, files, in_words, nothing, only, proc_files
from drivelab.host.machine import Machine

_CPUFREQ = "devices/system/cpu/cpufreq/policy*"
_OWN_GOVERNORS = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose governor `powersave` is balanced; with other drivers it means the lowest frequency."""
_SHALLOW_US = 2
"""Exit latency of C1, which stays enabled if the BIOS turns C-states off; deeper states take 10 µs and more."""
_PARAMETERS = (
    "mitigations=", "idle=", "intel_idle.", "processor.max_cstate=", "intel_pstate=", "amd_pstate=", "pcie_aspm",
    "nvme_core.", "nvme.", "nosmt", "isolcpus=", "nohz_full=", "iommu=", "intel_iommu=", "amd_iommu=", "cpufreq.",
    "transparent_hugepage=", "pci=", "libata.", "nopti", "nospectre", "cpuidle.",
)  # fmt: skip
_UNMITIGATED = ("mitigations=off", "nopti", "pti=off", "nospectre", "spectre_v2=off", "mds=off", "retbleed=off")
_SWITCH = "kernel parameter"
_FASTER_THAN_SHIPPED = (
    *_UNMITIGATED,
    "idle=poll", "idle=halt", "intel_idle.max_cstate=", "processor.max_cstate=", "pcie_aspm=off",
    "nosmt", "cpuidle.off=1", "intel_pstate=disable", "amd_pstate=disable",
)  # fmt: skip


def _balanced_governor(part: Part) -> str | None:
    if part.sibling("scaling_driver") in _OWN_GOVERNORS:
        return "powersave"
    offered = part.sibling("scaling_available_governors").split()
    return next((name for name in ("schedutil", "ondemand", "conservative") if name in offered), None)


def _is_balanced(part: Part) -> bool:
    if part.value == "powersave":
        return part.sibling("scaling_driver") in _OWN_GOVERNORS
    return part.value not in ("performance", "userspace")


def _drivers(machine: Machine, drive: str) -> list[Part] | None:
    parts = files(f"{_CPUFREQ}/scaling_driver")(machine, drive)
    modes = [
        read_text(machine.sys_root / f"devices/system/cpu/{name}/status") for name in ("intel_pstate", "amd_pstate")
    ]
    mode = next((f", {text}" for text in modes if text), "")
    return parts and [Part(part.name, part.value + mode) for part in parts]


def _boosts(part: Part) -> str:
    return "0" if part.name.endswith("no_turbo") else "1"


def _turbo_in_words(parts: Sequence[Part]) -> str:
    return in_words([Part(part.name, "enabled" if part.value == _boosts(part) else "disabled") for part in parts])


def _exit_us(part: Part) -> int:
    latency = part.sibling("latency")
    return int(latency) if latency.isdecimal() else 0


def _idle_states(parts: Sequence[Part]) -> str:
    enabled = {(_exit_us(part), part.sibling("name")) for part in parts if part.value == "0"}
    if not enabled:
        return "all disabled"
    return f"{', '.join(name for _, name in sorted(enabled))} (exit up to {max(enabled)[0]} µs)"


def _vulnerabilities(machine: Machine, drive: str) -> list[Part] | None:
    """Return the kernel's vulnerabilities, and parameters that disable mitigations."""
    parts = files("devices/system/cpu/vulnerabilities/*")(machine, drive)
    switches = [word for word in machine.kernel_parameters() or [] if word.startswith(_UNMITIGATED)]
    return parts and [*parts, *(Part(_SWITCH, word) for word in switches)]


def _mitigations(parts: Sequence[Part]) -> str:
    if switches := [part.value for part in parts if part.name == _SWITCH]:
        return f"turned off by {' '.join(switches)}"
    unmitigated = [part.name.rpartition("/")[2] for part in parts if part.value.startswith("Vulnerable")]
    return "in force" + (f"; vulnerable to {', '.join(unmitigated)}" if unmitigated else "")


def _mitigated(part: Part) -> bool:
    return part.name != _SWITCH


def _parameters(machine: Machine, drive: str) -> list[Part] | None:
    words = machine.kernel_parameters()
    return None if words is None else [Part(word, word) for word in words if word.startswith(_PARAMETERS)]


def _join(parts: Sequence[Part]) -> str:
    return " ".join(part.value for part in parts)


def _hypervisor(machine: Machine, drive: str) -> list[Part] | None:
    cpuinfo = read_text(machine.proc_root / "cpuinfo")
    if cpuinfo is None:
        return None
    name = read_text(machine.sys_root / "hypervisor/type") or read_text(machine.sys_root / "class/dmi/id/sys_vendor")
    flags = next((line.split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    return [Part("hypervisor", f"virtual machine ({name or 'maker unknown'})")] if "hypervisor" in flags else []


# A study does not change SMT: CPUs would appear and disappear in everything else that is recorded about the host.
SETTINGS = (
    Setting(
        name="SMT",
        guide="3.4.4 Hyper Threading",
        effect="two threads share a core: many queues have more CPUs for completions, but slower ones",
        how="echo on > /sys/devices/system/cpu/smt/control, or Hyper Threading in the BIOS",
        read=files("devices/system/cpu/smt/control"),
        real_world=Wish("on", lambda part: part.value in ("on", "notsupported", "notimplemented")),
        synthetic=Wish("on", lambda part: part.value in ("on", "notsupported", "notimplemented")),
    ),
    Setting(
        name="CPU frequency driver",
        guide="3.4.4 EIST, P-States",
        effect="decides how fast the CPU frequency follows the I/O load",
        how="kernel parameter intel_pstate= or amd_pstate=; EIST and P-States in the BIOS",
        read=_drivers,
        real_world=anything(),
        synthetic=anything("any that supports the governor performance"),
    ),
    Setting(
        name="CPU governor",
        guide="3.4.4 EIST, P-States",
        effect="a CPU that waits for I/O counts as idle and slows down: higher latency at low queue depth",
        how="echo performance (real-world: powersave with intel_pstate and amd-pstate, else schedutil) > "
        "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        read=files(f"{_CPUFREQ}/scaling_governor"),
        real_world=Wish("balanced", _is_balanced, _balanced_governor),
        synthetic=exactly("performance"),
    ),
    Setting(
        name="CPU energy preference",
        guide="3.4.4 EIST, P-States",
        effect="hint to the CPU how readily to raise its frequency; as important as the governor",
        how="echo performance (real-world: balance_performance) > "
        "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
        read=files(f"{_CPUFREQ}/energy_performance_preference"),
        real_world=Wish(
            "balanced", lambda part: part.value not in ("performance", "0"), lambda part: "balance_performance"
        ),
        synthetic=Wish("performance", lambda part: part.value in ("performance", "0"), lambda part: "performance"),
    ),
    Setting(
        name="CPU minimum frequency",
        guide="3.4.6 Minimum processor state",
        effect="below the maximum, a slow CPU submits and completes the first I/Os after a pause",
        how="write cpuinfo_max_freq of the same folder to /sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq",
        read=files(f"{_CPUFREQ}/scaling_min_freq"),
        real_world=anything(),
        synthetic=Wish(
            "100 % of the maximum",
            lambda part: part.value == part.sibling("cpuinfo_max_freq"),
            lambda part: part.sibling("cpuinfo_max_freq") or None,
        ),
        laptop=anything("as shipped (laptop)"),
    ),
    Setting(
        name="CPU maximum frequency",
        guide="3.4.6 Maximum processor state",
        effect="a limit below the CPU's maximum caps the IOPS of small blocks",
        how="write cpuinfo_max_freq of the same folder to /sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq",
        read=files(f"{_CPUFREQ}/scaling_max_freq"),
        real_world=anything(),
        synthetic=Wish(
            "100 % of the maximum",
            lambda part: part.value == part.sibling("cpuinfo_max_freq"),
            lambda part: part.sibling("cpuinfo_max_freq") or None,
        ),
        laptop=anything("as shipped (laptop)"),
    ),
    Setting(
        name="CPU turbo",
        guide="3.4.4 Intel Turbo Mode",
        effect="off: each I/O takes more CPU time; on: results depend on the host's temperature",
        how="echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 1 > /sys/devices/system/cpu/cpufreq/boost",
        read=files("devices/system/cpu/intel_pstate/no_turbo", "devices/system/cpu/cpufreq/boost", f"{_CPUFREQ}/boost"),
        real_world=Wish("enabled", lambda part: part.value == _boosts(part), _boosts),
        synthetic=Wish("enabled", lambda part: part.value == _boosts(part), _boosts),
        describe=_turbo_in_words,
    ),
    Setting(
        name="CPU idle states",
        guide="3.4.4 C-States",
        effect="a CPU wakes from a deep state tens to hundreds of µs after the drive's interrupt",
        how="echo 1 (real-world: 0) > /sys/devices/system/cpu/cpu*/cpuidle/state*/disable for states slower than C1",
        read=files("devices/system/cpu/cpu[0-9]*/cpuidle/state*/disable"),
        real_world=Wish(
            "all enabled",
            lambda part: part.value == "0" or part.sibling("default_status") == "disabled",
            lambda part: "0",
        ),
        synthetic=Wish(
            f"none slower than {_SHALLOW_US} µs",
            lambda part: part.value != "0" or _exit_us(part) <= _SHALLOW_US,
            lambda part: "1",
        ),
        describe=_idle_states,
    ),
    Setting(
        name="CPU mitigations",
        guide="3.4.5 Data Execution Prevention: left as shipped in both scenarios",
        effect="slow down every system call and interrupt: up to tens of percent of IOPS at small blocks",
        how="remove mitigations=off and similar kernel parameters and restart",
        read=_vulnerabilities,
        real_world=Wish("as shipped: in force", _mitigated),
        synthetic=Wish("as shipped: in force", _mitigated),
        describe=_mitigations,
    ),
    Setting(
        name="Kernel parameters",
        guide="",
        effect="parameters for power saving, mitigations, interrupts or drives override other settings",
        how="edit the boot loader's configuration and restart",
        read=_parameters,
        real_world=Wish(
            "none that turns off what is shipped", lambda part: not part.value.startswith(_FASTER_THAN_SHIPPED)
        ),
        synthetic=anything("any: recorded"),
        describe=_join,
    ),
    Setting(
        name="Virtualisation",
        guide="",
        effect="exits to the hypervisor lengthen every interrupt, and other guests take CPU time",
        how="run on the host itself",
        read=_hypervisor,
        real_world=anything("any: recorded"),
        synthetic=nothing("no virtual machine"),
        empty="no virtual machine",
    ),
    Setting(
        name="Clock source",
        guide="",
        effect="every I/O reads the clock twice: hpet and acpi_pm take over 1 µs per reading, tsc about 20 ns",
        how="echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource if it is offered there",
        read=files("devices/system/clocksource/clocksource0/current_clocksource"),
        real_world=anything(),
        synthetic=only("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", words="tsc or similar"),
    ),
    Setting(
        name="Transparent huge pages",
        guide="",
        effect="`always` makes buffers huge, and memory compaction interrupts the load",
        how="echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        read=files("kernel/mm/transparent_hugepage/enabled"),
        real_world=anything(),
        synthetic=Wish("madvise or never", lambda part: part.value in ("madvise", "never"), lambda part: "madvise"),
    ),
    Setting(
        name="NUMA balancing",
        guide="",
        effect="moves memory between nodes while fio uses it, which pauses its threads",
        how="echo 0 > /proc/sys/kernel/numa_balancing",
        read=proc_files("sys/kernel/numa_balancing"),
        real_world=anything(),
        synthetic=exactly("0", "off (0)"),
    ),
)
