"""The evidence of a number is printed readably: shared jobs once, with units, without empty values."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.explore.evidence_text import lines
from drivelab.explore.number_evidence import as_measured

WIDTH = 80
JOB = "[cell]\nioengine=io_uring\nrandseed={}\nbs=4096\n"


def cell(number: int, job: str | None = JOB) -> dict[str, Any]:
    directory = f"results/recordings/a/m/k-run1/cells/{number}"
    return {"directory": directory, "command": "fio job.fio\n", "job": job and job.format(1000 + number),
            "engine": "io_uring", "choice": None, "exit_status": 0, "output": f"{directory}/fio.json",
            "output_sha256": str(number) * 64}  # fmt: skip


def recording(**changes: Any) -> dict[str, Any]:
    return {
        "folder": "results/recordings/a/m/k-run1",
        "started": "2026-05-01T10:00:00.123+00:00", "finished": "2026-05-01T10:01:00.456+00:00",
        "plan_digest": "k", "protocol": "m", "run": 1, "scenario": "synthetic", "clock": "wall",
        "alterations": "runtime: 1s instead of 60s; rounds: 5 instead of 25",
        "versions": {"fio": "3.33", "engine": None},
        "drive": {"capacity_bytes": 67108864, "over_provisioning_pct": 28.0, "virtual": True, "link": None},
        "host": {"memory_bytes": 8 << 30},
        "settings": [{"name": "SMT", "state": "not available here"}, {"name": "Clock source", "state": "tsc"}],
        "seals": [{"stage": "purge", "intact": True, "reason": "no foreign writes"}], "gaps": [],
        "checksums": "as measured", "altered": {}, "cells": [cell(1), cell(2), cell(3)], **changes,
    }  # fmt: skip


def value(**changes: Any) -> dict[str, Any]:
    return {"drive": "a", "measurement": "m", "cell_label": "RND 4KiB 0/100", "metric": "iops", "unit": "IOPS",
            "value": 1924.8003039999999, "statistic": "window average", "n": 1, "samples": [1924.8003039999999] * 20,
            "recomputed": 1924.8003039999999, "agrees": True, "recordings": [recording(**changes)]}  # fmt: skip


def text(facts: dict[str, Any]) -> str:
    return "\n".join(lines(facts, WIDTH))


def test_a_shared_job_is_printed_once_and_each_seed_separately() -> None:
    printed = text(value())
    assert printed.count("bs=4096") == 1
    assert printed.count("fio job.fio") == 1
    assert [printed.count(f"cells/{number}, exit status 0, randseed {1000 + number}") for number in (1, 2, 3)] == [
        1,
        1,
        1,
    ]
    other = text(value(cells=[cell(1), cell(2, JOB.replace("4096", "8192"))]))
    assert (other.count("bs=4096"), other.count("bs=8192")) == (1, 1)


def test_units_are_readable_and_numbers_are_rounded() -> None:
    printed = text(value())
    for words in ("value       1924.800304 IOPS", "capacity: 64 MiB (67,108,864 bytes)", "over provisioning: 28 %",
                  "virtual: yes", "memory: 8 GiB", "2026-05-01 10:00:00 UTC to 2026-05-01 10:01:00 UTC"):  # fmt: skip
        assert words in printed
    assert max(len(line) for line in printed.splitlines() if "SHA-256" not in line) <= WIDTH
    assert not any(raw in printed for raw in ("_bytes", "_pct", "None", "1924.80030399"))


def test_unavailable_settings_are_only_counted() -> None:
    printed = text(value())
    assert "Clock source: tsc" in printed
    assert "SMT" not in printed
    assert "1 other is not available here" in printed


def test_a_replay_and_the_virtual_clock_ran_no_fio() -> None:
    replay = {**cell(1, None), "engine": "native", "choice": {"timing": "original"}}
    assert "native; timing original" in text(value(cells=[replay]))
    assert "no fio ran" in text(value(cells=[{**cell(1), "engine": "virtual-clock"}]))


@pytest.mark.parametrize("side", ["basis", "comparison"])
def test_an_alteration_of_either_side_is_found(side: str) -> None:
    altered = {"checksums": "altered", "altered": {"plan.json": "altered", "cells/up": "added"}}
    delta = {"basis": "a", "comparison": "b", "measurement": "m", "cell_label": "c", "metric": "iops", "unit": "IOPS",
             "delta_pct": 1.5, "recomputed": 1.5, "agrees": True,
             "basis_evidence": [value()], "comparison_evidence": [value()]}  # fmt: skip
    assert as_measured(delta)
    delta[f"{side}_evidence"] = [value(**altered)]
    assert not as_measured(delta)
    assert not as_measured(value(**altered))
    printed = text(delta)
    assert "delta       1.5 %" in printed
    assert "plan.json: altered" in printed
    assert "cells/up: added" in printed


@pytest.mark.parametrize(("again", "words"), [(None, "cannot be computed"), (192.48, "the recordings give 192.48;")])
def test_a_number_that_the_recordings_do_not_give_is_not_confirmed(again: float | None, words: str) -> None:
    facts = value() | {"recomputed": again, "agrees": False}
    assert not as_measured(facts)
    assert f"NOT CONFIRMED: {words}" in text(facts).replace("the number cannot", "cannot")
