"""The bars of measured values side by side show what the table says, the best drive first."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from drivelab.figures.kinds.drives import best_first, side_by_side

WRITE, REPLAY = "random write 4 KiB, QD16", "replay sqlite"


def values() -> pd.DataFrame:
    """Return three drives at two workloads: `c` is the best at both, and `a` has no interval."""
    rows = [
        (WRITE, "iops", "IOPS", False, drive, value) for drive, value in (("a", 1000.0), ("b", 500.0), ("c", 2000.0))
    ]
    rows += [
        (REPLAY, "access_time_us", "µs", True, drive, value)
        for drive, value in (("a", 6000.0), ("b", 9000.0), ("c", 3000.0))
    ]
    columns = ["workload", "metric", "unit", "lower_is_better", "drive", "value"]
    frame = pd.DataFrame(rows, columns=columns).assign(reduced=True, virtual=True, clock="wall")
    known = frame["drive"] != "a"
    return frame.assign(
        interval_low=(0.9 * frame["value"]).where(known), interval_high=(1.1 * frame["value"]).where(known)
    )


def bars(figure: Figure, panel: int) -> dict[str, tuple[float, float]]:
    """Return place and length of the bar of each drive, from the top."""
    found = {
        str(group.get_label()): group.patches[0] for group in figure.axes[panel].containers if hasattr(group, "patches")
    }
    return {name: (bar.get_y(), bar.get_width()) for name, bar in found.items()}


def test_the_best_drive_is_on_top_for_speeds_and_times() -> None:
    assert best_first(values()) == ["c", "a", "b"]
    figure = side_by_side(values())
    speeds, times = bars(figure, 0), bars(figure, 1)
    assert sorted(speeds, key=speeds.__getitem__) == sorted(times, key=times.__getitem__) == ["c", "a", "b"]
    assert [speeds[drive][1] for drive in "abc"] == [1000, 500, 2000]
    assert [times[drive][1] for drive in "abc"] == [6, 9, 3], "in ms"


def test_each_bar_has_its_number_its_interval_and_its_workload() -> None:
    figure = side_by_side(values())
    panel = figure.axes[0]
    numbers = {text.get_text() for text in panel.texts if text.get_gid() == "number"}
    assert numbers == {"1,000", "500", "2,000"}
    whiskers = {str(line.get_label()): line.get_xdata() for line in panel.get_lines() if line.get_gid() == "interval"}
    assert list(whiskers["c"][:2]) == [1800, 2200]
    assert "a" not in whiskers
    assert [label.get_text() for label in panel.get_yticklabels()] == ["random write 4 KiB, QD16"]
    assert panel.get_xlabel() == "I/O rate (IOPS)"
    assert figure.axes[1].get_xlabel() == "Access time (ms), lower is better"


def test_a_drive_without_a_workload_has_no_bar_there() -> None:
    frame = values()
    figure = side_by_side(frame[(frame["drive"] != "b") | (frame["workload"] == WRITE)])
    assert set(bars(figure, 1)) == {"a", "c"}


def test_nothing_is_drawn_of_nothing() -> None:
    with pytest.raises(ValueError, match="no values to show"):
        side_by_side(values().iloc[:0])
