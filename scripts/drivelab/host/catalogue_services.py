"""Define settings for swap and background services.

Guide: Solidigm Performance Evaluation Guide, August 2022, revision 001, table of section 3.4.5 (operating system). It
turns updates, indexing, scheduled optimisation, tasks, virus scanners and the firewall off in *both* scenarios, because
they run rarely and disturb much (3.2). Only virtual memory and the prefetcher (see `catalogue_drive`) differ.

A study stops known maintenance timers. Unknown timers may be backups, so drivelab only reports them. It also leaves the
firewall unchanged: block I/O of a local drive does not pass through it.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from drivelab.drives.sysfs import read_text
from drivelab.drives.undo import Command
from drivelab.host.entry import Part, Setting, Wish, anything, nothing, programs
from drivelab.host.machine import Machine

UPDATES = (
    "apt-daily*", "update-notifier-*", "dnf-*", "yum-*", "zypp-refresh*", "packagekit*", "pacman-*", "pamac-*",
    "reflector*", "fwupd-refresh*", "ua-timer*", "apt-news*", "esm-cache*", "motd-news*", "rpm-ostree*", "bootc-*",
    "nix-gc*", "nixos-upgrade*", "flatpak-*", "snapd.*",
)  # fmt: skip
UPKEEP = (
    "fstrim*", "e2scrub*", "xfs_scrub*", "btrfs-*", "btrfsmaintenance*", "zfs-scrub*", "zfs-trim*", "mdcheck*",
    "mdmonitor*", "raid-check*", "lvm2-*", "duperemove*", "bees*",
)  # fmt: skip
INDEXING = ("updatedb*", "plocate-*", "mlocate-*", "man-db*", "locate*")
SNAPSHOTS = ("snapper-*", "timeshift*", "sanoid*", "syncoid*")
TASKS = (
    "systemd-tmpfiles-clean*", "logrotate*", "sysstat-*", "dpkg-db-backup*", "anacron*", "shadow*", "unbound-anchor*",
    "pmie*", "pmlogger*", "systemd-readahead*", "phpsessionclean*",
)  # fmt: skip
INDEXERS = (
    "tracker-miner-fs-3", "tracker-miner-fs", "tracker-extract-3", "localsearch-3", "baloo_file",
    "baloo_file_extractor", "recollindex", "updatedb", "updatedb.plocate", "mandb",
)  # fmt: skip
VIRUS_SCANNERS = (
    "clamd", "clamonacc", "freshclam", "wdavdaemon", "falcon-sensor", "falcon-sensor-bpf", "ds_agent",
    "sav-protect", "cbagentd", "oaeventd", "esets_daemon", "sentinelone-agent", "elastic-endpoint",
)  # fmt: skip
_KNOWN = UPDATES + UPKEEP + INDEXING + SNAPSHOTS + TASKS


def _is_one_of(unit: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(unit, pattern) for pattern in patterns)


def _timers(patterns: tuple[str, ...]) -> Callable[[Machine, str], list[Part] | None]:
    def read(machine: Machine, drive: str) -> list[Part] | None:
        active = machine.timers()
        return None if active is None else [_timer(unit) for unit in active if _is_one_of(unit, patterns)]

    return read


def _timer(unit: str) -> Part:
    return Part(unit, unit, do=Command(("systemctl", "stop", unit)), undo=Command(("systemctl", "start", unit)))


def _unknown_timers(machine: Machine, drive: str) -> list[Part] | None:
    active = machine.timers()
    return None if active is None else [Part(unit, unit) for unit in active if not _is_one_of(unit, _KNOWN)]


def _swaps(machine: Machine, drive: str) -> list[Part] | None:
    """Return the swap areas.

    Used ones stay unchanged, because their pages would first be read back into memory.
    """
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


def _clock(machine: Machine, drive: str) -> list[Part] | None:
    state = machine.synchronised()
    return None if state is None else [Part("clock", "synchronised" if state else "not synchronised")]


def _packet_filters(machine: Machine, drive: str) -> list[Part] | None:
    modules = read_text(machine.proc_root / "modules")
    if modules is None:
        return None
    loaded = {line.split()[0] for line in modules.splitlines() if line.split()}
    return [Part(name, name) for name in ("nf_tables", "ip_tables", "nf_conntrack") if name in loaded]


_OFF = nothing("none active")
_NOT_RUNNING = nothing("none running")

SETTINGS = (
    Setting(
        name="Swap",
        guide="3.4.5 Virtual Memory: managed automatically, or no paging file",
        effect="swapped pages are additional I/O on a drive and pause the measuring threads",
        how="swapoff -a (and back: swapon -a)",
        read=_swaps,
        real_world=anything("as installed"),
        synthetic=nothing("no swap"),
        empty="no swap",
    ),
    Setting(
        name="Update timers",
        guide="3.4.5 Windows Update",
        effect="downloads and installs packages in the middle of a measurement",
        how="systemctl stop apt-daily.timer apt-daily-upgrade.timer, and the others listed here",
        read=_timers(UPDATES),
        real_world=_OFF,
        synthetic=_OFF,
        empty="none active",
    ),
    Setting(
        name="TRIM and scrub timers",
        guide="3.4.5 Defragment and Optimize Drives",
        effect="discards, reads or checks whole drives: changes a drive's state and keeps it busy for hours",
        how="systemctl stop fstrim.timer, and the others listed here",
        read=_timers(UPKEEP),
        real_world=_OFF,
        synthetic=_OFF,
        empty="none active",
    ),
    Setting(
        name="Indexing timers",
        guide="3.4.5 Indexing Options",
        effect="reads all files from drives, and evicts caches from memory",
        how="systemctl stop plocate-updatedb.timer man-db.timer, and the others listed here",
        read=_timers(INDEXING),
        real_world=_OFF,
        synthetic=_OFF,
        empty="none active",
    ),
    Setting(
        name="Snapshot timers",
        guide="3.4.5 System Protection",
        effect="creates and deletes snapshots: causes copy-on-write and additional writes",
        how="systemctl stop snapper-timeline.timer, and the others listed here",
        read=_timers(SNAPSHOTS),
        real_world=_OFF,
        synthetic=_OFF,
        empty="none active",
    ),
    Setting(
        name="Upkeep timers",
        guide="3.4.5 Task Scheduler",
        effect="log rotation and deletion of temporary files cause short bursts of load",
        how="systemctl stop logrotate.timer systemd-tmpfiles-clean.timer, and the others listed here",
        read=_timers(TASKS),
        real_world=_OFF,
        synthetic=_OFF,
        empty="none active",
    ),
    Setting(
        name="Other timers",
        guide="3.4.5 Task Scheduler",
        effect="unknown tasks may start in the middle of a measurement; they may be backups, so drivelab leaves them",
        how="systemctl stop NAME.timer if the task may wait until the study has ended",
        read=_unknown_timers,
        real_world=_OFF,
        synthetic=_OFF,
        empty="none active",
    ),
    Setting(
        name="Task schedulers",
        guide="3.4.5 Task Scheduler",
        effect="start crontab tasks in the middle of a measurement",
        how="systemctl stop cron (or crond, anacron, atd) if their tasks may wait until the study has ended",
        read=programs("cron", "crond", "anacron", "atd", "fcron"),
        real_world=_NOT_RUNNING,
        synthetic=_NOT_RUNNING,
        empty="none running",
    ),
    Setting(
        name="Update services",
        guide="3.4.5 Windows Update",
        effect="download and install packages in the middle of a measurement",
        how="systemctl stop unattended-upgrades packagekit snapd, and the others listed here",
        read=programs("unattended-upgrades", "packagekitd", "snapd", "dnf-automatic", "fwupd", "zypper"),
        real_world=_NOT_RUNNING,
        synthetic=_NOT_RUNNING,
        empty="none running",
    ),
    Setting(
        name="Indexing services",
        guide="3.4.5 Indexing Options",
        effect="read every new file: I/O on drives with file systems, and CPU load",
        how="tracker3 daemon --terminate, balooctl disable, or end the programs listed here",
        read=programs(*INDEXERS),
        real_world=_NOT_RUNNING,
        synthetic=_NOT_RUNNING,
        empty="none running",
    ),
    Setting(
        name="Virus scanners",
        guide="3.4.5 Real-time protection, Anti-Virus",
        effect="check every opened file, and scan drives automatically",
        how="stop the scanner's service for the study",
        read=programs(*VIRUS_SCANNERS),
        real_world=_NOT_RUNNING,
        synthetic=_NOT_RUNNING,
        empty="none running",
    ),
    Setting(
        name="Drive monitors",
        guide="",
        effect="smartd and similar services send commands that delay I/O; telemetry reads the same values",
        how="systemctl stop smartmontools (or smartd), udisks2",
        read=programs("smartd", "udisksd", "scrutiny-collector"),
        real_world=anything(),
        synthetic=_NOT_RUNNING,
        empty="none running",
    ),
    Setting(
        name="irqbalance",
        guide="",
        effect="moves drives' interrupts between CPUs during a measurement (SATA and SAS, not NVMe)",
        how="systemctl stop irqbalance",
        read=programs("irqbalance"),
        real_world=anything(),
        synthetic=_NOT_RUNNING,
        empty="not running",
    ),
    Setting(
        name="Time synchronisation",
        guide="",
        effect="if the clock jumps, times of telemetry and cells no longer match",
        how="systemctl start systemd-timesyncd, or chrony; wait until timedatectl says synchronized",
        read=_clock,
        real_world=Wish("synchronised", lambda part: part.value == "synchronised"),
        synthetic=Wish("synchronised", lambda part: part.value == "synchronised"),
    ),
    Setting(
        name="Firewall",
        guide="3.4.5 Windows Defender Firewall",
        effect="none on local drives; adds latency to drives that are accessed over the network",
        how="drivelab never changes the network; ask its administrator",
        read=_packet_filters,
        real_world=anything("any on local drives: recorded"),
        synthetic=anything("any on local drives: recorded"),
        empty="no packet filter loaded",
    ),
)
