"""Seals: which state a drive is in, and the counters that prove that nobody else wrote to it since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drivelab.drives.sysfs import SECTOR_BYTES, Wear
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


def broken(seal: Seal, stage: str, serial: str, plan: str, live: Wear) -> str | None:
    """Why a seal does not vouch for the drive as it is now, in words; None if it is intact."""
    if seal.stage != stage:
        return f"the drive was left after {seal.stage}, not after {stage}"
    if seal.serial != serial:
        return f"the seal is of drive {seal.serial}, this is {serial}"
    if seal.plan != plan:
        return "the drive was prepared for another plan"
    if seal.wear.boot_id != live.boot_id:
        return "the host was started anew since, and the drive's counters with it"
    if seal.wear.diskseq != live.diskseq:
        return "the drive was attached anew since"
    written = live.sectors_written - seal.wear.sectors_written
    discarded = live.sectors_discarded - seal.wear.sectors_discarded
    if written < 0 or discarded < 0:
        return "the drive's write counters went back"
    if written or discarded:
        return (
            f"others wrote {format_size(written * SECTOR_BYTES)} and discarded "
            f"{format_size(discarded * SECTOR_BYTES)} since"
        )
    return None
