"""Check variance components against known truth, by simulation, and against hand-made cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from drivelab.analysis.deltas.variation import Term, estimate, terms_of, variation_table

CORRELATION = 0.6  # of any two rounds of a recording
MODELS = {f"d{drive}": "Model 1" for drive in range(4)}


def _study(
    random: np.random.Generator,
    *,
    drives: int = 4,
    recordings: int = 4,
    cells: int = 8,
    rounds: float = 0.02,
    shared: float = 0.015,
    own: float = 0.015,
    specimens: float = 0.04,
) -> list[dict[str, Any]]:
    """Return the values of recordings: averages of five rounds, with standard deviations as named."""
    values = []
    for drive in range(drives):
        of_drive = random.normal(0, specimens)
        for run in range(recordings):
            of_recording = random.normal(0, shared)
            for cell in range(cells):
                level = cell + of_drive + of_recording + random.normal(0, own)
                common = math.sqrt(CORRELATION) * random.normal(0, rounds)
                samples = np.exp(level + random.normal(common, math.sqrt(1 - CORRELATION) * rounds, 5))
                values.append(
                    {"drive": f"d{drive}", "measurement": "m", "protocol": "p", "cell_label": str(cell),
                     "metric": "iops", "recording": f"d{drive}/m/run{run}", "value": samples.mean(),
                     "samples": samples.tolist(), "scope": "rounds", "verdict": "steady", "reduced": False,
                     "virtual": True, "clock": "virtual"}
                )  # fmt: skip
    return values


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param({}, id="typical"),
        pytest.param({"shared": 0.03, "own": 0.002}, id="recordings shift all cells"),
        pytest.param({"shared": 0.0, "own": 0.03}, id="cells vary alone"),
        pytest.param({"cells": 1}, id="one cell"),
    ],
)
def test_components_and_intervals_of_known_truth(sizes: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    set_to = {"rounds": 0.02, "shared": 0.015, "own": 0.015, "specimens": 0.04, **sizes}
    of_rounds = math.sqrt((1 + 4 * CORRELATION) / 5) * set_to["rounds"]
    of_recordings = math.hypot(set_to["shared"], set_to["own"], of_rounds)
    truth = {"recordings": of_recordings, "specimens": set_to["specimens"]}
    found: dict[str, list[tuple[float, bool]]] = {source: [] for source in truth}
    for _ in range(60):
        for row in variation_table(_study(random, **sizes), MODELS).itertuples():
            true_pct = 100 * truth[row.source]
            found[row.source].append((row.sd_pct, row.low_pct <= true_pct <= row.high_pct))
    for source, rows in found.items():
        mean_square = np.mean([sd_pct**2 for sd_pct, _ in rows])
        assert math.sqrt(mean_square) == pytest.approx(100 * truth[source], rel=0.15), source
        assert np.mean([covered for _, covered in rows]) > 0.87, source  # 95 % less three standard errors


def test_specimens_need_a_model_and_hosts_platforms() -> None:
    values = _study(np.random.default_rng(1), drives=2)
    assert set(variation_table(values, {})["source"]) == {"recordings"}
    on_platforms = [{**row, "drive": f"op7@{row['drive']}"} for row in values]
    table = variation_table(on_platforms, {}).set_index("source")
    assert table.loc["hosts", "subject"] == "op7"
    assert table.loc["hosts", "n"] == 2


def test_disturbed_values_and_incomplete_cells_do_not_count() -> None:
    values = _study(np.random.default_rng(2), drives=1, cells=3)
    clean = variation_table(values, {})
    values.append({**values[0], "cell_label": "in one recording only", "value": 1e6, "samples": [1e6]})
    values.append({**values[0], "cell_label": "disturbed", "verdict": "tainted", "samples": [1.0, 1e6]})
    assert variation_table(values, {}).equals(clean)
    assert variation_table([], {}).empty


def test_a_single_mean_square_has_the_chi_square_interval() -> None:
    variance, low, high = estimate([Term(1.0, 4.0, 10.0)])
    assert (variance, low, high) == (4.0, pytest.approx(1.953, abs=1e-3), pytest.approx(12.32, abs=1e-2))
    assert estimate([Term(1.0, 1.0, 10.0), Term(-1.0, 4.0, 10.0)])[:2] == (0.0, 0.0)


def test_terms_add_up_to_the_variance_of_a_cell() -> None:
    logs = np.random.default_rng(3).normal(size=(6, 5))
    variance, _, _ = estimate(terms_of(logs))
    assert variance == pytest.approx(float(logs.var(axis=1, ddof=1).mean()))
