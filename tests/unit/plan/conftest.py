"""The demo study with measurements as most studies write them."""

from __future__ import annotations

from pathlib import Path

import pytest

MEASUREMENTS = """measurements:
  - {protocol: pts-iops, scale: demo}
  - {protocol: pts-write-saturation, scale: demo}
  - {protocol: trace-replay, scale: demo, trace: sqlite}
"""


@pytest.fixture
def project(project: Path) -> Path:
    """A copy of the project's configuration in which the demo changes no field of a protocol."""
    path = project / "config/demo.yaml"
    path.write_text(path.read_text().partition("measurements:")[0] + MEASUREMENTS)
    return project
