"""Exact data of the native engine: a function of seed, index of the request, and number of the block in it.

`drivelab/native/replay/buffers.c` is the same in C; a test compares the two. Each 64-bit word of a block is the same
word of a pattern XOR the key of the block. So every word tells which write it came from, and a block with words of
several writes is torn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drivelab.trace.statistics.batch import Flags, Ints, Words

BLOCK_BITS = 17
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = 30, 27, 31
_INVERSES = tuple(np.uint64(pow(int(factor), -1, 1 << 64)) for factor in _FACTORS)


def _mixed(numbers: Words) -> Words:
    """Return a bijection of 64-bit numbers, the finaliser of SplitMix64."""
    numbers = (numbers ^ (numbers >> np.uint64(_SHIFTS[0]))) * _FACTORS[0]
    numbers = (numbers ^ (numbers >> np.uint64(_SHIFTS[1]))) * _FACTORS[1]
    return numbers ^ (numbers >> np.uint64(_SHIFTS[2]))


def _unshifted(numbers: Words, shift: int) -> Words:
    """Return x for x ^ (x >> shift)."""
    result = numbers
    for _ in range(64 // shift):
        result = numbers ^ (result >> np.uint64(shift))
    return result


def _unmixed(numbers: Words) -> Words:
    numbers = _unshifted(numbers, _SHIFTS[2]) * _INVERSES[1]
    numbers = _unshifted(numbers, _SHIFTS[1]) * _INVERSES[0]
    return _unshifted(numbers, _SHIFTS[0])


def pattern(seed: int, block_bytes: int) -> Words:
    """Return the words of the pattern, shape (words of a block,)."""
    return _mixed(np.uint64(~seed % (1 << 64)) + np.arange(block_bytes // 8, dtype=np.uint64) * _STEP)


def blocks(seed: int, block_bytes: int, index: Ints, number: Ints) -> Words:
    """Return blocks of writes, shape (blocks, words): `number` counts from 0 in the request `index`."""
    key = _mixed(np.uint64(seed) + ((index.astype(np.uint64) << np.uint64(BLOCK_BITS)) | number.astype(np.uint64)))
    return pattern(seed, block_bytes) ^ key[:, None]


class Origin(NamedTuple):
    """The write that words came from, if they came from any; arrays of the shape of the words."""

    request: Ints
    """-1 if its index does not fit into 46 bits, so that the words are of no replay."""
    block: Ints
    """The block's number in the request."""


def origins(words: Words, key_pattern: Words, seed: int) -> Origin:
    """Return the origin of words; `key_pattern` has the words of the pattern at the same places."""
    numbers = _unmixed(words ^ key_pattern) - np.uint64(seed)
    index = (numbers >> np.uint64(BLOCK_BITS)).astype(np.int64)
    known = index < 1 << 46
    return Origin(np.where(known, index, -1), (numbers & np.uint64((1 << BLOCK_BITS) - 1)).astype(np.int64))


def uniform(content: Words, key_pattern: Words) -> Flags:
    """Return which blocks have one key; `content` has shape (blocks, words)."""
    keys = content ^ key_pattern
    return np.asarray((keys == keys[:, :1]).all(axis=1), np.bool_)
