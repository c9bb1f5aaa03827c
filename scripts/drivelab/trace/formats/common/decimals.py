"""Convert decimal numbers of seconds to whole ns, exactly."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab import native
from drivelab.trace.formats.common.trace_format import MalformedError, Whole

_NS = pa.decimal128(28, 9)


def decimal_ns(texts: pa.StringArray, name: str) -> Whole:
    """Convert seconds to whole ns, exactly.

    Raises MalformedError for other texts, negative or too large numbers, and more than nine decimals.
    """
    if (plain := _plain(texts)) is not None:
        return plain
    try:
        exact = _exact(texts)
    except pa.ArrowInvalid:
        shown = f"{name} '{texts[0].as_py()[:40]}'" if len(texts) else name
        raise MalformedError(f"{shown} is not a number of seconds with up to nine decimals") from None
    words = np.frombuffer(exact.buffers()[1], np.int64)[: 2 * len(exact)].reshape(-1, 2)
    if words[:, 1].any() or (words[:, 0] < 0).any():
        raise MalformedError(f"{name} is negative or beyond 2^63 ns")
    return np.ascontiguousarray(words[:, 0])


def _exact(texts: pa.StringArray) -> pa.Decimal128Array:
    try:
        return pc.cast(texts, _NS)
    except pa.ArrowInvalid:
        return pc.cast(pc.utf8_trim_whitespace(texts), _NS)


def _plain(texts: pa.StringArray) -> Whole | None:
    """Convert texts that are all plain, such as `12.345`; None if another must be converted by Arrow."""
    _, offsets, text = texts.buffers()
    if not len(texts) or texts.null_count or text is None:
        return None
    ns = np.empty(len(texts), np.int64)
    first = offsets.address + 4 * texts.offset
    return ns if _parser()(len(texts), first, text.address, ns.ctypes.data) == len(texts) else None


@functools.cache
def _parser() -> ctypes._NamedFuncPointer:
    parse = native.load().seconds_parse
    parse.restype, parse.argtypes = ctypes.c_int64, (ctypes.c_int64, *[ctypes.c_void_p] * 3)
    return parse
