"""The demo study with measurements as most studies write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import MEASUREMENTS


@pytest.fixture
def project(project: Path) -> Path:
    """A copy of the project's configuration in which the demo changes no field of a protocol."""
    path = project / "config/demo.yaml"
    path.write_text(path.read_text().partition("measurements:")[0] + MEASUREMENTS)
    return project
