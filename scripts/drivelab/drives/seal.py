"""Seals: which state a drive is in, and the counters that prove that nobody else wrote to it since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drivelab.drives.sysfs import SECTOR_BYTES, VIRTUAL_CLOCK, Wear
from drivelab.units import format_size


@dataclass(frozen=True)
class Seal:
    """Written at the end of a stage, compared with the live drive at the start of the next."""

    stage: str
    """`purge` or `precondition`."""
    serial: str
    plan: str
    """Digest of the plan whose stage it was."""
    wear: Wear
    written_at: str
    """ISO 8601, UTC."""

    def to_mapping(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> Seal:
        return cls(**{**body, "wear": Wear(**body["wear"])})


@dataclass(frozen=True)
class Verdict:
    """Whether a seal vouches for the drive as it is now, and why or why not, in words."""

    intact: bool
    reason: str


def judge(seal: Seal, stage: str, serial: str, plan: str, live: Wear) -> Verdict:
    """Compare a seal with what is wanted (`stage`, `serial`, `plan`) and with the live counters of the drive.

    The kernel's counters end with the host's uptime or the device's attachment; then only a drive with a counter of
    its own can vouch for itself, to within `nvme.DATA_UNIT_BYTES`, and not for what was discarded. On the virtual
    clock they are those of the drive's model.
    """
    if seal.stage != stage:
        return Verdict(False, f"the drive was left after {seal.stage}, not after {stage}")
    if seal.serial != serial:
        return Verdict(False, f"the seal is of drive {seal.serial}, this is {serial}")
    if seal.plan != plan:
        return Verdict(False, "the drive was prepared for another plan")
    since = counters_lost(seal.wear, live)
    if since is not None:
        return _by_lifetime(seal.wear, live, since)
    written = live.sectors_written - seal.wear.sectors_written
    discarded = live.sectors_discarded - seal.wear.sectors_discarded
    if written < 0 or discarded < 0:
        return Verdict(False, "the drive's write counters went back")
    if written or discarded:
        return Verdict(
            False,
            f"others wrote {format_size(written * SECTOR_BYTES)} and discarded "
            f"{format_size(discarded * SECTOR_BYTES)} since",
        )
    whose = "the counters of the drive's model" if live.boot_id == VIRTUAL_CLOCK else "the kernel's counters"
    return Verdict(True, f"nobody wrote or discarded anything since, by {whose}")


def counters_lost(before: Wear, live: Wear) -> str | None:
    """Why the kernel's counters cannot be compared, in words; None if they can."""
    if before.boot_id != live.boot_id:
        return "the host was started anew"
    if before.diskseq != live.diskseq:
        return "the drive was attached anew"
    return None


def _by_lifetime(sealed: Wear, live: Wear, since: str) -> Verdict:
    if sealed.lifetime_bytes_written is None or live.lifetime_bytes_written is None:
        return Verdict(False, f"{since} since, and the kernel's write counters with it; the drive has none of its own")
    written = live.lifetime_bytes_written - sealed.lifetime_bytes_written
    if written:
        return Verdict(False, f"{since} since, and by the drive's own counter others wrote {format_size(written)}")
    return Verdict(True, f"{since} since, but the drive's own counter tells of no write")
