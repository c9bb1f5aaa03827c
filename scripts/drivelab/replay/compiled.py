"""Call the compiled loops over requests: native/overlaps.c, repeats.c and dependencies.c."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from drivelab import native
from drivelab.core.errors import UserError
from drivelab.trace.statistics.batch import UNKNOWN, Flags, Ints, Words


def overlaps(begin: Ints, end: Ints, changes: Flags, until_ns: Ints, start_ns: Ints) -> Flags:
    """Return which rows begin while a conflicting earlier request is in flight.

    The first four arrays have shape (requests in flight before + rows,), `start_ns` and the result (rows,).
    """
    result = np.zeros(start_ns.size, np.bool_)
    counts = (begin.size - start_ns.size, start_ns.size)
    arrays = [_ints(begin), _ints(end), _flags(changes), _ints(until_ns), _ints(start_ns), result]
    if not _library().overlaps_find(*counts, *map(_address, arrays)):
        raise _no_memory()
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


def last_completions(
    waiting: tuple[Ints, Ints, Ints], rows: tuple[Ints, Ints, Ints], known: Flags, queue_ns: Ints, none: int
) -> tuple[Ints, Ints, tuple[Ints, Ints, Ints]]:
    """Return the record that each row waits for (or `none`), the ns since its completion, and the next `waiting`.

    `waiting` and `rows` are stream, completion time and record, of earlier requests and of the rows. `known` is whether
    a row's stream is known.
    """
    after, think_ns = np.full(queue_ns.size, none, np.int64), np.zeros(queue_ns.size, np.int64)
    both = [_ints(np.concatenate(parts)) for parts in zip(waiting, rows, strict=True)]
    kept = _library().dependencies_find(
        waiting[0].size, queue_ns.size, *map(_address, [*both, known := _flags(known), queue_ns := _ints(queue_ns)]),
        UNKNOWN, _address(after), _address(think_ns),
    )  # fmt: skip
    if kept < 0:
        raise _no_memory()
    stream, complete_ns, record = (values[:kept].copy() for values in both)
    return after, think_ns, (stream, complete_ns, record)


def _ints(values: Ints) -> Ints:
    return np.ascontiguousarray(values, np.int64)


def _flags(values: Flags) -> Flags:
    return np.ascontiguousarray(values, np.bool_)


def _address(values: npt.NDArray[Any]) -> int:
    return values.ctypes.data


def _no_memory() -> UserError:
    return UserError("too little memory to prepare a replay; close other programs")


@functools.cache
def _library() -> ctypes.CDLL:
    library = native.load()
    pointer, count = ctypes.c_void_p, ctypes.c_uint64
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "overlaps_find": (ctypes.c_bool, (count, count, *[pointer] * 6)),
        "repeats_mark": (None, (count, pointer, pointer, count, pointer, pointer)),
        "repeats_find": (None, (count, pointer, pointer, count, pointer, pointer)),
        "dependencies_find": (
            ctypes.c_int64, (count, count, *[pointer] * 5, ctypes.c_int64, pointer, pointer)
        ),
    }  # fmt: skip
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
