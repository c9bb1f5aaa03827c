"""Describe volumes between a file system and the disks: partitions, device mapper, md arrays, bcache."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives.arrays import CLEAN, REBUILDING, RESYNCING, md_state
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import block_dir, read_text

_THIN = "The first write to an area also allocates it, which is slower than later writes."
_PARITY_LEVELS = ("raid4", "raid5", "raid6")
_PARITY = "A small write also reads and writes parity."
_BUSY = {REBUILDING: "The rebuild reads and writes its disks at the same time.",
         RESYNCING: "Its resync or check reads and writes its disks at the same time."}  # fmt: skip
_MAPPINGS = (
    (r"CRYPT-(LUKS[12]|PLAIN|TCRYPT|BITLK|FVAULT2)\b.*", "dm-crypt", "encrypted ({0})",
     "It encrypts, which costs CPU time and limits throughput on slow cores."),
    (r"CRYPT-INTEGRITY\b.*", "device mapper", "integrity checks (dm-integrity)",
     "It writes a checksum with each block, by default through a journal, so all data twice."),
    (r"CRYPT-VERITY\b.*", "device mapper", "verified (dm-verity)", "It is read-only and verifies each block."),
    (r"mpath-.*", "multipath", "multipath device", ""),
    (r"LVM-.*", "LVM", "LVM volume", ""),
    (r"DMRAID-.*", "device mapper", "firmware RAID (dmraid)", ""),
    (r"VDO-.*", "device mapper", "VDO",
     "It removes duplicate data and compresses, so data that repeat or compress look fast."),
    (r"part\d+-.*", "partition", "partition (kpartx)", ""),
)  # fmt: skip
"""Beginnings of dm/uuid (libdm, libcryptsetup, multipath-tools): kind, words and caution."""
_INTERNAL = r"LVM-\w{64}-.+"
"""A part of an LVM volume: the identifiers of group and volume, then a suffix (lvm2, lib/activate/dev_manager.c)."""
_OTHER = ("", "device mapper", "mapping of unknown kind",
          "What it does is unknown here; as root, `dmsetup table {name}` shows it.")  # fmt: skip
"""Kind, words and caution of a mapping with another or no dm/uuid."""
_VOLUMES = (
    (r"LVM-.*-tpool", "thin", _THIN),
    (r"LVM-.*-vpool", "VDO", "It removes duplicate data and compresses, so data that repeat or compress look fast."),
    (r"LVM-.*-c(data|pool|vol|meta)", "cached", "A faster device caches it, so repeated accesses look faster."),
    (r"LVM-.*-(real|cow)", "snapshot or its origin", "The first write to an area also copies the old data."),
)
"""dm/uuid of devices below an LVM volume that show its kind (lvm2, lib/activate/dev_manager.c)."""


@dataclass(frozen=True)
class Layer:
    """One layer between a measured number and the medium."""

    kind: str
    """`file system`, `overlay`, `memory`, `network`, `FUSE`, `LVM`, `dm-crypt`, `multipath`, `device mapper`, `md`,
    `loop`, `bcache`, `ZFS volume`, `partition`, `disk`, `unknown`."""
    name: str
    """Type of the file system, or name of the device."""
    words: str
    """What it is, for people."""
    cautions: tuple[str, ...] = ()
    """What it does to the numbers."""


def partition(name: str, directory: Path) -> Layer:
    start = int(read_text(directory / "start") or 0)
    misaligned = start % 8 != 0 or (read_text(directory / "alignment_offset") or "0") != "0"
    warning = f"It starts at sector {start}, which is not a multiple of 4 KiB. A 4 KiB write can touch two blocks."
    number = read_text(directory / "partition")
    return Layer("partition", name, f"partition {number} of {directory.parent.name}", (warning,) * misaligned)


def mapping(name: str, directory: Path, below: list[str], host: Host) -> Layer | None:
    """Describe a device of the device mapper; None for a part of an LVM volume, which users do not see."""
    uuid = read_text(directory / "dm/uuid") or ""
    if re.fullmatch(_INTERNAL, uuid):
        return None
    shown = read_text(directory / "dm/name") or name
    match, row = next(((m, row) for row in _MAPPINGS if (m := re.fullmatch(row[0], uuid))), (None, _OTHER))
    kind, text, caution = row[1], row[2].format(*(match.groups() if match else ())), row[3].format(name=shown)
    warnings = [caution] if caution else []
    if kind == "LVM":
        kinds, more = _volume_kinds(below, host)
        text += f" ({', '.join(kinds)})" if kinds else ""
        warnings += more
    if kind == "multipath":
        text += f" with {len(below)} paths"
    return Layer(kind, shown, text, tuple(warnings))


def _volume_kinds(below: list[str], host: Host) -> tuple[list[str], list[str]]:
    """Return what the devices below an LVM volume show about its kind."""
    folders = [block_dir(name, host.sys_root) / "dm" for name in below]
    uuids = [read_text(folder / "uuid") or "" for folder in folders]
    found = [row for row in _VOLUMES if any(re.fullmatch(row[0], uuid) for uuid in uuids)]
    kinds, warnings = [row[1] for row in found], [row[2] for row in found]
    if any("_rimage_" in (read_text(folder / "name") or "") for folder in folders):
        kinds.append("RAID")
        warnings.append("Each write goes to several devices; `lvs -o +segtype` shows the level.")
    return kinds, warnings


def array(name: str, directory: Path, host: Host) -> Layer:
    """Describe an md array (Documentation/admin-guide/md.rst)."""
    level = read_text(directory / "md/level") or "unknown level"
    disks = read_text(directory / "md/raid_disks") or "?"
    title = f"RAID {level.removeprefix('raid')}" if level.startswith("raid") else f"md {level}"
    state = md_state(name, host.sys_root)
    text = f"{title} of {disks} disks" + ("" if state.state == CLEAN else f", {state.words}")
    warnings = []
    if level in _PARITY_LEVELS:
        warnings.append(_PARITY)
    if level in ("raid1", "raid10"):
        warnings.append("Each write goes to several disks, each read to one.")
    if state.missing:
        lost = "Missing data are computed from other disks" if level in _PARITY_LEVELS else "A copy is missing"
        warnings.append(f"It is degraded. {lost}, so it is slower than when complete.")
    if state.state in _BUSY:
        warnings.append(_BUSY[state.state])
    return Layer("md", name, text, tuple(warnings))


def bcache(name: str, folder: Path) -> Layer:
    """Describe a bcache device (Documentation/admin-guide/bcache.rst); cache_mode marks the current mode by []."""
    mode = re.search(r"\[(\w+)\]", read_text(folder / "cache_mode") or "")
    warning = "A faster device caches it, so repeated accesses look faster than the slow disk."
    return Layer("bcache", name, f"bcache, {mode[1]}" if mode else "bcache, mode unknown", (warning,))
