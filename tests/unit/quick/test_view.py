"""What a quick look prints is complete and unambiguous in 80 columns."""

from __future__ import annotations

import pytest

from drivelab.quick.view import short


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
