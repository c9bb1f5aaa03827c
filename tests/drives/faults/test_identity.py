"""The wrong drive, or an unidentifiable drive: swapped behind its path, or without a serial number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from faults import (
    DRIVE,
    SERIAL,
    ById,
    FaultStudy,
    cells_of,
    check_complete,
    check_failed,
    in_the_middle,
    kept_cells,
    outcome,
    wait_until,
)
from leftovers import kill
from loops import looped

from drivelab.virtual import manage

pytestmark = pytest.mark.device


@pytest.fixture
def nameless(tmp_path: Path) -> Iterator[str]:
    """A loop device over the file `nameless`: a block device without a serial number."""
    image = tmp_path / "nameless"
    image.write_bytes(b"precious" * (1 << 20))
    with looped(image, "--sector-size=4096") as device:
        yield device


def test_another_drive_behind_the_same_path(study: FaultStudy, link: ById) -> None:
    mine = manage.start(DRIVE, study.model())
    other = manage.start("other", replace(study.model(), serial="VIRTUAL-OTHER"))
    study.pin(link.path)
    link.point_at(mine.device)
    assert study.condition().status == 0
    plan = study.plan()

    link.point_at(other.device)
    refused = study.measure()
    check_failed(refused, "drive 'tiny'", "has serial VIRTUAL-OTHER", f"the sheet says {SERIAL}", "Nothing was written")
    assert cells_of(plan) == []

    link.point_at(mine.device)
    running = study.start_measuring()
    wait_until(lambda: in_the_middle(plan), running)
    kill(running.pid)
    outcome(running)
    kept = kept_cells(plan)
    link.point_at(other.device)
    check_failed(study.measure(), "has serial VIRTUAL-OTHER", "Nothing was written")
    assert kept_cells(plan) == kept
    assert manage.counters("other")["host_write_bytes"] == 0

    link.point_at(mine.device)
    check_complete(plan, study.measure(), kept, gaps=1)


def test_another_drive_with_the_same_serial_number_behind_the_path(study: FaultStudy, link: ById) -> None:
    """It was consented to a smaller drive. The link moves between two stages, and before a command without --yes."""
    mine = manage.start(DRIVE, study.model())
    other = manage.start("other", replace(study.model(), capacity_bytes=2 * study.model().capacity_bytes))
    study.pin(link.path)
    link.point_at(mine.device)
    assert study.condition().status == 0
    plan = study.plan()

    link.point_at(other.device)
    words = f"capacity {mine.capacity_bytes:,} bytes → {other.capacity_bytes:,} bytes"
    for refused in (study.measure(), study.drivelab_run()):
        check_failed(refused, "'tiny'", words, "Nothing was written")
    assert manage.counters("other")["host_write_bytes"] == 0

    link.point_at(mine.device)
    check_complete(plan, study.measure(), {}, gaps=0)


def test_another_virtual_drive_of_the_same_name(conditioned: FaultStudy) -> None:
    plan = conditioned.plan()
    manage.stop(DRIVE)
    manage.start(DRIVE, replace(conditioned.model(), serial="VIRTUAL-OTHER"))
    check_failed(conditioned.measure(), "virtual drive 'tiny' is running with another model", "virtual stop tiny")
    assert manage.counters(DRIVE)["host_write_bytes"] == 0
    manage.stop(DRIVE)
    check_complete(plan, conditioned.measure(), {}, gaps=0)


def test_a_drive_without_a_serial_number(study: FaultStudy, link: ById, nameless: str, tmp_path: Path) -> None:
    before = (tmp_path / "nameless").read_bytes()
    study.pin(link.path)
    link.point_at(nameless)
    for refused in (study.drivelab("plan", "config/one.yaml"), study.drivelab_run()):
        check_failed(refused, "drive 'tiny'", "has no serial number", "Nothing was written")
    (study.folder / "plan.json").write_text(study.plan().to_json())
    check_failed(study.drivelab("purge", "plan.json", "--seal", "purged.json"), "has no serial number")
    assert not (study.folder / "purged.json").exists()
    assert (tmp_path / "nameless").read_bytes() == before

    link.point_at(manage.start(DRIVE, study.model()).device)
    assert study.condition().status == 0
    check_complete(study.plan(), study.measure(), {}, gaps=0)
