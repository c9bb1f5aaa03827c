"""Compare the kernel's count of writes with the program's own."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.criteria.taint import DEFAULT, KERNEL, digest, foreign_words, foreign_writes, own_writes, taints

MIB = 1 << 20


def line(written: int, discarded: int, read: int | None = None, /, **own: int) -> dict[str, Any]:
    reads = {} if read is None else {"read_bytes": read}
    return {KERNEL: {"written_bytes": written, "discarded_bytes": discarded, **reads}, **own_writes(**own)}


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (line(5 * MIB, 0, written=5 * MIB), None),
        (line(13 * MIB, 0, written=5 * MIB), "others wrote 8 MiB"),
        (line(512, MIB, written=0), "others wrote 512 B and discarded 1 MiB"),
        (line(MIB, 0, written=2 * MIB), "the kernel counted 1 MiB written less than the measurement"),
        (line(MIB, MIB, written=0, discarded=2 * MIB),
         "others wrote 1 MiB and the kernel counted 1 MiB discarded less than the measurement"),
        (line(3 * MIB, 0, written=2 * MIB, failed_written=MIB), None),
        (line(2 * MIB, 0, written=2 * MIB, failed_written=MIB), None),
        (line(4 * MIB, 0, written=2 * MIB, failed_written=MIB), "others wrote 1 MiB"),
        (line(0, 0, 4 * MIB, written=0, read=4 * MIB), None),
        (line(0, 0, 5 * MIB, written=0, read=4 * MIB), None),
        (line(0, 0, 4 * MIB, written=0, read=8 * MIB), "the kernel counted 4 MiB read less than the measurement"),
        (line(0, 0, written=0, read=8 * MIB), None),
    ],
)  # fmt: skip
def test_foreign_writes_are_reported_in_bytes(of: dict[str, Any], words: str | None) -> None:
    assert foreign_words(foreign_writes(of)) == words
    assert taints(foreign_writes(of), DEFAULT) == ([] if words is None else [f"foreign: {words}"])


@pytest.mark.parametrize("of", [{}, own_writes(MIB), {KERNEL: {"written_bytes": MIB, "discarded_bytes": 0}}])
def test_without_both_counts_nothing_is_reported(of: dict[str, Any]) -> None:
    assert foreign_writes(of) == {}
    assert taints(foreign_writes(of), DEFAULT) == []


def test_the_largest_foreign_write_of_many_cells_is_reported() -> None:
    reasons = ["foreign: others wrote 900 KiB", "foreign: others wrote 8 MiB", "foreign: others wrote 512 B"]
    assert digest(reasons) == ["foreign: others wrote 8 MiB at worst, in 3 cells"]
