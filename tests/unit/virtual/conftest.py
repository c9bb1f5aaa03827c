"""Small virtual drives for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from in_memory import tmp_path

from drivelab.virtual.model import DriveModel

__all__ = ["small", "tmp_path"]
SMALL = {
    "serial": "SMALL",
    "capacity": "4MiB",
    "over_provisioning": "12%",
    "pages_per_block": 16,
    "slc_cache": "512KiB",
    "write_buffer": "64KiB",
}


@pytest.fixture
def small() -> Callable[..., DriveModel]:
    """Return a function that makes a model of 1024 pages; its keywords are keys of the configuration."""

    def make(**keys: Any) -> DriveModel:
        return DriveModel.from_mapping("small", {**SMALL, **keys})

    return make
