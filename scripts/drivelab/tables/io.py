"""Write and read tables; a file that was changed, or whose schema does not match its version, is refused.

The checksum in a table's file detects a change by accident. Whoever makes the file can make its checksum, so a table of
somebody else is never read: an archive is restored without tables, which are computed again from the recordings.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drivelab.core.errors import UserError
from drivelab.tables.schemas import SCHEMAS, VERSION

METADATA_KEY = b"drivelab"
"""Key in the file's metadata; its value is JSON with `table` and `version`."""
_CHECKSUM_KEY = b"drivelab-crc32"
"""Key in the file's metadata; its value is the CRC-32 of all bytes before the footer, which has the metadata."""
_FOOTER_END_BYTES = 8
"""Length of the footer in 4 bytes, and the 4 bytes `PAR1`: the end of every Parquet file."""
_CHUNK_BYTES = 1 << 20
_FEW_ROWS = 5_000
"""Below this, packing and threads take longer than all else, and a file has about as many bytes without packing."""


class TableError(ValueError):
    """Data that do not match the schema of their table."""


def write(data: pd.DataFrame | pa.Table, path: Path | str, name: str) -> None:
    """Write `data` atomically as table `name`, in the schema's column order.

    Float columns accept integers, and integer columns accept whole floats, because pandas converts integers with nulls
    to floats. Timestamps are truncated to milliseconds. Nothing else is converted. Raises TableError for missing and
    unknown columns, wrong types, numbers out of range, and nulls in required columns.
    """
    table, path = checked(data, name), Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")  # the next writer overwrites the file of a killed one
    try:
        packing = "none" if table.num_rows < _FEW_ROWS else "zstd"
        with temporary.open("wb") as file:
            pack(table, file, {}, compression=packing)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def pack(table: pa.Table, file: BinaryIO, metadata: Mapping[bytes, bytes], **packing: Any) -> None:
    """Write a `checked` table to an open file, with its checksum and more metadata in the footer.

    `packing` are options of ParquetWriter.
    """
    sink = _Sink(file)
    with pq.ParquetWriter(sink, table.schema, **packing) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({**metadata, _CHECKSUM_KEY: f"{sink.crc32:08x}".encode()})


class _Sink:
    """A file that computes the CRC-32 of what is written."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.crc32 = 0

    def write(self, data: bytes) -> int:
        self.crc32 = zlib.crc32(data, self.crc32)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Leave the file open: it belongs to the caller."""


@contextmanager
def opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Open the file of a table whose data are as drivelab wrote them.

    Raises UserError if the file is missing, is not a table of this version, or was changed.
    """
    try:
        # Not a file of Python, and no read-ahead: a thread of pyarrow that releases one while Python ends aborts it.
        with pa.OSFile(str(path)) as raw, pq.ParquetFile(raw, pre_buffer=False) as file:
            metadata = file.metadata.metadata or {}
            if _mark(metadata).get("version") == VERSION:
                _refuse_changed(path, raw, metadata.get(_CHECKSUM_KEY, b"").decode(errors="replace"))
            yield file
    except FileNotFoundError:
        raise UserError(f"{path}: this table does not exist; a run of the study makes it after measuring") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: cannot be read as Parquet ({error}); delete it and run again") from None


def version_of(path: Path) -> int | None:
    """Return the version of a table named like its file, None for another file; raises UserError as `opened`."""
    with opened(path) as file:
        mark = _mark(file.metadata.metadata or {})
    return mark.get("version") if mark.get("table") == path.stem else None


def _mark(metadata: Mapping[bytes, bytes]) -> Mapping[str, Any]:
    try:
        mark = json.loads(metadata.get(METADATA_KEY, b"{}"))
    except (ValueError, RecursionError):
        mark = None
    return mark if isinstance(mark, dict) else {}


def _refuse_changed(path: Path, file: pa.NativeFile, expected: str) -> None:
    """Raise UserError if the data before the footer have another checksum."""
    end = file.size() - _FOOTER_END_BYTES
    end -= int.from_bytes(file.read_at(4, end), "little")
    file.seek(0)
    crc32, left = 0, end
    while left > 0 and (chunk := file.read(min(_CHUNK_BYTES, left))):
        crc32, left = zlib.crc32(chunk, crc32), left - len(chunk)
    if f"{crc32:08x}" != expected:
        raise UserError(
            f"{path}: was changed after drivelab wrote it. Its numbers may not be those that were measured. "
            "Delete it and run the study again: drivelab computes it from the recordings."
        )


def checked(data: pd.DataFrame | pa.Table, name: str) -> pa.Table:
    """Return `data` as `write` writes it as table `name`; errors as there."""
    _check_names(data, name)
    schema = SCHEMAS[name]
    table = schema.empty_table()
    if len(data):  # a pandas column without rows may have any type
        table = pa.table([_column(data[field.name], field, name) for field in schema], schema=schema)
    return marked(table, name)


def marked(table: pa.Table, name: str) -> pa.Table:
    """Return a table with the metadata of table `name`."""
    return table.replace_schema_metadata({METADATA_KEY: json.dumps({"table": name, "version": VERSION})})


def read(paths: Path | str | Sequence[Path | str], name: str) -> pd.DataFrame:
    """Read table `name` from one or several files; without paths, return an empty table.

    Raises UserError if a file is missing, is a different table, or has a different version.
    """
    many = [paths] if isinstance(paths, Path | str) else paths
    frames = [read_table(Path(path), name) for path in many]
    return _frame(pa.concat_tables([SCHEMAS[name].empty_table(), *frames]))


def read_part(paths: Sequence[Path | str], name: str, columns: Sequence[str], wanted: tuple[str, str]) -> pd.DataFrame:
    """Read some columns of the rows of table `name` where column `wanted[0]` equals `wanted[1]`.

    Use it for tables that are too large to read whole from many recordings. Other arguments and errors as in `read`.
    """
    column, value = wanted
    schema = pa.schema(list(map(SCHEMAS[name].field, columns)))
    parts = [schema.empty_table()]
    for path in paths:
        if pc.any(pc.equal(read_table(Path(path), name, [column])[column], value)).as_py():
            part = read_table(Path(path), name, [*dict.fromkeys([*columns, column])])
            parts.append(part.filter(pc.equal(part[column], value)).select(columns))
    return _frame(pa.concat_tables(parts))


def read_columns(paths: Sequence[Path | str], name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Read some columns of table `name`; equal texts share one object. Arguments and errors as in `read`."""
    schema = pa.schema(list(map(SCHEMAS[name].field, columns)))
    parts = (read_table(Path(path), name, list(columns)).select(columns) for path in paths)
    return _frame(pa.concat_tables([schema.empty_table(), *parts]))


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(use_threads=table.num_rows >= _FEW_ROWS)
    return frame


