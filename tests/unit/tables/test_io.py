from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from drivelab.core.errors import UserError
from drivelab.tables import io
from drivelab.tables.io import TableError, read, write
from drivelab.tables.schemas import KEY, SCHEMAS, VERSION

ROW: dict[str, Any] = {
    "drive": "op7", "serial": "S1", "model": "Model", "firmware": None, "capacity_bytes": 1 << 40,
    "logical_block_bytes": 4096, "transport": "pcie", "link": None, "kind": "drive", "composition": None,
    "link_max": None, "lba_format": "512e", "controller": None, "manufacturer": None, "rotational": False,
    "zoned": "none", "virtual": False, "over_provisioning_pct": 7.0, "file_system": None, "mkfs": None,
    "mount_options": None, "device": "/dev/disk",
}  # fmt: skip
_VALUES: dict[str, Any] = {
    "string": "x", "bool": True, "int32": 7, "int64": 1 << 60, "double": 0.1,
    "timestamp[ms, tz=UTC]": pd.Timestamp("2026-01-02T03:04:05.678Z"), "list<item: double>": [0.1, 0.2],
    "list<item: string>": ["a", "b"],
}  # fmt: skip


def drives(**changed: Any) -> pd.DataFrame:
    return pd.DataFrame([ROW | changed])


def test_a_written_table_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "new/drives.parquet"
    write(drives(), path, "drives")
    table = read(path, "drives")
    assert pa.Table.from_pandas(table, preserve_index=False).to_pylist() == [ROW]
    assert list(table.columns) == SCHEMAS["drives"].names


def test_reading_starts_no_thread_that_could_outlive_python(tmp_path: Path) -> None:
    write(drives(), path := tmp_path / "drives.parquet", "drives")
    code = f"""if True:
        import os, pathlib, drivelab.tables.io
        count = len(os.listdir("/proc/self/task"))
        assert drivelab.tables.io.read_table(pathlib.Path({str(path)!r}), "drives").num_rows == 1
        assert len(os.listdir("/proc/self/task")) == count"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_table_survives_a_round_trip_to_disk(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Write a row with every column set and a row with all allowed nulls."""
    for name, schema in SCHEMAS.items():
        with subtests.test(table=name):
            full = {field.name: _VALUES[str(field.type)] for field in schema}
            bare = {**full, **{field.name: None for field in schema if field.nullable}}
            path = tmp_path / "t.parquet"
            write(pd.DataFrame([full, bare]), path, name)
            table = read(path, name)
            assert pa.Table.from_pandas(table, schema=schema, preserve_index=False).to_pylist() == [full, bare]
            write(table, path, name)
            metadata = json.loads(pq.ParquetFile(path).metadata.metadata[b"drivelab"])
            assert metadata == {"table": name, "version": VERSION}


def test_a_long_table_is_packed(tmp_path: Path) -> None:
    for rows, compression in ((1, "UNCOMPRESSED"), (10_000, "ZSTD")):
        write(drives().iloc[[0] * rows], tmp_path / "d", "drives")
        assert pq.ParquetFile(tmp_path / "d").metadata.row_group(0).column(0).compression == compression


def test_columns_may_come_in_any_order_and_from_arrow(tmp_path: Path) -> None:
    write(drives()[list(ROW)[::-1]], tmp_path / "a", "drives")
    write(pa.Table.from_pylist([ROW], schema=SCHEMAS["drives"]), tmp_path / "b", "drives")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_many_files_are_one_table_in_order(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "cab"]
    for path in paths:
        write(drives(drive=path.name), path, "drives")
    assert read(paths, "drives")["drive"].tolist() == ["c", "a", "b"]
    assert read(map(str, paths[:1]), "drives")["drive"].tolist() == ["c"]  # type: ignore[arg-type]


def test_no_files_and_no_rows_are_an_empty_table(tmp_path: Path) -> None:
    assert list(read([], "drives").columns) == SCHEMAS["drives"].names
    write(pd.DataFrame(columns=SCHEMAS["drives"].names), tmp_path / "d", "drives")
    assert read([tmp_path / "d"], "drives").empty


def test_whole_floats_fill_integers_and_integers_floats(tmp_path: Path) -> None:
    write(drives(capacity_bytes=4096.0, over_provisioning_pct=7), tmp_path / "d", "drives")
    assert pq.read_table(tmp_path / "d").schema.equals(SCHEMAS["drives"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"capacity_bytes": 0.5}, "column 'capacity_bytes': .*0.5"),
        ({"capacity_bytes": "4096"}, "column 'capacity_bytes': holds .*string, must be int64"),
        ({"capacity_bytes": True}, "column 'capacity_bytes': holds bool"),
        ({"device": None}, "column 'device': 1 of 1 values are missing"),
        ({"logical_block_bytes": 1 << 40}, "column 'logical_block_bytes'"),
        ({"drive": None}, "column 'drive': 1 of 1 values are missing"),
        ({"drive": 7}, "column 'drive': holds int64, must be string"),
        ({"virtual": 1}, "column 'virtual': holds int64, must be bool"),
        ({"over_provisioning_pct": "7"}, "column 'over_provisioning_pct'"),
        ({"drive": b"op7"}, "column 'drive': holds binary"),
        ({"speed": 1}, "has no column speed"),
    ],
)
def test_data_outside_the_schema_are_not_written(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=f"table 'drives'.*{message}"):
        write(drives(**changed), tmp_path / "d", "drives")
    assert list(tmp_path.iterdir()) == []


