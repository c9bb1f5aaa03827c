"""The figure of all drives in order of one value."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from drivelab.figures.kinds.drives.fleet_order import fleet_heat, fleet_order


def deviations(low: list[float], high: list[float]) -> pd.DataFrame:
    """Return a hundred drives: outliers below and above, and the rest within 1 % of 1,000."""
    values = np.concatenate([low, np.linspace(990, 1010, 100 - len(low) - len(high)), high])
    outlier = np.isin(values, low + high)
    return pd.DataFrame(
        {"drive": [f"d{number}" for number in range(1, 101)], "measurement": "pts-iops", "cell_label": "RND 4KiB",
         "metric": "iops", "unit": "IOPS", "value": values, "place": 1.0, "outlier": outlier,
         "kind": "speed", "interval_low": values - 1, "interval_high": values + 1,
         "modified_z": np.where(outlier, (values - 1000) / 5, 0.0), "clock": "virtual", "virtual": True,
         "reduced": True}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "names"),
    [
        ([800.0, 940.0], [], ["d2, d1"]),
        ([800.0], [1300.0], ["d100", "d1"]),
        (
            [800.0, 805.0, 808.0, 809.0, 810.0, 811.0, 850.0],
            [1300.0],
            ["d100", "d5, d4, d3, d2, d1, \N{HORIZONTAL ELLIPSIS}"],
        ),
    ],
)
def test_names_of_outliers_do_not_cover_each_other(low: list[float], high: list[float], names: list[str]) -> None:
    figure = fleet_order(deviations(low, high))
    axes = figure.axes[0]
    shown = [text for text in axes.texts if text.get_text().startswith("d")]
    assert [text.get_text() for text in shown] == names
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in shown]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    assert all(axes.get_window_extent().x0 < box.x0 and box.x1 < axes.get_window_extent().x1 for box in boxes)
    plt.close(figure)


def test_few_drives_are_named_best_on_top_with_their_intervals() -> None:
    rows = deviations([800.0], []).head(8).assign(kind="time", metric="mean_latency_us", unit="us")
    figure = fleet_order(rows, "Random read 4 KiB, QD1")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"d{number}" for number in range(1, 9)]
    assert axes.yaxis_inverted()
    assert axes.get_xlabel() == "Mean latency (µs), lower is better"
    (interval,) = [line for line in axes.get_lines() if line.get_gid() == "interval"]
    assert interval.get_xydata()[:2].tolist() == [[799.0, 0.0], [801.0, 0.0]]
    plt.close(figure)


def test_the_legend_lies_below_the_values() -> None:
    figure = fleet_order(deviations([800.0], [1300.0]))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert figure.axes[0].get_legend() is None
    assert legend.get_window_extent().y1 < figure.axes[0].get_window_extent().y0
    plt.close(figure)


@pytest.mark.parametrize("drives", [5, 100])
def test_the_label_of_the_colours_is_no_longer_than_their_bar(drives: int) -> None:
    rows = deviations([800.0], [1300.0]).tail(drives).assign(deviation_pct=1.0)
    figure = fleet_heat(rows)
    figure.draw_without_rendering()
    bar = figure.axes[1]
    box, of_bar = bar.yaxis.label.get_window_extent(), bar.get_window_extent()
    assert of_bar.y0 <= box.y0
    assert box.y1 <= of_bar.y1
    assert box.x1 <= figure.bbox.x1
    plt.close(figure)
