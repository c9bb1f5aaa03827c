"""The kernel's letters for operation and flags, such as `R`, `WS`, `FWFSM`.

Source: blkparse(1), RWBS.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from drivelab.trace.formats.common.model import MalformedError
from drivelab.trace.schema import FLAGS, OPERATIONS

_LETTERS = re.compile(r"(F?)(WZ|DE|[RWDNF])([FASM]*)")
_OPERATIONS = {"R": "read", "W": "write", "D": "discard", "DE": "discard", "WZ": "write-zeroes", "F": "flush", "N": ""}
_AFTER = {"F": "fua", "A": "readahead", "S": "sync", "M": "meta"}


@lru_cache(1024)
def parse_flags(letters: str) -> tuple[str, frozenset[str]]:
    """Return operation (empty for `N`, no data) and flags.

    An F before the direction is `preflush`, after it FUA. Raises MalformedError for other letters.
    """
    match = _LETTERS.fullmatch(letters)
    if match is None:
        raise MalformedError(f"'{letters[:20]}' is not an operation with flags")
    flags = {_AFTER[letter] for letter in match[3]} | ({"preflush"} if match[1] else set())
    return _OPERATIONS[match[2]], frozenset(flags)


def flag_letters(operation: str, flags: frozenset[str]) -> str:
    """Return letters in blkparse's order; an empty flush is `FW`, as when queued."""
    direction = {"read": "R", "write": "W", "discard": "D", "write-zeroes": "WZ", "flush": "FW"}[operation]
    before = "F" if "preflush" in flags and operation != "flush" else ""
    return before + direction + "".join(letter for letter, flag in _AFTER.items() if flag in flags)


class FlagColumns:
    """Operation and flags of many requests as columns."""

    def __init__(self, letters: Sequence[str]) -> None:
        parsed = [parse_flags(text) for text in letters]
        if any(not operation for operation, _ in parsed):
            raise MalformedError("a request without data has no direction")
        self.operation: npt.NDArray[np.int8] = np.array([OPERATIONS.index(name) for name, _ in parsed], np.int8)
        self.columns = {flag: np.array([flag in flags for _, flags in parsed], bool) for flag in FLAGS}
