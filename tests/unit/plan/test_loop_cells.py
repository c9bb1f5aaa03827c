"""Cells of a loop: a grid, or a list with shares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve

LIST: list[dict[str, Any]] = [
    {"pattern": "random", "read_share": 0, "block_size": "4KiB", "queue_depth": 7, "share": "60%"},
    {"pattern": "sequential", "read_share": 0, "block_size": "4KiB", "share": "20%"},
    {"pattern": "random", "read_share": 100, "block_size": "4KiB", "threads": 3, "share": "0.01%"},
]


def protocol(folder: Path, change: Callable[[dict[str, Any]], object] = lambda loop: None) -> Path:
    loop: dict[str, Any] = {
        "cells": [dict(cell) for cell in LIST],
        "runtime": "60s",
        "until": {
            "steady_state": {
                "window": 5,
                "max_rounds": 25,
                "data_excursion": "20%",
                "slope_excursion": "10%",
                "track": [{"pattern": "sequential", "read_share": 0, "block_size": "4KiB", "metric": "iops"}],
            }
        },
    }
    change(loop)
    class_fields = {"threads": 1, "queue_depth": 2, "active_range": "50%"}
    body = {
        "name": "listed",
        "title": "t",
        "source": "s",
        "class": {"enterprise": class_fields, "client": class_fields},
        "condition": {"purge": "none"},
        "measure": [{"loop": loop}],
        "scale": {"demo": {"loop": {"runtime": "1s"}}},
        "description": "d",
        "sources": {"class": "s", "condition": "s", "loop": "s"},
    }
    path = folder / "listed.yaml"
    path.write_text(yaml.safe_dump(body, sort_keys=False))
    return path


def cells(path: Path, scale: str | None = None, **settings: Any) -> list[dict[str, Any]]:
    (measurement,) = resolve(load(path), "client", scale, settings, "test")
    resolved_cells: list[dict[str, Any]] = measurement.steps["measure"][0]["loop"]["cells"]
    return resolved_cells


def test_a_list_is_measured_in_its_order(tmp_path: Path) -> None:
    resolved_cells = cells(protocol(tmp_path))
    assert [(c["pattern"], c["read_share"], c["queue_depth"], c["threads"]) for c in resolved_cells] == [
        ("random", 0, 7, 1),
        ("sequential", 0, 2, 1),
        ("random", 100, 2, 3),
    ]
    assert all(c["range_share"] == 0.5 for c in resolved_cells)


def test_shares_divide_the_round_and_the_smallest_gets_a_tenth_of_the_runtime(tmp_path: Path) -> None:
    assert [c["runtime_s"] for c in cells(protocol(tmp_path))] == pytest.approx([134.983, 44.994, 6.0], abs=2e-3)
    assert [c["runtime_s"] for c in cells(protocol(tmp_path), "demo")] == pytest.approx([2.25, 0.75, 0.1], abs=1e-3)


def test_without_shares_all_cells_take_the_runtime(tmp_path: Path) -> None:
    path = protocol(tmp_path, lambda loop: [cell.pop("share") for cell in loop["cells"]])
    assert [c["runtime_s"] for c in cells(path)] == [60.0] * 3


def test_a_study_may_replace_the_list_by_a_list_or_grid(tmp_path: Path) -> None:
    track = {
        "steady_state": {"track": [{"pattern": "random", "read_share": 0, "block_size": "4KiB", "metric": "iops"}]}
    }
    (measurement,) = resolve(
        load(protocol(tmp_path)), "client", None, {"loop": {"cells": LIST[:1], "until": track}}, "test"
    )
    assert len(measurement.steps["measure"][0]["loop"]["cells"]) == 1
    assert measurement.altered[0].startswith(
        "loop cells: random 0 4KiB 7 60% instead of random 0 4KiB 7 60%, sequential 0"
    )
    grid = {"pattern": "random", "cells": {"read_share": [0], "block_size": ["8KiB", "4KiB"]}, "until": track}
    assert [c["block_size_bytes"] for c in cells(protocol(tmp_path), loop=grid)] == [8192, 4096]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda loop: loop["cells"][1].pop("share"), "a cell of the loop has no 'share'"),
        (lambda loop: loop["cells"][1].update(share="0%"), "a cell of the loop has a share of 0%"),
        (lambda loop: loop["cells"].append(dict(LIST[0])), "the loop has RND 4KiB 0/100 T1Q7 twice"),
        (lambda loop: loop.update(pattern="random"), "remove the loop's"),
        (
            lambda loop: loop["until"]["steady_state"]["track"][0].update(read_share=100),
            "sequential access, read share",
        ),
        (lambda loop: loop["until"]["steady_state"]["track"][0].pop("pattern"), "which matches 2 cells of the loop"),
        (lambda loop: loop["cells"][0].pop("pattern"), r"cells\[0\]': 'pattern' is missing"),
        (lambda loop: loop["cells"][0].update(blok_size=1), "unknown key 'blok_size'; did you mean 'block_size'"),
        (lambda loop: loop.update(cells=[]), "is empty; give at least one entry"),
        (lambda loop: loop.update(cells={"read_share": [0], "block_size": ["4KiB"]}), "'pattern' is missing"),
        (lambda loop: loop.update(pattern="random", cells={"read_share": [0]}), "'block_size' is missing"),
        (lambda loop: loop.update(cells="all"), "is not of type"),
    ],
)
def test_mistakes_are_reported_with_their_place(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    path = protocol(tmp_path, change)
    with pytest.raises(UserError, match=reason):
        cells(path)
