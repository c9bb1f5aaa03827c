"""What a quick look prints is complete and unambiguous in 80 columns."""

from __future__ import annotations

import pytest

from drivelab.analysis.values.quick_look import Sustained
from drivelab.quick.view import short, sustained_words


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["home-marianne-photos", "home-marianne-backup"], ["photos", "backup"]),
        (["mnt-a", "mnt-a-2"], ["a", "a-2"]),
        (["nvme0n1", "data"], ["nvme0n1", "data"]),
        (["home-marianne-photos", "shm"], ["home-mariann", "shm"]),
    ],
)
def test_the_heads_of_two_places_differ(names: list[str], shown: list[str]) -> None:
    assert short(names) == shown


def test_a_sustained_write_without_a_cliff_is_given_by_its_mean() -> None:
    """Where the rate rises from 10 to 30 MiB/s, the rate at the start is not that of the write."""
    ends_s, rates_mib_s = tuple(range(1, 11)), (10.0,) * 5 + (30.0,) * 5
    look = Sustained(ends_s, rates_mib_s, written_bytes=200 << 20, cliff_bytes=None)
    assert sustained_words(look) == "Sustained write: 20 MiB/s, no cliff in 0.195 GiB (10 s)."
