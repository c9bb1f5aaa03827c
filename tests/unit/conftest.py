"""Fixtures for tests of interruptions."""

from __future__ import annotations

import pytest

from drivelab.run.clock_device import ClockDevice


@pytest.fixture
def nothing_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the effects of an interrupted cell on a virtual-clock drive, as on drives in real time."""
    monkeypatch.setattr(ClockDevice, "undoes", False)
