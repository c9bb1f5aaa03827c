"""A small study on its own virtual drive, ready to be measured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stages
from faults import ById, FaultStudy


@pytest.fixture
def conditioned(study: FaultStudy) -> FaultStudy:
    """The study with its drive purged and preconditioned."""
    (study.folder / "plan.json").write_text(study.plan().to_json())
    stages.conditioned(study.plan())
    return study


@pytest.fixture
def link() -> Iterator[ById]:
    """A link below /dev/disk/by-id for the duration of the test."""
    link = ById()
    yield link
    link.remove()
