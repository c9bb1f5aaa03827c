from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.drives.identified import Identity
from drivelab.drives.sysfs import Wear
from drivelab.run.measure import BLIND_S, foreign_bytes, lost_state, other_versions

WEAR = Wear("boot", "7", 1000, 0)
DRIVE = Identity("S1", 10**12, "Fast 1", "eui.1")
JOURNAL = [{"event": "measure", "wear": asdict(WEAR), "drive": DRIVE.to_mapping()}]
MIB = 2**20 // 512


def samples(*sectors: int, ended: bool = False) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [{"at_s": 100.0 + n, "sectors_written": value} for n, value in enumerate(sectors)]
    return lines + [{"at_s": 200.0, "event": "end"}] * ended


def lost(live: Wear, lines: list[dict[str, Any]], last_user: str | None = "a/b/c") -> str | None:
    return lost_state("a/b/c", last_user, JOURNAL, lines, live, DRIVE)


@pytest.mark.parametrize(
    ("live", "last_user", "words"),
    [
        (WEAR, "x/y/z", "used for x/y/z in the meantime"),
        (WEAR, None, "something unknown"),
        (replace(WEAR, boot_id="other"), "a/b/c", "host was restarted"),
        (replace(WEAR, diskseq="8"), "a/b/c", "re-attached"),
        (replace(WEAR, sectors_written=999), "a/b/c", "decreased"),
    ],
)
def test_reasons_to_restart(live: Wear, last_user: str | None, words: str) -> None:
    assert words in str(lost(live, [], last_user))


def test_changed_versions_are_named(tmp_path: Path) -> None:
    now = {"fio": "3.33", "kernel": "6.1", "firmware": "A", "capacity_bytes": 10, "host": "bench"}
    assert other_versions(tmp_path, now) is None, "the first versions are unknown"
    (tmp_path / "host.json").write_text(json.dumps({"fio": "3.33", "kernel": "6.1", "host": "other"}))
    (tmp_path / "identity.json").write_text(json.dumps({"firmware": "A", "capacity_bytes": 10}))
    assert other_versions(tmp_path, now) is None
    assert other_versions(tmp_path, {**now, "kernel": "6.2"}) == "kernel was 6.1 and is now 6.2"
    assert other_versions(tmp_path, {**now, "fio": "3.36"}) == "fio was 3.33 and is now 3.36"
    assert other_versions(tmp_path, {**now, "firmware": "B"}) == "firmware was A and is now B"


def test_a_drives_own_counter_allows_resuming_after_a_reboot() -> None:
    def lost_after(lifetime_bytes: int) -> str | None:
        sealed = replace(WEAR, lifetime_bytes_written=10**9)
        live = Wear("other", "1", 8, 0, 10**9 + lifetime_bytes)
        journal = [{"event": "measure", "wear": asdict(sealed), "drive": DRIVE.to_mapping()}]
        return lost_state("a/b/c", "a/b/c", journal, samples(1000, 1000 + 10 * MIB, ended=True), live, DRIVE)

    assert lost_after(10 * 2**20) is None
    assert lost_after(30 * 2**20) == "others wrote about 20 MiB in the meantime"
    assert lost_after(-1) == "the drive's write counter decreased"


def test_writes_of_the_interrupted_cell_are_allowed() -> None:
    lines = samples(1000, 1000 + 10 * MIB, 1000 + 20 * MIB)
    assert lost(replace(WEAR, sectors_written=1000 + 60 * MIB), lines) is None
    assert lost(replace(WEAR, sectors_written=1000 + 90 * MIB), lines) == "others wrote about 70 MiB in the meantime"


def test_after_a_normal_end_no_writes_are_allowed() -> None:
    lines = samples(1000, 1000 + 10 * MIB, ended=True)
    assert lost(replace(WEAR, sectors_written=1000 + 10 * MIB + 8), lines) is None
    assert lost(replace(WEAR, sectors_written=1000 + 14 * MIB), lines) == "others wrote about 4 MiB in the meantime"


def test_without_samples_all_writes_are_foreign() -> None:
    assert lost(replace(WEAR, sectors_written=1000 + 4 * MIB), []) == "others wrote about 4 MiB in the meantime"
    assert lost(replace(WEAR, sectors_written=1000 + 8), []) is None
    reason = lost(replace(WEAR, sectors_written=1000 + 60 * MIB), samples(1000))
    assert reason == "others wrote about 60 MiB in the meantime"


def test_only_the_last_run_of_the_sampler_counts() -> None:
    earlier = samples(10**9, 2 * 10**9)
    lines = [*earlier, {"at_s": 300.0, "event": "begin"}, *samples(1000, 1000 + 10 * MIB, ended=True)]
    assert lost(replace(WEAR, sectors_written=1000 + 10 * MIB), lines) is None


def test_rates_of_earlier_runs_bound_the_writes_of_a_short_run() -> None:
    lines = [*samples(1000, 1000 + 10 * MIB), {"at_s": 300.0, "event": "begin"}, *samples(1000)]
    assert lost(replace(WEAR, sectors_written=1000 + 40 * MIB), lines) is None
    assert "others wrote" in str(lost(replace(WEAR, sectors_written=1000 + 60 * MIB), lines))


def test_on_the_virtual_clock_no_writes_are_foreign() -> None:
    live = replace(WEAR, sectors_written=10**9)
    assert lost_state("a/b/c", "a/b/c", JOURNAL, [], live, DRIVE, virtual_clock=True) is None


def test_a_journal_without_counters_restarts() -> None:
    assert "were not recorded" in str(lost_state("a/b/c", "a/b/c", [{"event": "measure"}], [], WEAR, DRIVE))
    journal = [{"event": "measure", "wear": asdict(WEAR)}]
    assert "were not recorded" in str(lost_state("a/b/c", "a/b/c", journal, [], WEAR, DRIVE))


def test_a_recording_is_not_continued_on_another_drive_with_the_same_serial_number() -> None:
    reason = lost_state("a/b/c", "a/b/c", JOURNAL, [], WEAR, replace(DRIVE, model="Slow 2", wwid="eui.2"))
    assert reason == "the drive is another one: model Fast 1 → Slow 2; world-wide name eui.1 → eui.2"


@given(st.lists(st.integers(0, 100 * MIB), min_size=2, max_size=20), st.floats(0, 1))
def test_the_own_writes_of_a_killed_cell_are_never_foreign(steps: list[int], late: float) -> None:
    total, values = 1000, [1000]
    for step in steps:
        total += step
        values.append(total)
    assert foreign_bytes(samples(*values), 1000, total + int(late * (BLIND_S - 1) * max(steps))) == 0