def test_missing_and_repeated_columns_and_mixed_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="the data lack serial, link"):
        write(drives().drop(columns=["serial", "link"]), tmp_path / "d", "drives")
    twice = pd.concat([drives(), drives()[["drive"]]], axis=1)
    with pytest.raises(TableError, match="duplicate column"):
        write(twice, tmp_path / "d", "drives")
    with pytest.raises(TableError, match="column 'drive'"):
        write(pd.DataFrame([ROW, ROW | {"drive": 7}]), tmp_path / "d", "drives")


def test_times_need_a_zone_and_are_truncated_to_milliseconds(tmp_path: Path) -> None:
    row = {field.name: _VALUES[str(field.type)] for field in SCHEMAS["cells"]}
    time = pd.Timestamp("2026-01-02T03:04:05.678912")
    with pytest.raises(TableError, match="column 'started': holds timestamp"):
        write(pd.DataFrame([row | {"started": time}]), tmp_path / "c", "cells")
    write(pd.DataFrame([row | {"started": time.tz_localize("UTC")}]), tmp_path / "c", "cells")
    assert read(tmp_path / "c", "cells")["started"][0] == pd.Timestamp("2026-01-02T03:04:05.678Z")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d"
    write(drives(), path, "drives")
    before = path.read_bytes()

    def broken(*_: Any, **__: Any) -> None:
        (path.parent / ".d.part").write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", broken)
    with pytest.raises(OSError, match="disk full"):
        write(drives(drive="other"), path, "drives")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d"
    with pytest.raises(UserError, match="d: this table does not exist"):
        read(path, "drives")
    path.write_text("not Parquet")
    with pytest.raises(UserError, match="cannot be read as Parquet"):
        read(path, "drives")
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(UserError, match="is table 'unknown', not 'drives'"):
        read(path, "drives")
    write(drives(), path, "drives")
    with pytest.raises(UserError, match="is table 'drives', not 'cells'"):
        read(path, "cells")
    monkeypatch.setattr(io, "VERSION", VERSION + 1)
    with pytest.raises(UserError, match=f"of version {VERSION}, but this drivelab reads version {VERSION + 1}"):
        read(path, "drives")


def test_reading_some_rows_of_many_files(tmp_path: Path) -> None:
    row = {field.name: _VALUES[str(field.type)] for field in SCHEMAS["latency_bins"]}
    for name, kinds in (("a", ["loop", "soak"]), ("b", ["loop"]), ("c", ["soak"])):
        rows = [row | {"kind": kind, "recording": name, "count": number} for number, kind in enumerate(kinds)]
        write(pd.DataFrame(rows), tmp_path / name, "latency_bins")
    paths = [tmp_path / name for name in "abc"]
    soaks = io.read_part(paths, "latency_bins", ["recording", "count"], ("kind", "soak"))
    assert soaks.to_dict("list") == {"recording": ["a", "c"], "count": [1, 0]}
    empty = io.read_part(paths[1:2], "latency_bins", ["recording", "count"], ("kind", "soak"))
    assert (list(empty.columns), len(empty)) == (["recording", "count"], 0)
    with pytest.raises(UserError, match="is table 'latency_bins', not 'cells'"):
        io.read_part(paths, "cells", ["recording"], ("kind", "soak"))


def test_a_changed_schema_is_noticed_without_a_new_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d"
    place = SCHEMAS["drives"].names.index("capacity_bytes")
    other = SCHEMAS["drives"].set(place, pa.field("capacity_bytes", pa.float64(), nullable=False))
    with monkeypatch.context() as patch:
        patch.setitem(SCHEMAS, "drives", other)
        write(drives(), path, "drives")
    with pytest.raises(UserError, match="delete it and run again"):
        read(path, "drives")


def edited(table: pa.Table) -> pa.Table:
    """Return a table of drives with ten times the capacity."""
    place = table.column_names.index("capacity_bytes")
    return table.set_column(place, table.schema.field(place), pc.multiply(table["capacity_bytes"], 10))


def test_an_edited_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "drives.parquet"
    write(drives(), path, "drives")
    table, data = pq.read_table(path), path.read_bytes()
    pq.write_table(edited(table), path)
    changes = {"edited": path.read_bytes()}
    pq.write_table(
        edited(table.replace_schema_metadata({io.METADATA_KEY: table.schema.metadata[io.METADATA_KEY]})), path
    )
    changes["without a checksum"] = path.read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 8] ^= 1  # the footer is most of such a small file
    changes["a flipped bit"] = bytes(flipped)
    for content in changes.values():
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"was changed after drivelab wrote it\. .* run the study again"):
            read(path, "drives")
        with pytest.raises(UserError, match="was changed after drivelab wrote it"):
            io.version_of(path)
    path.write_bytes(data)
    assert io.version_of(path) == VERSION


def test_tables_of_recordings_start_with_the_same_key() -> None:
    for name in ("cells", "latency_bins", "series", "steady_state", "replays"):
        assert tuple(SCHEMAS[name].names[: len(KEY)]) == KEY
