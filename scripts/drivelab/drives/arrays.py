"""The state of an array: whether all members are there and synchronized."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drivelab.drives import device_mapper
from drivelab.drives.composition import Composition, kind_of
from drivelab.drives.device_mapper import Target
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.plan.subject_kinds import ARRAY, VOLUME

CLEAN, DEGRADED, REBUILDING, RESYNCING = "clean", "degraded", "rebuilding", "resyncing"
_ORDER = (CLEAN, RESYNCING, DEGRADED, REBUILDING)


@dataclass(frozen=True)
class ArrayState:
    """The state of one array."""

    name: str
    state: str
    """`clean`, `degraded` (a member is missing), `rebuilding` (a member is being filled), or `resyncing`: all members
    are there, and the kernel compares or rewrites them."""
    missing: int
    """Members that are missing or not yet filled."""
    synced_pct: float | None
    """Progress; None while nothing runs."""

    @property
    def words(self) -> str:
        lacking = f", {self.missing} missing or not filled" if self.missing else ""
        progress = "" if self.synced_pct is None else f", {self.synced_pct:.0f} % done"
        return f"{self.state}{lacking}{progress}"


@dataclass(frozen=True)
class Chain:
    """What may have a state in a device's chain, which stays the same while the device is in use."""

    arrays: tuple[str, ...]
    """Kernel names of md arrays. Their state is in the kernel's memory."""
    volumes: tuple[str, ...]
    """Kernel names of mappings. A dm-raid has a state, which a program reads."""
    sys_root: Path

    @classmethod
    def of(cls, name: str, sys_root: Path = Path("/sys")) -> Chain:
        kinds = {part: kind_of(part, sys_root) for part in sorted(Composition(name, sys_root).chain)}
        arrays, volumes = (tuple(part for part in kinds if kinds[part] == kind.name) for kind in (ARRAY, VOLUME))
        return cls(arrays, volumes, sys_root)

    def state(self) -> ArrayState | None:
        """Return the worst state of all arrays, md or dm-raid; None without an array."""
        states = [md_state(name, self.sys_root) for name in self.arrays if block_dir(name, self.sys_root).exists()]
        for volume in self.volumes:
            try:
                targets = device_mapper.status(volume)
            except OSError:  # only root may ask
                continue
            states += [state for target in targets if (state := of_raid_target(volume, target)) is not None]
        return max(states, key=lambda state: _ORDER.index(state.state), default=None)


def array_state(name: str, sys_root: Path = Path("/sys")) -> ArrayState | None:
    """Return the worst state of all arrays in a device's chain, md or dm-raid; None without an array."""
    return Chain.of(name, sys_root).state()


def md_state(name: str, sys_root: Path) -> ArrayState:
    """Return the state of an md array (Documentation/admin-guide/md); RAID 0 has none of the files and is clean."""
    directory = block_dir(name, sys_root) / "md"
    missing = int(read_text(directory / "degraded") or 0)
    action = read_text(directory / "sync_action") or "idle"
    pending = (read_text(directory / "resync_start") or "none") != "none"
    done, _, total = (read_text(directory / "sync_completed") or "none").partition("/")
    synced_pct = 100 * int(done) / int(total) if total.strip().isdigit() and int(total) else None
    if action == "recover":
        state = REBUILDING
    elif missing:
        state = DEGRADED
    else:
        state = RESYNCING if action not in ("idle", "frozen") or pending else CLEAN
    return ArrayState(name, state, missing, synced_pct)


def of_raid_target(name: str, target: Target) -> ArrayState | None:
    """Return the state in a status line of dm-raid (Documentation/admin-guide/device-mapper/dm-raid); None for others.

    Its fields are type, number of members, a letter for each (A: in sync, a: not yet, D: failed), progress, action.
    """
    if target.kind != "raid" or len(target.arguments) < 5:
        return None
    health, progress, action = target.arguments[2:5]
    done, _, total = progress.partition("/")
    synced_pct = 100 * int(done) / int(total) if action not in ("idle", "frozen") and int(total) else None
    missing = len(health) - health.count("A")
    if action == "recover":
        state = REBUILDING
    elif "D" in health or "-" in health:
        state = DEGRADED
    else:
        state = RESYNCING if missing or action not in ("idle", "frozen") else CLEAN
    return ArrayState(name, state, missing if state in (DEGRADED, REBUILDING) else 0, synced_pct)
