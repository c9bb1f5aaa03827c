import numpy as np
import pytest
from rows import key, loop, table

from drivelab.analysis.values.summary import summary_table
from drivelab.tables.schemas import SCHEMAS
from drivelab.tables.windows import windows_table

CRITERION = {"window": 5, "data_excursion": 0.2, "slope_excursion": 0.1,
             "track": [{"metric": "iops", "read_share": 0}]}  # fmt: skip


def test_a_value_says_how_far_it_is_from_its_asymptote() -> None:
    recordings = [
        loop((1000 * (1 + 2 * np.exp(-np.arange(13) / constant))).tolist(), where=key(run=run))
        for run, constant in enumerate((3, 3, 3), start=1)
    ]
    cells = table("cells", [row for rows in recordings for row in rows])
    windows = windows_table(cells, {0: CRITERION})
    empty = [table(name, []).reindex(columns=SCHEMAS[name].names) for name in ("replays", "replay_passes")]

    summary = summary_table(cells, windows, *empty)

    assert windows["window_end"].tolist() == [13, 13, 13]
    assert windows["asymptote_pct"].tolist() == pytest.approx([-7.4] * 3, abs=0.5)
    by_metric = summary.set_index("metric")["asymptote_pct"]
    assert by_metric["iops"] == pytest.approx(-7.4, abs=0.5)
    assert by_metric["mean_latency_us"] == pytest.approx(7.9, abs=1.5)
