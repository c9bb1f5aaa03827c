from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from drivelab.errors import UserError
from drivelab.report import downloads as module
from drivelab.report.downloads import downloads
from drivelab.tables import io
from drivelab.tables.fleet_schemas import FLEET_TABLES
from drivelab.tables.schemas import SCHEMAS

COLUMNS = SCHEMAS["conditions"].names


def conditions(drive: str, rows: int) -> pd.DataFrame:
    return pd.DataFrame([{name: f"{drive} {name} {place}" for name in COLUMNS} for place in range(rows)])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Conditions of two recordings, and exclusions, of which there are none."""
    paths = [tmp_path / name / "conditions.parquet" for name in ("op7", "op28")]
    for path, rows in zip(paths, (3, 2), strict=True):
        io.write(conditions(path.parent.name, rows), path, "conditions")
    io.write(SCHEMAS["exclusions"].empty_table(), tmp_path / "exclusions.parquet", "exclusions")
    return [*paths, tmp_path / "exclusions.parquet"]


def test_every_table_there_can_be_has_its_meaning() -> None:
    """In the report of a study; a fleet's own tables lie beside its report."""
    assert set(module._MEANINGS) == set(SCHEMAS) - set(FLEET_TABLES)


def test_files_of_recordings_become_one_table_that_is_read_as_any_other(files: list[Path], tmp_path: Path) -> None:
    (found,) = (one for one in downloads(files) if one.name == "conditions")
    saved = tmp_path / "saved.parquet"
    saved.write_bytes(found.parquet)
    wanted = pd.concat([conditions("op7", 3), conditions("op28", 2)], ignore_index=True)
    pd.testing.assert_frame_equal(io.read(saved, "conditions")[COLUMNS], wanted, check_dtype=False)
    assert found.rows == 5


def test_a_table_without_rows_is_named_without_a_file(files: list[Path]) -> None:
    (found,) = (one for one in downloads(files) if one.name == "exclusions")
    assert (found.rows, found.parquet) == (0, b"")


def test_a_table_that_is_too_large_is_named_with_its_size(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Too large are all files together, however small each is."""
    (whole,) = (one for one in downloads(files) if one.rows)
    monkeypatch.setattr(module, "MOST_BYTES", whole.size_bytes)
    assert any(one.parquet for one in downloads(files))
    monkeypatch.setattr(module, "MOST_BYTES", whole.size_bytes - 1)
    (found,) = (one for one in downloads(files) if one.rows)
    assert (found.rows, found.size_bytes, found.parquet) == (5, whole.size_bytes, b"")


def test_a_broken_file_is_named(files: list[Path]) -> None:
    files[0].write_bytes(b"PAR1 no more")
    with pytest.raises(UserError, match=str(files[0])):
        downloads(files)
