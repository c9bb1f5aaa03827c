"""Parse separated columns with Arrow: whole numbers, names, exact decimals."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from drivelab import native
from drivelab.trace.formats.common.lines import Lines, line_numbers, request_batches
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import Format, MalformedError, Whole, operation_codes, rows, scaled
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS
from drivelab.trace.records import SECTOR_BYTES

_NS = pa.decimal128(28, 9)


def decimal_ns(texts: pa.StringArray, name: str) -> Whole:
    """Convert seconds to whole ns, exactly.

    Raises MalformedError for other texts, negative or too large numbers, and more than nine decimals.
    """
    if (plain := _plain(texts)) is not None:
        return plain
    try:
        exact = _exact(texts)
    except pa.ArrowInvalid:
        shown = f"{name} '{texts[0].as_py()[:40]}'" if len(texts) else name
        raise MalformedError(f"{shown} is not a number of seconds with up to nine decimals") from None
    words = np.frombuffer(exact.buffers()[1], np.int64)[: 2 * len(exact)].reshape(-1, 2)
    if words[:, 1].any() or (words[:, 0] < 0).any():
        raise MalformedError(f"{name} is negative or beyond 2^63 ns")
    return np.ascontiguousarray(words[:, 0])


def _exact(texts: pa.StringArray) -> pa.Decimal128Array:
    try:
        return pc.cast(texts, _NS)
    except pa.ArrowInvalid:
        return pc.cast(pc.utf8_trim_whitespace(texts), _NS)


def _plain(texts: pa.StringArray) -> Whole | None:
    """Convert texts that are all plain, such as `12.345`; None if another must be converted by Arrow."""
    _, offsets, text = texts.buffers()
    if not len(texts) or texts.null_count or text is None:
        return None
    ns = np.empty(len(texts), np.int64)
    first = offsets.address + 4 * texts.offset
    return ns if _parser()(len(texts), first, text.address, ns.ctypes.data) == len(texts) else None


@functools.cache
def _parser() -> ctypes._NamedFuncPointer:
    parse = native.load().seconds_parse
    parse.restype, parse.argtypes = ctypes.c_int64, (ctypes.c_int64, *[ctypes.c_void_p] * 3)
    return parse


_NAMES = pa.dictionary(pa.int32(), pa.string())
_MOST_FURTHER = 64
_ROW = re.compile(r"Row #(\d+)")
_WRONG_COUNT = re.compile(r"Expected (\d+) columns, got (\d+)")
_WRONG_VALUE = re.compile(r"In CSV column #(\d+): .*?(?:invalid value '(.*)'|(invalid UTF8 data))", re.DOTALL)


class Kind(Enum):
    """Kind of a column's values."""

    WHOLE = auto()
    """A whole number from 0 to 2^63 - 1, as int64."""
    NAME = auto()
    """A name with few distinct values, as a dictionary array, without surrounding spaces."""
    SECONDS = auto()
    """Non-negative seconds with up to nine decimals, as whole ns."""
    SECONDS_OR_BLANK = auto()
    """As SECONDS, but blank is -1."""


_TYPES = {Kind.WHOLE: pa.int64(), Kind.NAME: _NAMES}


