"""Words select a published number; a word without a match gets suggestions."""

from __future__ import annotations

import pandas as pd
import pytest

from drivelab.core.errors import UserError
from drivelab.explore.number_evidence import choose

ROWS = pd.DataFrame(
    {
        "drive": ["op7", "op28"], "measurement": "m", "protocol": "p", "cell_label": ["RND 4KiB", "rate=max"],
        "metric": ["iops", "bandwidth_mib_s"], "statistic": "median",
    },
    index=[1, 2],
)  # fmt: skip
KNOWN = "drive, measurement, protocol, cell_label, metric"


@pytest.mark.parametrize(
    ("words", "found"),
    [(["metric=IOPS"], [1]), (["op28"], [2]), (["rate=max"], [2]), (["drive=op7", "RND"], [1]), (["op"], [1, 2])],
)
def test_words_select_numbers(words: list[str], found: list[int]) -> None:
    assert list(choose(ROWS, "summary", words).index) == found


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("metrc=iops", f"there is no column 'metrc' in summary; did you mean 'metric'? Columns are {KNOWN}"),
        ("Metric=iops", f"there is no column 'Metric' in summary; did you mean 'metric'? Columns are {KNOWN}"),
        ("x=iops", f"there is no column 'x' in summary; use one of {KNOWN}"),
        ("statistic=median", f"numbers of summary cannot be selected by column 'statistic'; use one of {KNOWN}"),
        ("metric=iosp", "'metric=iosp' matches no number of summary; there is metric: iops, bandwidth_mib_s"),
    ],
)
def test_words_without_a_match_are_refused(word: str, sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        choose(ROWS, "summary", [word])
    assert str(refusal.value) == sentence
