"""What tests of interruptions share."""

from __future__ import annotations

import pytest

from drivelab.stages.clock_device import ClockDevice


@pytest.fixture
def nothing_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupted cell did to a drive on the virtual clock stays done, as on drives in real time."""
    monkeypatch.setattr(ClockDevice, "undoes", False)
