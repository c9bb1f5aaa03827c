"""Decimal numbers of seconds become exact ns, by the fast way or by Arrow's."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.trace.formats.common.column_reader import decimal_ns
from drivelab.trace.formats.common.trace_format import MalformedError

ENDS = ["9223372035.999999999", "9223372036.854775807", "0", "00000000001.5", "1456095145.123456000"]
UNUSUAL = [" 1.5 ", "+1", ".5", "5.", "1e3", "1E-3", "1.0000000000"]
plain = st.decimals(0, 9223372036, places=3).map(str) | st.integers(0, 9223372036).map(str) | st.sampled_from(ENDS)


@given(st.lists(plain | st.sampled_from(UNUSUAL), min_size=1, max_size=20), st.integers(0, 3))
def test_seconds_are_exact(texts: list[str], first: int) -> None:
    expected = [int(Decimal(text.strip()) * 10**9) for text in texts[first:]]
    assert decimal_ns(pa.array(texts)[first:], "time").tolist() == expected


@pytest.mark.parametrize("text", ["", "1.1234567891", "1.5s", "1_0", "0x1", "nan", "-1", "9223372036.854775808", "1 5",
                                  "1..5", "18446744073.709551617"])  # fmt: skip
def test_other_texts_are_malformed(text: str) -> None:
    for texts in ([text], ["1.5", text, "2.5"]):
        with pytest.raises(MalformedError, match=r"^time (is negative or beyond|'.*' is not a number of seconds)"):
            decimal_ns(pa.array(texts), "time")
