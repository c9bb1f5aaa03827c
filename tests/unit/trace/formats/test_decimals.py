"""Decimal numbers of seconds become exact ns."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.plan.yaml_file import load_yaml
from drivelab.trace.formats import PLAIN_COLUMNS
from drivelab.trace.formats.common.column_reader import Columns
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import MalformedError

SPC = Columns(name="spc", **load_yaml(PLAIN_COLUMNS)["spc"])
UNUSUAL = ["4611686018.427387904", "0", "00000000001.5", "1456095145.123456000", " 1.5 ", "+1", ".5", "5.", "1e3",
           "1E-3", "1.0000000000"]  # fmt: skip
plain = st.decimals(0, 4611686018, places=3).map(str) | st.integers(0, 4611686018).map(str)


def times_ns(*texts: str) -> list[int]:
    block = Block("".join(f"0,8,512,r,{text}\n" for text in texts).encode(), 1)
    return list(SPC.convert(block)["time"].to_pylist())


@given(st.lists(plain | st.sampled_from(UNUSUAL), min_size=1, max_size=20))
def test_seconds_are_exact(texts: list[str]) -> None:
    assert times_ns(*texts) == [int(Decimal(text.strip()) * 10**9) for text in texts]


@pytest.mark.parametrize("text", ["", "1.1234567891", "1.5s", "1_0", "0x1", "nan", "-1", "9223372036.854775808", "1 5",
                                  "1..5", "18446744073.709551617"])  # fmt: skip
def test_other_texts_are_malformed(text: str) -> None:
    with pytest.raises(MalformedError, match=r"^Timestamp (is negative or beyond|'.*' is not a number of seconds)"):
        times_ns(text)
    with pytest.raises(MalformedError):
        times_ns("1.5", text, "2.5")
