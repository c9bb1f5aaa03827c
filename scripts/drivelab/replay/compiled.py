"""Call the compiled loops over requests: native/overlaps.c and repeats.c."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from drivelab import native
from drivelab.core.errors import UserError
from drivelab.trace.statistics.batch import Flags, Ints, Words


def overlaps(begin: Ints, end: Ints, changes: Flags, until_ns: Ints, start_ns: Ints) -> Flags:
    """Return which rows begin while a conflicting earlier request is in flight.

    The first four arrays have shape (requests in flight before + rows,), `start_ns` and the result (rows,).
    """
    result = np.zeros(start_ns.size, np.bool_)
    counts = (begin.size - start_ns.size, start_ns.size)
    arrays = [_ints(begin), _ints(end), _flags(changes), _ints(until_ns), _ints(start_ns), result]
    if not _library().overlaps_find(*counts, *map(_address, arrays)):
        raise UserError("too little memory to prepare a replay; close other programs")
    return result


def mark_repeats(numbers: Ints, used: Flags, seen: Words, repeated: Words) -> None:
    """Mark each used number in `seen`, and in `repeated` if it was marked before.

    Both have a bit for each place, a power of two. A number shares its place with others.
    """
    arrays = [_ints(numbers), _flags(used)]
    _library().repeats_mark(numbers.size, *map(_address, arrays), 64 * seen.size, _address(seen), _address(repeated))


def are_repeats(numbers: Ints, used: Flags, repeated: Words) -> Flags:
    """Return which numbers are used and share a place in `repeated` with another one."""
    result = np.zeros(numbers.size, np.bool_)
    arrays = [_ints(numbers), _flags(used)]
    _library().repeats_find(
        numbers.size, *map(_address, arrays), 64 * repeated.size, _address(repeated), _address(result)
    )
    return result


def _ints(values: Ints) -> Ints:
    return np.ascontiguousarray(values, np.int64)


def _flags(values: Flags) -> Flags:
    return np.ascontiguousarray(values, np.bool_)


def _address(values: npt.NDArray[Any]) -> int:
    return values.ctypes.data


@functools.cache
def _library() -> ctypes.CDLL:
    library = native.load()
    pointer, count = ctypes.c_void_p, ctypes.c_uint64
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "overlaps_find": (ctypes.c_bool, (count, count, *[pointer] * 6)),
        "repeats_mark": (None, (count, pointer, pointer, count, pointer, pointer)),
        "repeats_find": (None, (count, pointer, pointer, count, pointer, pointer)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
