"""Conditions that cannot act on the results; a difference in one of them does not count as unintended.

Only what is certain belongs in this table. Each entry says which recorded fact makes it certain.
"""

from __future__ import annotations

from collections.abc import Mapping

CANNOT_ACT = "cannot act"
"""Kind of a difference that cannot act; always intended."""
IO_PATH = "I/O path"
"""The facet that says how I/Os reach the drive."""
DIRECT, PAGE_CACHE, FILE_SYSTEM = "direct", "page cache", "file system"
"""Values of IO_PATH: O_DIRECT; fio without it; an application on a mounted file system, whatever its own I/O does."""


INERT = {
    # mm/readahead.c: the kernel reads ahead into the page cache. open(2): O_DIRECT bypasses the page cache.
    "drive setting: Read-ahead": (IO_PATH, DIRECT, "direct I/O bypasses read-ahead"),
}
"""By facet of the table `conditions`: another facet, its only value on both sides with which it cannot act, and why."""


def cannot_act(facet: str, basis: Mapping[str, str], comparison: Mapping[str, str]) -> bool:
    """Return whether a difference in `facet` cannot act; `basis` and `comparison` map the facets to their values."""
    other, value, _ = INERT.get(facet, ("", "", ""))
    return facet in INERT and all(side.get(other) == value for side in (basis, comparison))


def reason(facet: str) -> str:
    """Return why a difference of kind CANNOT_ACT in `facet` does not count."""
    return INERT[facet][-1]
