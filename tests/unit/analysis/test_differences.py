from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rows import table

from drivelab.analysis.deltas.differences import differences_table, intended_by
from drivelab.core.errors import UserError
from drivelab.tables import io

FACETS = {"model": "drive", "serial": "drive", "firmware": "drive", "kernel": "host", "setting: governor": "setting",
          "scenario": "protocol", "write cache": "protocol", "steps": "protocol", "temperature": "time"}  # fmt: skip


def recording(drive: str, run: int = 1, measurement: str = "pts-iops", **changed: str) -> list[dict[str, Any]]:
    key = {"recording": f"{drive}/{measurement}/0-run{run}", "drive": drive, "measurement": measurement}
    values = dict.fromkeys(FACETS, "as ever") | {name.replace("_", " "): value for name, value in changed.items()}
    return [key | {"facet": facet, "kind": FACETS[facet], "value": value} for facet, value in values.items()]


def found(rows: list[dict[str, Any]], pair: tuple[str, str], intended: list[str] | None = None) -> dict[str, bool]:
    """Return {facet that differs: whether this is intended}."""
    differences = differences_table(table("conditions", rows), [pair], intended)
    return dict(zip(differences["facet"], differences["intended"], strict=True))


def test_differences_of_drives_are_intended() -> None:
    rows = recording("a") + recording("b", model="X", serial="2", kernel="6.6")
    assert found(rows, ("a", "b")) == {"model": True, "serial": True, "kernel": False}


def test_differences_of_host_and_settings_are_intended_for_platforms() -> None:
    rows = recording("a@old") + recording("a@new", kernel="6.6", scenario="synthetic", firmware="2", steps="other")
    assert found(rows, ("a@old", "a@new")) == {"kernel": True, "scenario": True, "firmware": False, "steps": False}
    assert set(intended_by("a@old", "b@new")) == {"drive", "host", "setting", "scenario", "write cache", "file system"}
    assert intended_by("a@old", "b@old") == ("drive",)


def test_differences_of_time_are_always_intended() -> None:
    rows = recording("a") + recording("b", temperature="30 to 35 °C", model="X")
    assert found(rows, ("a", "b"), []) == {"model": False, "temperature": True}


def test_a_study_lists_intended_facets_or_kinds() -> None:
    rows = recording("a") + recording("b", firmware="2", model="X", kernel="6.6")
    assert found(rows, ("a", "b"), ["firmware", "host"]) == {"model": False, "firmware": True, "kernel": True}


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


def test_only_common_measurements_are_compared() -> None:
    rows = [row for drive, more in (("a", {}), ("b", {"kernel": "6.6"})) for name in ("one", "two")
            for row in recording(drive, measurement=name, **more)]  # fmt: skip
    rows += recording("a", measurement="three", kernel="5")
    differences = differences_table(table("conditions", rows), [("a", "b"), ("a", "c")])
    assert differences["measurement"].tolist() == ["one", "two"]


def test_nothing_to_compare_gives_an_empty_table(tmp_path: Path) -> None:
    empty = differences_table(pd.DataFrame(table("conditions", [])), [("a", "b")], ["firmware"])
    io.write(empty, tmp_path / "d", "differences")
