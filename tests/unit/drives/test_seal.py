from __future__ import annotations

from dataclasses import replace

import pytest

from drivelab.drives.seal import Seal, broken
from drivelab.drives.sysfs import Wear

WEAR = Wear(boot_id="b", diskseq="7", sectors_written=1000, sectors_discarded=10)
SEAL = Seal("precondition", "S1", "abc", WEAR, "2026-01-01T00:00:00.000+00:00")


def test_intact_when_nothing_happened() -> None:
    assert broken(SEAL, "precondition", "S1", "abc", WEAR) is None
    assert Seal.from_mapping(SEAL.to_mapping()) == SEAL


@pytest.mark.parametrize(
    ("stage", "serial", "plan", "live", "words"),
    [
        ("purge", "S1", "abc", WEAR, "after precondition"),
        ("precondition", "S2", "abc", WEAR, "S1"),
        ("precondition", "S1", "xyz", WEAR, "another plan"),
        ("precondition", "S1", "abc", replace(WEAR, boot_id="c"), "host was started anew"),
        ("precondition", "S1", "abc", replace(WEAR, diskseq="8"), "attached anew"),
        ("precondition", "S1", "abc", replace(WEAR, sectors_written=1008), "others wrote 4KiB"),
        ("precondition", "S1", "abc", replace(WEAR, sectors_discarded=12), "discarded 1KiB"),
        ("precondition", "S1", "abc", replace(WEAR, sectors_written=900), "went back"),
    ],
)
def test_broken_with_its_reason(stage: str, serial: str, plan: str, live: Wear, words: str) -> None:
    reason = broken(SEAL, stage, serial, plan, live)
    assert reason is not None
    assert words in reason
