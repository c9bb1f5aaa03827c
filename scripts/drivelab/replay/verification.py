"""Verify the data of a replay: what its reads returned, and what the drive holds at the end."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.replay.data_check import FAULTS, read_back
from drivelab.replay.read_check import READ_FAULTS, check_reads
from drivelab.replay.read_origins import ORIGINS

READS = "reads"
"""Key of the result for the reads during the replay; the other keys are those of drivelab.replay.data_check."""


def new_data(block_bytes: int) -> dict[str, int]:
    """Return seed and block size for a replay to be verified, as the outcome stores them.

    The seed is new each time: with an earlier seed, data of an earlier replay would look like the data of this one.
    """
    return {"seed": secrets.randbits(64), "block_bytes": block_bytes}


def verify(target: str | None, outcome: Path) -> dict[str, Any]:
    """Judge the reads of a replay, read back what it wrote, and delete the file of origins beside the outcome.

    `target` None: do not read back, because the target does not answer; the result has the reads only. Raises UserError
    when a file or the target cannot be read.
    """
    origins = outcome.with_name(ORIGINS)
    reads = check_reads(outcome, origins)
    origins.unlink()
    return {**({} if target is None else read_back(target, outcome)), READS: reads}


def wrong_blocks(checked: Mapping[str, Any]) -> int:
    """Return the number of blocks with other data than was last written, at the end or when read."""
    at_the_end = sum(checked.get(fault, 0) for fault in FAULTS)
    return int(at_the_end + sum(checked.get(READS, {}).get(fault, 0) for fault in READ_FAULTS))


def verified_blocks(checked: Mapping[str, Any]) -> int:
    """Return the number of blocks that had to have certain data, at the end or when read."""
    return int(checked.get("required_blocks", 0) + checked.get(READS, {}).get("required_blocks", 0))


def first_example(checked: Mapping[str, Any]) -> str | None:
    """Return the description of a wrong block, or None; reads come first, because they say when."""
    return next(iter([*checked.get(READS, {}).get("examples", ()), *checked.get("examples", ())]), None)
