"""Rated values of drive models, from config/ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import parse_amount, parse_duration, parse_share, parse_size
from drivelab.plan.cell import Cell
from drivelab.plan.schema import validate
from drivelab.plan.yaml_file import load_yaml

_MIB = 1 << 20


@dataclass(frozen=True)
class Rating:
    """A rated value with its conditions."""

    metric: str
    """Metric of the table `summary`."""
    rated: float
    """Lower limit of a speed, upper limit of a latency, in the metric's unit."""
    cell: Cell
    protocol: str | None
    """Only measurements by this protocol; None: by any."""
    conditions: Mapping[str, str]
    """Required values of facets of the table `conditions`."""
    tolerance: float
    """Largest accepted deviation of a measured value, as a share of the rated one."""

    @property
    def is_minimum(self) -> bool:
        """Return whether the drive must reach the value; a latency must not exceed it."""
        return not self.metric.endswith("_us")

    @property
    def limit(self) -> float:
        """Return the rated value less, or for a latency plus, the tolerance."""
        return self.rated * (1 - self.tolerance if self.is_minimum else 1 + self.tolerance)


@dataclass(frozen=True)
class DataSheet:
    """The rated values of a model."""

    path: Path
    model: str
    """Pattern of the model that the drive reports; `*` stands for any text."""
    source: str
    ratings: tuple[Rating, ...]

    def is_of(self, model: str) -> bool:
        """Return whether a drive's model matches the pattern."""
        return fnmatchcase(model, self.model)


def load_data_sheet(path: Path) -> DataSheet:
    """Return the ratings in a file; raises UserError with file and key for any fault."""
    body = validate(load_yaml(path, "a file of ratings"), "ratings", str(path))
    tolerance = _tolerance(body["tolerance"], f"{path}: key 'tolerance'")
    ratings = tuple(
        _rating(entry, tolerance, f"{path}: key 'values[{index}]'") for index, entry in enumerate(body["values"])
    )
    return DataSheet(path, body["model"], body["source"], ratings)


def _rating(entry: Mapping[str, Any], tolerance: float, place: str) -> Rating:
    try:
        metric, rated = _rated(entry)
        cell = Cell(
            entry["pattern"],
            entry["read_share"],
            parse_size(entry["block_size"]),
            entry.get("threads", 1),
            entry["queue_depth"],
        )
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    if "tolerance" in entry:
        tolerance = _tolerance(entry["tolerance"], f"{place[:-1]}.tolerance'")
    return Rating(metric, rated, cell, entry.get("protocol"), entry.get("conditions", {}), tolerance)


def _rated(entry: Mapping[str, Any]) -> tuple[str, float]:
    """Return metric and value, in the units of the table `summary`."""
    if "iops" in entry:
        return "iops", float(entry["iops"])
    if "bandwidth" in entry:
        return "bandwidth_mib_s", parse_amount(entry["bandwidth"].removesuffix("/s")) / _MIB
    key = next(key for key in entry if key.endswith("_latency"))
    return f"{key}_us", round(1e6 * parse_duration(entry[key]), 6)


def _tolerance(text: str, place: str) -> float:
    share = parse_share(text)
    if share >= 1:
        raise UserError(f"{place} is {text}; give less than 100%")
    return share
