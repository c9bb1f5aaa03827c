from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.report.numbers import (
    MISSING,
    amount,
    duration,
    heading,
    moment,
    names,
    number,
    percent,
    quantity,
    rounded,
    share,
    size,
)
from drivelab.report.sections.proof import deviation


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (61265.2, "61,265"), (80532.6, "80,533"), (485.2, "485.2"), (48.527, "48.53"), (1.0, "1"), (1.83, "1.830"),
        (0.0598, "0.0598"), (0.000012, "1.20e-05"), (0, "0"), (-7.8562, "\u22127.856"), (999.97, "1,000"),
        (1234567, "1,234,567"), (None, MISSING), (float("nan"), MISSING), (pd.NA, MISSING), (math.inf, "∞"),
    ],
)  # fmt: skip
def test_number(value: object, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (61265.2, "61,300"), (485.2, "485"), (12.82, "12.8"), (100.4, "100"), (999.6, "1,000"), (1, "1"), (1.5, "1.50"),
        (0.0598, "0.0598"), (0.00001, "1.00e-05"), (-12.82, "\u221212.8"), (None, MISSING), (math.inf, "∞"),
    ],
)  # fmt: skip
def test_rounded(value: object, shown: str) -> None:
    assert rounded(value) == shown


@given(st.floats(min_value=1e-3, max_value=1e12))
def test_number_keeps_three_significant_digits(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=6e-3 if value < 1 else 6e-4)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(61.7, "+62 %"), (-19.6, "\u221220 %"), (3.14, "+3.1 %"), (0.421, "+0.42 %"), (0.0, "0.00 %"), (-0.001, "0.00 %"),
     (2210.0, "+2,210 %"), (None, MISSING)],
)  # fmt: skip
def test_signed_percent(value: object, shown: str) -> None:
    assert percent(value, signed=True).replace("\u00a0", " ") == shown


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(64 << 20, "64 MiB"), (512, "512 B"), (8 << 30, "8 GiB"), (960_197_124_096, "960.2 GB"), (94_707_713, "94.71 MB"),
     (0, "0 B"), (None, MISSING)],
)  # fmt: skip
def test_size(size_bytes: object, shown: str) -> None:
    assert size(size_bytes).replace("\u00a0", " ") == shown


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(256 << 20, "256 MiB"), (69_300_224, "66.09 MiB"), (8404 << 10, "8.207 MiB"), (3 << 40, "3 TiB"), (512, "512 B"),
     (0, "0 B"), (None, MISSING)],
)  # fmt: skip
def test_amount(size_bytes: object, shown: str) -> None:
    assert amount(size_bytes).replace("\u00a0", " ") == shown


def test_times() -> None:
    assert duration(8.02).replace("\u00a0", " ") == "8.02 s"
    assert duration(59.7).replace("\u00a0", " ") == "1 min"
    assert duration(7800).replace("\u00a0", " ") == "2 h 10 min"
    assert moment("2025-11-21T04:53:10.123+01:00").replace("\u00a0", " ") == "2025-11-21 03:53 UTC"
    assert moment(pd.Timestamp("2025-11-21 04:53", tz="UTC")).replace("\u00a0", " ") == "2025-11-21 04:53 UTC"
    assert moment(pd.NaT) == moment(None) == MISSING
    assert moment("last week") == "last week"


def test_words() -> None:
    assert heading("iops", "1/s") == "IOPS"
    assert heading("p999_latency_us", "us") == "99.9 % latency, µs"
    assert heading("frame_time", "ms") == "frame time, ms"
    assert quantity(None, "IOPS") == MISSING
    assert share(0.75).replace("\u00a0", " ") == "75 %"
    assert share("75%") == "75%"
    assert names(["a", "b", "c"]) == "a, b and c"


def test_rounding_errors_are_not_scatter() -> None:
    assert deviation({"mad": 3.73e-09, "value": 187973.0}) == 0
    assert deviation({"mad": 0.02, "value": 21.05}) == 0.02
    assert deviation({"mad": 0.0, "value": 0.0}) == 0
