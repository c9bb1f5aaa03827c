"""The data of writes, and where words came from."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drivelab.replay.verify.written_data import blocks, origins, pattern, uniform


@given(st.integers(0, 2**64 - 1), st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 2**17 - 1)), min_size=1))
def test_every_word_tells_its_write(seed: int, writes: list[tuple[int, int]]) -> None:
    index, number = (np.array(column, np.int64) for column in zip(*writes, strict=True))
    content, words = blocks(seed, 512, index, number), pattern(seed, 512)
    origin = origins(content, words, seed)
    assert (origin.request == index[:, None]).all()
    assert (origin.block == number[:, None]).all()
    assert uniform(content, words).all()
    content[0, 7] ^= np.uint64(1)
    assert not uniform(content, words)[0]
