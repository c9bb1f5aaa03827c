"""Run `drivelab replay` in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drivelab.cli.main import main


def replay(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> dict[str, Any]:
    """Return the report."""
    assert main(["replay", *map(str, arguments), "--json"]) == status, capsys.readouterr().err
    return dict(json.loads(capsys.readouterr().out))


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the message of a replay that is refused."""
    assert main(["replay", *map(str, arguments)]) == 2
    return capsys.readouterr().err