def read_table(path: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read one file of table `name`, or some of its columns; errors as in `read`."""
    with opened(path) as file:
        return _content(path, file, name, columns)


def read_current(path: Path, name: str) -> pa.Table | None:
    """Read one file of table `name`; None for one of another version. Other errors as in `read`."""
    with opened(path) as file:
        mark = _mark(file.metadata.metadata or {})
        is_current = (mark.get("table"), mark.get("version")) == (name, VERSION)
        return _content(path, file, name) if is_current else None


def _content(path: Path, file: pq.ParquetFile, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    mark = _mark(file.metadata.metadata or {})
    if mark.get("table") != name:
        raise UserError(f"{path}: is table '{mark.get('table', 'unknown')}', not '{name}'; name the right file")
    version = mark.get("version")
    if version != VERSION or not file.schema_arrow.remove_metadata().equals(SCHEMAS[name]):
        raise UserError(
            f"{path}: is table '{name}' of version {version}, but this drivelab reads version {VERSION}; "
            "delete it and run again"
        )
    many = file.metadata.num_rows >= _FEW_ROWS
    return file.read(columns=columns, use_threads=many).replace_schema_metadata(None)


def _check_names(data: pd.DataFrame | pa.Table, name: str) -> None:
    names = SCHEMAS[name].names
    given = list(data.columns if isinstance(data, pd.DataFrame) else data.column_names)
    missing = [column for column in names if column not in given]
    unknown = [str(column) for column in given if column not in names]
    if missing:
        raise TableError(f"table '{name}': the data lack {', '.join(missing)}")
    if unknown:
        raise TableError(f"table '{name}' has no column {', '.join(unknown)}")
    if len(given) != len(names):
        raise TableError(f"table '{name}': the data have a duplicate column")


def _column(values: pd.Series | pa.ChunkedArray, field: pa.Field, name: str) -> pa.Array | pa.ChunkedArray:
    where = f"table '{name}', column '{field.name}'"
    try:
        array = pa.array(values, from_pandas=True) if isinstance(values, pd.Series) else values
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TableError(f"{where}: {error}") from None
    if len(array) and array.null_count == len(array):
        array = pa.nulls(len(array))  # of which pandas knows no type
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if not _may_become(array.type, field.type):
        raise TableError(f"{where}: holds {array.type}, must be {field.type}")
    if array.type != field.type:
        try:
            array = array.cast(field.type, safe=not pa.types.is_timestamp(field.type))
        except pa.ArrowInvalid as error:
            raise TableError(f"{where}: {error}") from None
    if array.null_count and not field.nullable:
        raise TableError(f"{where}: {array.null_count} of {len(array)} values are missing")
    return array


def _may_become(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(given) or given.equals(wanted):
        return True
    if pa.types.is_integer(wanted) or pa.types.is_floating(wanted):
        return bool(pa.types.is_integer(given) or pa.types.is_floating(given))
    if pa.types.is_string(wanted):
        return bool(pa.types.is_large_string(given))
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(given)) and given.tz == wanted.tz
    if pa.types.is_list(wanted):
        return bool(pa.types.is_list(given)) and _may_become(given.value_type, wanted.value_type)
    return False
