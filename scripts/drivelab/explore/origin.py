"""Where compared values come from: statistic, recordings, cells and the jobs of fio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from drivelab.core.grouping import grouped
from drivelab.explore.compare import Comparison

_CELL = ["measurement", "cell_label"]
_COLUMNS = ["drive", *_CELL, "metric", "value", "unit", "statistic", "n", "samples", "scope", "verdict",
            "taint_reason", "host_limit", "reduced", "virtual", "clock", "recordings", "evidence"]  # fmt: skip


def origins(comparison: Comparison) -> pd.DataFrame:
    """Return a row for each compared value of both sides, with columns of table `summary`.

    `drive` is the side. `recordings` and `evidence` are paths, except of imported values.
    """
    values = comparison.values.merge(comparison.deltas[[*_CELL, "metric"]].drop_duplicates())[_COLUMNS]
    for name in ("recordings", "evidence"):
        roots = [comparison.folders[side] / "recordings" for side in values["drive"]]
        paths = [
            [(root / place, place) for place in map(str, places)]
            for root, places in zip(roots, values[name], strict=True)
        ]
        values[name] = [[str(path) if path.is_dir() else place for path, place in of_value] for of_value in paths]
    return values


def origin_lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield lines for each cell: of each side the statistics, the recordings, their cells and the first one's job."""
    values = pd.concat([origins(comparison) for comparison in comparisons])
    rows = values.drop_duplicates(["drive", *_CELL, "metric"]).to_dict("records")
    for (measurement, label), of_cell in grouped(rows, lambda row: (row["measurement"], row["cell_label"])).items():
        yield f"{measurement}, {label}"
        for side, of_side in grouped(of_cell, lambda row: row["drive"]).items():
            metrics = grouped(of_side, lambda row: row["statistic"])
            yield f"  {side}: " + "; ".join(
                f"{statistic} of {', '.join(row['metric'] for row in of_one)}" for statistic, of_one in metrics.items()
            )
            evidence = dict.fromkeys(place for row in of_side for place in row["evidence"])
            for recording in dict.fromkeys(name for row in of_side for name in row["recordings"]):
                cells = [place.removeprefix(f"{recording}/") for place in evidence if place.startswith(f"{recording}/")]
                yield f"    {recording}{': ' if cells else ''}{', '.join(cells)}"
            job = next((path for place in evidence if (path := Path(place) / "job.fio").is_file()), None)
            if job is not None:
                yield f"    job.fio: {' '.join(job.read_text(encoding='utf-8', errors='replace').split())}"
