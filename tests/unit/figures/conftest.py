"""Figures of these tests show every point of their lines."""

from __future__ import annotations

import pytest

from drivelab.figures.base import marks


@pytest.fixture(autouse=True)
def every_point(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let long lines keep points that a reader cannot tell apart."""
    if "thin" not in request.node.name:
        monkeypatch.setattr(marks, "_LONG", 10**9)
