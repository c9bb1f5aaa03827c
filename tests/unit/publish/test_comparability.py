"""Which results are comparable, why others are not, and which verdicts a pair gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_archives import Result, made_archive, study_files, summary_rows, write_archive

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.publish import pairs
from drivelab.publish.comparability import facets_of, group_of, reasons
from drivelab.publish.pairs import judged_pairs, shared, verdicts
from drivelab.publish.reading import read_archive
from drivelab.publish.record import record_of

PLAIN = Result("a", recordings=3)


def entries(folder: Path, *results: Result) -> list[dict[str, Any]]:
    made_archive(folder / "made.tar.gz", *results)
    return list(record_of(read_archive(folder / "made.tar.gz"))["entries"])


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Result(protocol="pts-latency"), "different protocols: pts-iops and pts-latency"),
        (Result(steps="ffff0000"), "the steps of the protocol differ (plans 0123abcd and ffff0000)"),
        (Result(reduced=True), "only one of them is reduced"),
        (Result(virtual=True), "only one of the drives is virtual"),
        (Result(clock="virtual"), "one ran on the wall clock, one on the virtual clock"),
        (Result(conditions={"purge": "not purged"}), "only one of the drives was purged"),
        (Result(conditions={"fill": "none"}), "fill differs: 2 x capacity and none"),
        (Result(conditions={"I/O path": "page cache"}), "I/O path differs: direct and page cache"),
        (Result(conditions={"class": "{a} {b}"}), "class differs: enterprise and {a} {b}"),
    ],
)
def test_a_difference_that_matters_is_a_reason(tmp_path: Path, other: Result, reason: str) -> None:
    one, two = entries(tmp_path, Result("a"), replace(other, drive="b"))
    assert one["group"] != two["group"]
    assert reasons(one["facets"], two["facets"]) == [reason]


def test_other_conditions_and_drives_may_differ(tmp_path: Path) -> None:
    one, two = entries(tmp_path, Result("a"), Result("b", "Maker M2", "F9", conditions={"kernel": "6.6"}))
    assert one["group"] == two["group"]
    assert reasons(one["facets"], two["facets"]) == []


def test_what_is_not_recorded_is_said(tmp_path: Path) -> None:
    one, two = entries(tmp_path, Result("a"), Result("b", conditions={"I/O path": "not recorded"}))
    assert reasons(one["facets"], two["facets"]) == ["I/O path differs: direct and not recorded"]
    assert two["conditions"]["I/O path"] == "not recorded"


def test_equal_facets_give_equal_groups() -> None:
    row = summary_rows(PLAIN)[0]
    assert group_of(facets_of({"steps": "1"}, row)) == group_of(facets_of({"kernel": "6.1", "steps": "1"}, row))
    assert group_of(facets_of({"steps": "1"}, row)) != group_of(facets_of({}, row))


def test_verdicts_are_those_of_the_table_of_deltas(tmp_path: Path) -> None:
    import pandas as pd

    fast = Result("b", speed=1.5, recordings=3)
    basis, comparison = entries(tmp_path, PLAIN, fast)
    found = verdicts(basis, comparison, ("a", "b"))
    expected = deltas_table(pd.DataFrame(summary_rows(PLAIN) + summary_rows(fast)), "a")
    assert [row[:3] for row in found] == expected[["cell_label", "metric", "verdict"]].to_numpy().tolist()
    assert {row[2] for row in found} == {"faster beyond the margin"}
    assert all(row[3] < 50 < row[4] for row in found)


def test_below_three_recordings_no_pair_is_judged(tmp_path: Path) -> None:
    three, two = entries(tmp_path, PLAIN, Result("b", recordings=2))
    assert list(judged_pairs([three, two])) == []
    assert "two recordings" in two["labels"]
    assert not {"single recording", "two recordings"} & set(three["labels"])


def test_judged_pairs_are_bounded(tmp_path: Path) -> None:
    many = entries(tmp_path, *(Result(f"d{number:02}", recordings=3) for number in range(15)))
    assert len(list(judged_pairs(many))) == pairs.MOST_OF_GROUP


def test_the_same_recordings_in_two_archives_are_not_judged(tmp_path: Path) -> None:
    (one,) = entries(tmp_path, PLAIN)
    write_archive(tmp_path / "made.tar.gz", {**study_files([PLAIN]), "config/other.yaml": b""})
    (two,) = record_of(read_archive(tmp_path / "made.tar.gz"))["entries"]
    assert one["id"] != two["id"]
    assert len(shared(one, two)) == 3
    assert list(judged_pairs([one, two])) == []


@pytest.mark.parametrize(
    ("result", "label"),
    [
        (Result(reduced=True), "reduced"),
        (Result(virtual=True), "virtual drive"),
        (Result(clock="virtual"), "virtual clock"),
        (Result(conditions={"purge": "none"}), "not purged"),
        (Result(verdict="tainted"), "tainted"),
        (Result(verdict="not steady"), "not steady"),
        (Result(), "single recording"),
    ],
)
def test_labels(tmp_path: Path, result: Result, label: str) -> None:
    (entry,) = entries(tmp_path, result)
    assert label in entry["labels"]
