from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from drivelab.core.errors import UserError
from drivelab.report import downloads as module
from drivelab.report.downloads import downloads
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

COLUMNS = SCHEMAS["conditions"].names


def conditions(drive: str, rows: int) -> pd.DataFrame:
    return pd.DataFrame([{name: f"{drive} {name} {place}" for name in COLUMNS} for place in range(rows)])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Return files with the conditions of two recordings and an empty table of exclusions."""
    paths = [tmp_path / name / "conditions.parquet" for name in ("op7", "op28")]
    for path, rows in zip(paths, (3, 2), strict=True):
        io.write(conditions(path.parent.name, rows), path, "conditions")
    io.write(SCHEMAS["exclusions"].empty_table(), tmp_path / "exclusions.parquet", "exclusions")
    return [*paths, tmp_path / "exclusions.parquet"]


def test_every_table_has_a_description() -> None:
    assert set(module._MEANINGS) == set(SCHEMAS)


def test_files_of_recordings_become_one_readable_table(files: list[Path], tmp_path: Path) -> None:
    (download,) = (download for download in downloads(files) if download.name == "conditions")
    saved = tmp_path / "saved.parquet"
    saved.write_bytes(download.parquet)
    expected = pd.concat([conditions("op7", 3), conditions("op28", 2)], ignore_index=True)
    pd.testing.assert_frame_equal(io.read(saved, "conditions")[COLUMNS], expected, check_dtype=False)
    assert download.rows == 5


def test_a_table_without_rows_has_no_file(files: list[Path]) -> None:
    (download,) = (download for download in downloads(files) if download.name == "exclusions")
    assert (download.rows, download.parquet) == (0, b"")


def test_a_table_that_is_too_large_has_a_size_but_no_file(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit applies to the file that the report would embed."""
    (complete,) = (download for download in downloads(files) if download.rows)
    monkeypatch.setattr(module, "MOST_BYTES", len(complete.parquet))
    assert any(download.parquet for download in downloads(files))
    monkeypatch.setattr(module, "MOST_BYTES", len(complete.parquet) - 1)
    (download,) = (download for download in downloads(files) if download.rows)
    assert (download.rows, download.size_bytes, download.parquet) == (5, complete.size_bytes, b"")


def test_a_damaged_file_is_named(files: list[Path]) -> None:
    files[0].write_bytes(b"PAR1 no more")
    with pytest.raises(UserError, match=str(files[0])):
        downloads(files)