@dataclass(frozen=True)
class Layout:
    """Columns of a line, named as in the format's documentation."""

    columns: dict[str, Kind]
    delimiter: str = ","
    more: bool = False
    """Whether further columns may follow; they are ignored."""

    def parse(self, block: Block) -> Fields:
        """Parse a block's lines; raise MalformedError if a line has another layout."""
        types = {name: _TYPES.get(kind, pa.string()) for name, kind in self.columns.items()}
        try:
            batch = self._parsed(block.data, types)
        except pa.ArrowInvalid as error:
            row = _ROW.search(str(error))
            raise MalformedError(self._reason(str(error)), int(row[1]) - 1 if row else None) from None
        # Finding one letter is much faster than finding two with a frequent first one.
        if (b"x" in block.data and b"0x" in block.data) or (b"X" in block.data and b"0X" in block.data):
            self._refuse_hexadecimal(block.data)
        line = line_numbers(block, batch.num_rows)
        return Fields(line, {name: _CONVERT[kind](batch[name], name) for name, kind in self.columns.items()})

    def header(self, line: bytes) -> str | None:
        """Return the kind of a line with the column names; for Lines.comment."""
        names = self.delimiter.join(self.columns)
        return "header lines" if line.decode(errors="replace").lower() == names.lower() else None

    def _without_further(self, data: bytes) -> bytes:
        """Return the lines without the ignored columns."""
        count, separator = len(self.columns), re.escape(self.delimiter.encode())
        other = b"[^%b\n]*" % separator
        return re.sub(b"(?m)^((?:%b%b){%d}%b)%b.*$" % (other, separator, count - 1, other, separator), rb"\1", data)

    def _parsed(self, data: bytes, types: dict[str, pa.DataType]) -> pa.RecordBatch:
        if not self.more:
            return self._table(data, types, 0)
        begin = len(data) - len(data.lstrip(b"\n")) if data.startswith(b"\n") else 0
        end = data.find(b"\n", begin)
        further = data.count(self.delimiter.encode(), begin, end if end >= 0 else None) + 1 - len(self.columns)
        try:
            return self._table(data, types, min(further, _MOST_FURTHER))
        except pa.ArrowInvalid as error:
            if not _WRONG_COUNT.search(str(error)):
                raise
            return self._table(self._without_further(data), types, 0)

    def _table(self, data: bytes, types: dict[str, pa.DataType], further: int) -> pa.RecordBatch:
        names = [*self.columns, *(f"further {number}" for number in range(further))]
        # Arrow's streaming reader: read_csv without threads needs 0.4 ms for a single line, this one 0.1 ms.
        reader = csv.open_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(delimiter=self.delimiter, quote_char=False, double_quote=False, escape_char=False),
            csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
            ),
        )
        table = reader.read_all()
        if not table.num_rows:
            raise MalformedError("is blank")
        return table.combine_chunks().to_batches()[0]

    def _refuse_hexadecimal(self, data: bytes) -> None:
        """Refuse hexadecimal numbers: Arrow reads 0x10 as 16."""
        whole = [name for name, kind in self.columns.items() if kind is Kind.WHOLE]
        texts = self._parsed(data, dict.fromkeys(whole, pa.string()))
        for name in whole:
            if pc.any(pc.match_substring(texts[name], "x", ignore_case=True)).as_py():
                raise MalformedError(f"{name} is not decimal")

    def _reason(self, message: str) -> str:
        if match := _WRONG_COUNT.search(message):
            least = "at least " if self.more else ""
            return f"has {match[2]} columns instead of {least}{len(self.columns)}"
        if match := _WRONG_VALUE.search(message):
            name = list(self.columns)[int(match[1])]
            if match[3]:
                return f"{name} is not valid UTF-8"
            return f"{name} '{match[2][:40]}' is not a whole number from 0 to 2^63 - 1"
        return message.splitlines()[0][:120]


@dataclass(frozen=True)
class Fields:
    """Columns of lines, by name."""

    line: Whole
    columns: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


