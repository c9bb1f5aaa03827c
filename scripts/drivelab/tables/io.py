"""Write and read tables; a file whose schema does not match its version is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drivelab.core.errors import UserError
from drivelab.tables.schemas import SCHEMAS, VERSION

METADATA_KEY = b"drivelab"
"""Key in the file's metadata; its value is JSON with `table` and `version`."""


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
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def checked(data: pd.DataFrame | pa.Table, name: str) -> pa.Table:
    """Return `data` as `write` writes it as table `name`; errors as there."""
    _check_names(data, name)
    schema = SCHEMAS[name]
    table = schema.empty_table()
    if len(data):  # a pandas column without rows may have any type
        table = pa.table([_column(data[field.name], field, name) for field in schema], schema=schema)
    return table.replace_schema_metadata({METADATA_KEY: json.dumps({"table": name, "version": VERSION})})


def read(paths: Path | str | Sequence[Path | str], name: str) -> pd.DataFrame:
    """Read table `name` from one or several files; without paths, return an empty table.

    Raises UserError if a file is missing, is a different table, or has a different version.
    """
    many = [paths] if isinstance(paths, Path | str) else paths
    frames = [_read_one(Path(path), name) for path in many]
    return pa.concat_tables([SCHEMAS[name].empty_table(), *frames]).to_pandas()


def read_part(paths: Sequence[Path | str], name: str, columns: Sequence[str], wanted: tuple[str, str]) -> pd.DataFrame:
    """Read some columns of the rows of table `name` where column `wanted[0]` equals `wanted[1]`.

    Use it for tables that are too large to read whole from many recordings. Other arguments and errors as in `read`.
    """
    column, value = wanted
    schema = pa.schema(list(map(SCHEMAS[name].field, columns)))
    parts = [schema.empty_table()]
    for path in paths:
        if pc.any(pc.equal(_read_one(Path(path), name, [column])[column], value)).as_py():
            part = _read_one(Path(path), name, [*dict.fromkeys([*columns, column])])
            parts.append(part.filter(pc.equal(part[column], value)).select(columns))
    return pa.concat_tables(parts).to_pandas()


def read_columns(paths: Sequence[Path | str], name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Read some columns of table `name`; equal texts share one object. Arguments and errors as in `read`."""
    schema = pa.schema(list(map(SCHEMAS[name].field, columns)))
    parts = (_read_one(Path(path), name, list(columns)).select(columns) for path in paths)
    return pa.concat_tables([schema.empty_table(), *parts]).to_pandas()


def _read_one(path: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        file = pq.ParquetFile(path)
        schema, table = file.schema_arrow, file.read(columns=columns)
    except FileNotFoundError:
        raise UserError(f"{path}: this table does not exist; run the study to create it") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: cannot be read as Parquet ({error}); delete it and run again") from None
    mark = json.loads((schema.metadata or {}).get(METADATA_KEY, b"{}"))
    if mark.get("table") != name:
        raise UserError(f"{path}: is table '{mark.get('table', 'unknown')}', not '{name}'; name the right file")
    if mark["version"] != VERSION or not schema.remove_metadata().equals(SCHEMAS[name]):
        raise UserError(
            f"{path}: is table '{name}' of version {mark['version']}, but this drivelab reads version {VERSION}; "
            "delete it and run again"
        )
    return table.replace_schema_metadata(None)


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
