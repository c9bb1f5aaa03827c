"""Find the cliff of a soak with known truth: synthetic courses, and virtual drives with known cache and flash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drivelab.analysis.values.saturation_values import LASTING, LEAST_DROP, Cliff, find_cliff
from drivelab.fio.result import read_slices
from drivelab.plan.cell import Cell
from drivelab.plan.yaml_file import load_yaml
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

from .test_saturation import soak

Floats = npt.NDArray[np.float64]
MIB = 1 << 20
MODEL = load_yaml(Path(__file__).parents[3] / "config/virtual_drives.yaml")["op7-512e"]
CAPACITY_BYTES = 64 * MIB
SECONDS_OF_OP7 = [11764, 5416, 5060, 4255, 3699, 3342, 3115, 2864, 2719, 2566, 2432, 2310, 2234, 2176, 2071, 2025]


def cliff_at(iops: list[float]) -> int | None:
    cliff = find_cliff(soak(iops), CAPACITY_BYTES)
    return None if cliff is None else round(cliff.time_s)


def virtual_cliff(folder: Path, *, slice_s: float, seconds: float = 8.0, **changes: str) -> Cliff:
    """Return the cliff of random 4 KiB writes to a fresh virtual drive."""
    folder.mkdir()
    cell = Cell("random", 0, 4096, threads=2, queue_depth=8, runtime_s=seconds, slice_s=slice_s)
    VirtualClockDrive(DriveModel.from_mapping("made", {**MODEL, **changes}), folder / "state").run(cell, folder)
    slices = read_slices(folder, cell)
    cliff = find_cliff(soak([part.iops for part in slices], [part.runtime_s for part in slices]), CAPACITY_BYTES)
    assert cliff is not None
    return cliff


@pytest.mark.parametrize("slc_cache_mib", [16, 48])
@pytest.mark.parametrize("slice_s", [0.1, 0.5])
def test_the_cliff_is_where_the_slc_cache_is_full(slc_cache_mib: int, slice_s: float, tmp_path: Path) -> None:
    cliff = virtual_cliff(tmp_path / "drive", slice_s=slice_s, slc_cache=f"{slc_cache_mib}MiB")
    a_slice_bytes = cliff.iops_before * slice_s * 4096
    assert cliff.bytes_written == pytest.approx(slc_cache_mib * MIB, abs=a_slice_bytes)
    assert cliff.iops_before > 1.8 * cliff.iops_after


@pytest.mark.parametrize("over_provisioning_pct", [7, 28, 60])
def test_without_a_cache_the_cliff_is_where_the_spare_flash_is_written(
    over_provisioning_pct: int, tmp_path: Path
) -> None:
    spare = {"slc_cache": "0MiB", "over_provisioning": f"{over_provisioning_pct}%"}
    cliff = virtual_cliff(tmp_path / "drive", slice_s=0.1, seconds=20.0, **spare)
    a_slice_bytes = cliff.iops_before * 0.1 * 4096
    flash_bytes = CAPACITY_BYTES * (1 + over_provisioning_pct / 100)
    assert cliff.bytes_written == pytest.approx(flash_bytes, abs=a_slice_bytes)


def test_drives_with_equal_caches_have_the_same_cliff(tmp_path: Path) -> None:
    result = {
        virtual_cliff(tmp_path / spare, slice_s=1.0, seconds=20.0, over_provisioning=spare).bytes_written
        for spare in ("7%", "28%")
    }
    assert len(result) == 1


def test_a_gradual_fall_after_the_cliff_does_not_move_it() -> None:
    cliff = find_cliff(soak(SECONDS_OF_OP7), CAPACITY_BYTES)
    assert cliff is not None
    assert (cliff.time_s, cliff.iops_before) == (1, pytest.approx(11764))
    assert cliff.iops_after == pytest.approx(np.mean(SECONDS_OF_OP7[-5:]))


@given(
    fresh=st.integers(1, 30),
    drop=st.floats(1.5, 10),
    gradual=st.integers(10, 30),
    fall=st.floats(1, 1.5),
    more=st.integers(1, 500),
)
def test_a_longer_soak_has_the_same_cliff(fresh: int, drop: float, gradual: int, fall: float, more: int) -> None:
    begin = 1e5 / drop
    course = [1e5] * fresh + (begin * np.linspace(1, 1 / fall, gradual)).tolist()
    course += [course[-1]] * 6
    assert cliff_at(course) == fresh
    assert cliff_at(course + [course[-1]] * more) == fresh


@given(st.lists(st.floats(1, 2), min_size=1, max_size=40), st.integers(1, 500))
def test_a_longer_soak_does_not_move_the_cliff_of_any_fall(falls: list[float], more: int) -> None:
    course = (1e5 / np.cumprod(falls)).tolist()
    assume(not LEAST_DROP < course[0] / course[-1] < 1.1 * LEAST_DROP)  # only a longer soak shows falls that just count
    course += [course[-1]] * 2 * len(course) + [course[-1]] * 10
    assert cliff_at(course) == cliff_at(course + [course[-1]] * more)


@given(st.integers(0, 2**32 - 1), st.integers(5, 40), st.floats(0.01, 0.1))
def test_scatter_does_not_move_the_cliff(seed: int, fresh: int, scatter: float) -> None:
    noise = np.exp(np.random.default_rng(seed).normal(0, scatter, fresh + 200))
    assert cliff_at((np.r_[np.full(fresh, 4000.0), np.full(200, 1000.0)] * noise).tolist()) == fresh


@pytest.mark.parametrize("scatter", [0.02, 0.1, 0.3])
def test_scatter_alone_makes_no_cliff(scatter: float) -> None:
    random = np.random.default_rng(7)
    result = [cliff_at((1000 * np.exp(random.normal(0, scatter, 300))).tolist()) for _ in range(200)]
    assert sum(at is not None for at in result) <= 1


@pytest.mark.parametrize("after", [1, 2, 3, 4])
@pytest.mark.parametrize("scatter", [0, 0.1])
def test_a_fall_needs_three_slices_after_it(after: int, scatter: float) -> None:
    noise = np.exp(np.random.default_rng(2).normal(0, scatter, 100))
    at = cliff_at((np.r_[np.full(100 - after, 10_000.0), np.full(after, 3000.0)] * noise).tolist())
    assert at == (100 - after if after >= LASTING else None)


ALTERNATING: dict[str, Callable[[np.random.Generator], Floats]] = {
    "blocks of ten slices": lambda random: np.where(np.repeat(random.random(30) < 0.5, 10), 1e4, 5e3),
    "single slices": lambda random: np.where(random.random(300) < 0.5, 1e4, 5e3),
    "a sawtooth": lambda random: 1e4 * (1 - np.arange(100) % 20 / 40) * np.exp(random.normal(0, 0.1, 100)),
}


@pytest.mark.parametrize(("kind", "most"), [("blocks of ten slices", 15), ("single slices", 1), ("a sawtooth", 3)])
def test_an_alternating_level_is_seldom_a_cliff(kind: str, most: int) -> None:
    """A rule that only needs a low last stretch would find a cliff in 60, 20 and 50 of 100."""
    random = np.random.default_rng(9)
    found = sum(cliff_at(ALTERNATING[kind](random).tolist()) is not None for _ in range(100))
    print(f"{kind}: {found} of 100 have a cliff")
    assert found <= most


@pytest.mark.parametrize("fresh", [4, 8, 40])
@pytest.mark.parametrize("more", [60, 1000])
def test_a_short_fresh_level_has_a_cliff_despite_scatter(fresh: int, more: int) -> None:
    random, usual = np.random.default_rng(4), np.r_[np.full(fresh, 2000.0), np.full(more, 1000.0)]
    result = [cliff_at((usual * np.exp(random.normal(0, 0.1, fresh + more))).tolist()) for _ in range(40)]
    assert sum(at == fresh for at in result) >= 38


def test_the_low_level_must_last_longer_than_earlier_low_stretches() -> None:
    fresh = [4000.0] * 20 + [900.0] * 10 + [4000.0] * 30
    assert cliff_at([*fresh, *[1000.0] * 29]) is None
    assert cliff_at([*fresh, *[1000.0] * 60]) == 60
    assert cliff_at([4000.0] * 40 + [2000.0, 1000.0] * 80) == 40  # what alternates after it, below the fresh level


def test_the_first_of_several_falls_is_the_cliff() -> None:
    assert cliff_at([8000.0] * 20 + [5000.0] * 40 + [1000.0] * 40) == 20


@pytest.mark.parametrize("dip", [1, 2, 8])
def test_a_fall_that_recovers_is_no_cliff(dip: int) -> None:
    assert cliff_at([4000.0] * 20 + [500.0] * dip + [4000.0] * 40) is None
    assert cliff_at([4000.0] * 20 + [500.0] * dip + [4000.0] * 20 + [1000.0] * 40) == 40 + dip


def test_a_gradual_fall_has_its_cliff_where_it_is_steepest() -> None:
    course = np.r_[np.full(300, 4000.0), np.geomspace(4000, 1000, 200), np.full(300, 1000.0)]
    at = cliff_at(course.tolist())
    assert at is not None
    assert 300 < at < 500


@pytest.mark.parametrize(("factor", "found"), [(LEAST_DROP * 1.01, True), (LEAST_DROP * 0.99, False)])
def test_the_least_drop(factor: float, found: bool) -> None:
    assert (cliff_at([1000.0 * factor] * 20 + [1000.0] * 20) is not None) == found
