"""Seals: the state of a drive, and the write counters that prove it has not changed since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drivelab.core.units import format_size
from drivelab.drives.identified import Identity
from drivelab.drives.sysfs import SECTOR_BYTES, VIRTUAL_CLOCK, Wear


@dataclass(frozen=True)
class Seal:
    """Written at the end of a stage and compared with the live drive at the start of the next."""

    stage: str
    """`purge` or `precondition`."""
    drive: Identity
    plan: str
    """Digest of the plan that the stage belongs to."""
    wear: Wear
    written_at: str
    """ISO 8601, UTC."""

    def to_mapping(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> Seal:
        return cls(**{**body, "drive": Identity.from_mapping(body["drive"]), "wear": Wear(**body["wear"])})


@dataclass(frozen=True)
class Verdict:
    """Whether a seal is intact, and the reason, for people."""

    intact: bool
    reason: str


def judge(seal: Seal, stage: str, drive: Identity, plan: str, live: Wear) -> Verdict:
    """Compare a seal with the required `stage`, `drive` and `plan`, and with the live counters of the drive.

    A host restart or a re-attached device resets the kernel's counters. Then only the drive's own counter can prove
    that nothing was written, to within `nvme.DATA_UNIT_BYTES`; it does not count discards. On the virtual clock the
    counters are those of the drive model.
    """
    if seal.stage != stage:
        return Verdict(False, f"the drive was sealed after {seal.stage}, not after {stage}")
    if changes := seal.drive.changes(drive):
        return Verdict(False, f"the seal belongs to another drive: {'; '.join(changes)}")
    if seal.plan != plan:
        return Verdict(False, "the drive was prepared for another plan")
    loss = counters_lost(seal.wear, live)
    if loss is not None:
        return _by_lifetime(seal.wear, live, loss)
    written = live.sectors_written - seal.wear.sectors_written
    discarded = live.sectors_discarded - seal.wear.sectors_discarded
    if written < 0 or discarded < 0:
        return Verdict(False, "the drive's write counters went backwards")
    if written or discarded:
        return Verdict(
            False,
            f"other programs wrote {format_size(written * SECTOR_BYTES)} and discarded "
            f"{format_size(discarded * SECTOR_BYTES)} since the seal",
        )
    if (reason := _written_beside(seal.wear, live)) is not None:
        return Verdict(False, reason)
    counters = "the drive model's counters" if live.boot_id == VIRTUAL_CLOCK else "the kernel's counters"
    return Verdict(True, f"{counters} show no write or discard since the seal")


def _written_beside(sealed: Wear, live: Wear) -> str | None:
    """Return why a member of the subject was written to, although the subject was not; None if none was.

    Anybody can write to the other partitions of a disk, or past a mapping. An array or pool writes its own records.
    """
    if sealed.members.keys() != live.members.keys():
        return "it lies on other disks now"
    for serial, counters in live.members.items():
        before = sealed.members[serial]
        written, discarded, written_beside, discarded_beside = (
            SECTOR_BYTES * (counters[name] - before[name])
            for name in ("sectors_written", "sectors_discarded", "sectors_written_beside", "sectors_discarded_beside")
        )
        if min(written, discarded, written_beside, discarded_beside) < 0:
            return f"the write counters of its disk {serial} went backwards"
        if written > live.own_records_bytes or discarded or written_beside or discarded_beside:
            return (
                f"its disk {serial} was written to beside it since the seal: {format_size(written + written_beside)} "
                f"written, {format_size(discarded + discarded_beside)} discarded"
            )
    return None


def counters_lost(before: Wear, live: Wear) -> str | None:
    """Return why the kernel's counters cannot be compared, or None if they can."""
    if before.boot_id != live.boot_id:
        return "the host was restarted"
    if before.diskseq != live.diskseq:
        return "the drive was re-attached"
    return None


def _by_lifetime(sealed: Wear, live: Wear, loss: str) -> Verdict:
    if sealed.lifetime_bytes_written is None or live.lifetime_bytes_written is None:
        return Verdict(False, f"{loss}, which resets the kernel's write counters; the drive has no write counter")
    written = live.lifetime_bytes_written - sealed.lifetime_bytes_written
    if written:
        return Verdict(False, f"{loss}, and the drive's own counter shows {format_size(written)} of other writes")
    return Verdict(True, f"{loss}, but the drive's own counter shows no write since the seal")
