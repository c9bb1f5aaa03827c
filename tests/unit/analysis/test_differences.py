from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rows import table

from drivelab.analysis.deltas.differences import (
    differences_table,
    forbidden,
    intended_by,
    known_differences,
    not_recorded,
    unknown,
)
from drivelab.core.errors import UserError
from drivelab.criteria.inert import INERT
from drivelab.host.catalogue import catalogue
from drivelab.tables import io

FACETS = {"model": "drive", "serial": "drive", "firmware": "drive", "kernel": "host", "setting: governor": "setting",
          "scenario": "protocol", "write cache": "protocol", "steps": "protocol", "temperature": "time",
          "drive setting: Read-ahead": "setting", "I/O path": "protocol"}  # fmt: skip


def recording(drive: str, run: int = 1, measurement: str = "pts-iops", **changed: str) -> list[dict[str, Any]]:
    key = {"recording": f"{drive}/{measurement}/0-run{run}", "drive": drive, "measurement": measurement}
    values = dict.fromkeys(FACETS, "as ever") | {name.replace("_", " "): value for name, value in changed.items()}
    if "Read-ahead" in values:
        values["drive setting: Read-ahead"] = values.pop("Read-ahead")
    if "path" in values:
        values["I/O path"] = values.pop("path")
    return [key | {"facet": facet, "kind": FACETS[facet], "value": value} for facet, value in values.items()]


def found(rows: list[dict[str, Any]], pair: tuple[str, str], intended: list[str] | None = None) -> dict[str, bool]:
    """Return {facet that differs: whether this is intended}."""
    differences = differences_table(table("conditions", rows), [pair], intended)
    return dict(zip(differences["facet"], differences["intended"], strict=True))


@pytest.mark.parametrize(("pair", "changed", "intended", "expected"), [
    (("a", "b"), {"model": "X", "serial": "2", "kernel": "6.6"}, None,
     {"model": True, "serial": True, "kernel": False}),
    (("a@old", "a@new"), {"kernel": "6.6", "scenario": "synthetic", "firmware": "2", "steps": "other"}, None,
     {"kernel": True, "scenario": True, "firmware": False, "steps": False}),
    (("a", "b"), {"temperature": "30 to 35 °C", "model": "X"}, [], {"model": False, "temperature": True}),
    (("a", "b"), {"firmware": "2", "model": "X", "kernel": "6.6"}, ["firmware", "host"],
     {"model": False, "firmware": True, "kernel": True}),
], ids=["drives", "platforms", "time", "listed by the study"])  # fmt: skip
def test_which_differences_are_intended(
    pair: tuple[str, str], changed: dict[str, str], intended: list[str] | None, expected: dict[str, bool]
) -> None:
    assert found(recording(pair[0]) + recording(pair[1], **changed), pair, intended) == expected


def test_two_subjects_are_meant_to_differ_in_drive_platform_or_both() -> None:
    assert set(intended_by("a@old", "b@new")) == {"drive", "host", "setting", "scenario", "write cache", "file system"}
    assert intended_by("a@old", "b@old") == ("drive",)


def test_an_unknown_intended_facet_is_refused() -> None:
    with pytest.raises(UserError, match="'firmwear' is listed as an intended difference, but is neither a facet"):
        found(recording("a") + recording("b"), ("a", "b"), ["firmwear"])


def test_all_values_of_pooled_recordings_are_listed(tmp_path: Path) -> None:
    rows = recording("a") + recording("b", kernel="6.6") + recording("b", run=2, kernel="6.1")
    differences = differences_table(table("conditions", rows), [("a", "b")])
    (row,) = differences.to_dict("records")
    assert (row["basis_value"], row["comparison_value"]) == ("as ever", "6.1 | 6.6")
    io.write(differences, tmp_path / "d", "differences")


