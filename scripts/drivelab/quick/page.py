"""The page of a quick look: one picture, one table, and what stands between the numbers and the drive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from drivelab.quick.result import Place
from drivelab.quick.view import CHANGES, amount, change, spread, sustained_words, tails


def write(places: Sequence[Place], warnings: Sequence[str], output: Path) -> None:
    """Write the page as one file without scripts."""
    from drivelab.report.html import page

    by_place = [{value.shown: value for value in place.values} for place in places]
    shown = [value.shown for value in places[0].values if all(value.shown in other for other in by_place)]
    rows = []
    for test in shown:
        values = [place[test] for place in by_place]
        cells = [[amount(value.value, test.metric), spread(value.half_width_pct), tails(value)] for value in values]
        differences = [change(values[0], other) for other in values[1:]]
        limited = any(value.host_limited for value in values)
        rows.append({"test": test.words, "cells": cells, "differences": differences, "limited": limited})
    sustained = {place.name: sustained_words(place.sustained, place.range_bytes) for place in places if place.sustained}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        page("quick.html.j2", {
            "places": places, "rows": rows, "warnings": warnings, "picture": _picture(places),
            "changes": CHANGES, "limited": any(row["limited"] for row in rows),
            "sustained": sustained,
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }),
        encoding="utf-8",
    )  # fmt: skip


def _picture(places: Sequence[Place]) -> object:
    from drivelab.figures.base.sheets import draw  # imports matplotlib, which is slow
    from drivelab.figures.registry import FIGURES
    from drivelab.report.html import picture

    tables = {name: pd.concat([place.tables[name] for place in places]) for name in ("cells", "latency_bins")}
    with TemporaryDirectory() as folder:
        stem = Path(folder) / "quick_look"
        draw({"quick_look": stem}, tables, ", ".join(place.path for place in places), png=False)
        svg = stem.with_suffix(".svg").read_text(encoding="utf-8")
    kind = FIGURES["quick_look"]
    return picture({"drive": None, "measurement": None, "name": kind.name, "title": kind.title,
                    "caption": kind.caption, "svg": svg})  # fmt: skip