def columns_format(
    layout: Layout,
    *,
    time: str,
    operation: tuple[str, Mapping[str, str | None]],
    offset: str,
    length: str,
    sectors: Collection[str] = (),
    more: Callable[[Fields], Mapping[str, Any]] = lambda fields: {},
    not_requests: str = "",
    **facts: Any,
) -> Format:
    """Return the format with a request in each line, in columns.

    Args:
        time: name of its column, as are `offset` and `length`.
        operation: name of its column, and the operation of each text in it; None for lines that are not requests.
        sectors: columns in sectors of 512 bytes; others are in bytes.
        more: returns further columns of `rows`.
        not_requests: words for lines that are not requests, which are counted.
        facts: further fields of `Format`.
    """

    def convert(block: Block) -> pa.RecordBatch:
        fields = layout.parse(block)
        name, meanings = operation
        codes = operation_codes(fields[name], meanings, name)
        offset_bytes, length_bytes = (
            scaled(fields[column], SECTOR_BYTES, column) if column in sectors else fields[column]
            for column in (offset, length)
        )
        return rows(line=fields.line, time=fields[time], operation=codes, offset_bytes=offset_bytes,
                    length_bytes=length_bytes, **more(fields))  # fmt: skip

    lines = Lines(convert, layout.header)
    return Format(columns=layout.delimiter.join(layout.columns), looks_like=lines.looks_like,
                  read=request_batches(lines, not_requests), **facts)  # fmt: skip


def _whole(values: pa.Int64Array, name: str) -> Whole:
    numbers: Whole = values.to_numpy()
    if len(numbers) and int(numbers.min()) < 0:
        raise MalformedError(f"{name} is negative")
    return numbers


def _names(values: pa.DictionaryArray, _name: str) -> pa.DictionaryArray:
    trimmed = pc.utf8_trim_whitespace(values.dictionary)
    if trimmed.equals(values.dictionary):
        return values
    again = trimmed.dictionary_encode()
    return pa.DictionaryArray.from_arrays(again.indices.take(values.indices), again.dictionary)


def _seconds_or_blank(texts: pa.StringArray, name: str) -> Whole:
    blank = pc.equal(texts, "")
    if not pc.any(blank).as_py():
        return decimal_ns(texts, name)
    return np.where(blank.to_numpy(zero_copy_only=False), -1, decimal_ns(pc.if_else(blank, "0", texts), name))


_CONVERT: dict[Kind, Callable[[Any, str], Any]] = {
    Kind.WHOLE: _whole,
    Kind.NAME: _names,
    Kind.SECONDS: decimal_ns,
    Kind.SECONDS_OR_BLANK: _seconds_or_blank,
}


_LETTERS = re.compile(r"(F?)(WZ|DE|[RWDNF])([FASM]*)")
_OPERATIONS = {"R": "read", "W": "write", "D": "discard", "DE": "discard", "WZ": "write-zeroes", "F": "flush", "N": ""}
_AFTER = {"F": "fua", "A": "readahead", "S": "sync", "M": "meta"}


@lru_cache(1024)
def parse_flags(letters: str) -> tuple[str, frozenset[str]]:
    """Return operation (empty for `N`, no data) and flags.

    An F before the direction is `preflush`, after it FUA. Raises MalformedError for other letters.
    """
    match = _LETTERS.fullmatch(letters)
    if match is None:
        raise MalformedError(f"'{letters[:20]}' is not an operation with flags")
    flags = {_AFTER[letter] for letter in match[3]} | ({"preflush"} if match[1] else set())
    return _OPERATIONS[match[2]], frozenset(flags)


def flag_letters(operation: str, flags: frozenset[str]) -> str:
    """Return letters in blkparse's order; an empty flush is `FW`, as when queued."""
    direction = {"read": "R", "write": "W", "discard": "D", "write-zeroes": "WZ", "flush": "FW"}[operation]
    before = "F" if "preflush" in flags and operation != "flush" else ""
    return before + direction + "".join(letter for letter, flag in _AFTER.items() if flag in flags)


class FlagColumns:
    """Operation and flags of many requests as columns."""

    def __init__(self, letters: Sequence[str]) -> None:
        parsed = [parse_flags(text) for text in letters]
        if any(not operation for operation, _ in parsed):
            raise MalformedError("a request without data has no direction")
        self.operation: npt.NDArray[np.int8] = np.array([OPERATIONS.index(name) for name, _ in parsed], np.int8)
        self.columns = {flag: np.array([flag in flags for _, flags in parsed], bool) for flag in FLAGS}
