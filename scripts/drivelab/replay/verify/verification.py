"""Verify the data of a replay: what its reads returned, and what the drive holds at the end."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.replay.verify.data_check import FAULTS, check_target
from drivelab.replay.verify.data_requests import PREFILLED, data_of, requests_of
from drivelab.replay.verify.read_check import READ_FAULTS, judge_reads
from drivelab.replay.verify.read_origins import ORIGINS, read_origins
from drivelab.replay.volumes import ONLY

READS = "reads"
"""Key of the result for the reads during the replay; the other keys are those of drivelab.replay.verify.data_check."""


def new_data(block_bytes: int, prefilled: Sequence[str] = ()) -> dict[str, Any]:
    """Return what determines the data of a replay to be verified, as the outcome stores it.

    The seed is new each time: with an earlier seed, data of an earlier replay would look like the data of this one.
    `prefilled` are the volumes of a replay right after its prefill, in the order of the engine's targets.
    """
    data = {"seed": secrets.randbits(64), "block_bytes": block_bytes}
    return {**data, PREFILLED: list(prefilled)} if prefilled else data


def verify(targets: Mapping[str, str | None], outcome: Path) -> dict[str, dict[str, Any]]:
    """Judge the reads of a replay, read back what it wrote, and delete the file of origins beside the outcome.

    `targets`: path of each volume's target, by its name; ONLY for a trace of one volume. The result has the same keys.
    None: do not read back, because it may not answer; the result has the reads only. Raises UserError when a file or a
    target cannot be read.
    """
    origins, data, checks = outcome.with_name(ORIGINS), data_of(outcome), {}
    for name, target in targets.items():
        requests = requests_of(outcome, name or None)
        reads = judge_reads(requests, read_origins(origins, requests.begin.size - requests.prefill), data.block_bytes)
        checks[name] = {**({} if target is None else check_target(target, requests, data)), READS: reads}
    origins.unlink()
    return checks


def together(checks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the result of all volumes together: the sums, and every volume's examples with its name."""
    if ONLY in checks:
        return dict(checks[ONLY])
    every = list(checks.values())
    result: dict[str, Any] = {}
    for key in dict.fromkeys(key for check in every for key in check):
        values = [check[key] for check in every if key in check]
        if key == READS:
            result[key] = together({name: check[READS] for name, check in checks.items() if READS in check})
        elif key == "examples":
            result[key] = [f"volume {name}: {text}" for name, check in checks.items() for text in check.get(key, ())]
        elif key.endswith("_blocks") or key in FAULTS:
            result[key] = sum(values)
        else:  # the same for all: block size, power cut
            result[key] = values[0]
    return result


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