def test_a_facet_that_one_side_has_is_not_recorded_on_the_other() -> None:
    rows = [row for row in recording("b") if row["facet"] != "setting: governor"]
    differences = differences_table(table("conditions", recording("a") + rows), [("a", "b")])
    (row,) = differences.to_dict("records")
    assert (row["basis_value"], row["comparison_value"]) == ("as ever", "not recorded")
    assert known_differences(differences).empty, "nobody knows whether it differs"
    assert forbidden(differences)["facet"].tolist() == ["setting: governor"], "it is not known to be equal"


def test_a_facet_that_neither_side_recorded_is_listed_but_not_forbidden() -> None:
    rows = recording("a", kernel="not recorded") + recording("b", kernel="not recorded")
    differences = differences_table(table("conditions", rows), [("a", "b")])
    assert not_recorded(differences)["facet"].tolist() == ["kernel"]
    assert forbidden(differences).empty


@pytest.mark.parametrize(
    ("basis", "comparison", "is_unknown"),
    [
        ("6.1", "6.6", False),
        ("not recorded", "6.6", True),
        ("6.1 | not recorded", "6.1", True),
        ("6.1 | not recorded", "6.6", False),
        ("6.1 | not recorded", "6.1 | not recorded", True),
    ],
)
def test_recorded_values_decide_as_far_as_they_can(basis: str, comparison: str, is_unknown: bool) -> None:
    runs = [(side, run, kernel) for side, values in (("a", basis), ("b", comparison))
            for run, kernel in enumerate(values.split(" | "), start=1)]  # fmt: skip
    rows = [row for side, run, kernel in runs for row in recording(side, run, kernel=kernel)]
    differences = differences_table(table("conditions", rows), [("a", "b")])
    assert differences[["basis_value", "comparison_value"]].to_numpy().tolist() == [[basis, comparison]]
    assert unknown(basis, comparison) is is_unknown
    assert len(not_recorded(differences)) == is_unknown
    assert len(known_differences(differences)) == (not is_unknown)


@pytest.mark.parametrize(
    ("paths", "kind"),
    [
        (("direct", "direct"), "cannot act"),
        (("direct", "page cache"), "setting"),
        (("file system", "file system"), "setting"),
        (("direct | file system", "direct"), "setting"),
        (("direct", "not recorded"), "setting"),
    ],
)
def test_read_ahead_cannot_act_only_if_all_of_both_sides_is_direct(paths: tuple[str, str], kind: str) -> None:
    rows = [row for side, path, kib in (("a", paths[0], "128"), ("b", paths[1], "4096"))
            for row in recording(side, path=path, **{"Read-ahead": kib})]  # fmt: skip
    differences = differences_table(table("conditions", rows), [("a", "b")]).set_index("facet")
    read_ahead = differences.loc["drive setting: Read-ahead"]
    assert read_ahead["kind"] == kind
    assert read_ahead["intended"] == (kind == "cannot act")
    assert (read_ahead["basis_value"], read_ahead["comparison_value"]) == ("128", "4096"), "it stays visible"


def test_inert_settings_are_settings_of_the_catalogue() -> None:
    """A renamed setting would act again without notice."""
    names = {f"{'drive ' if entry.per_drive else ''}setting: {entry.name}" for entry in catalogue()}
    assert set(INERT) <= names


def test_only_common_measurements_are_compared() -> None:
    rows = [row for drive, more in (("a", {}), ("b", {"kernel": "6.6"})) for name in ("one", "two")
            for row in recording(drive, measurement=name, **more)]  # fmt: skip
    rows += recording("a", measurement="three", kernel="5")
    differences = differences_table(table("conditions", rows), [("a", "b"), ("a", "c")])
    assert differences["measurement"].tolist() == ["one", "two"]


def test_nothing_to_compare_gives_an_empty_table(tmp_path: Path) -> None:
    empty = differences_table(pd.DataFrame(table("conditions", [])), [("a", "b")], ["firmware"])
    io.write(empty, tmp_path / "d", "differences")
