"""Read formats of plain columns, as columns.yaml declares them: whole numbers, names, exact decimals."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from drivelab import native
from drivelab.trace.formats.common.lines import Lines, line_numbers
from drivelab.trace.formats.common.source import Block, Source
from drivelab.trace.formats.common.trace_format import (
    NO_REQUEST,
    Description,
    Format,
    MalformedError,
    Tally,
    Whole,
    operation_codes,
    rows,
    scaled,
    volume_pairs,
)
from drivelab.trace.records import SECTOR_BYTES

_NAMES = pa.dictionary(pa.int32(), pa.string())
_MOST_FURTHER = 64
_WRONG_COUNT = re.compile(r"Expected (\d+) columns, got (\d+)")
_WRONG_VALUE = re.compile(r"In CSV column #(\d+): .*?(?:invalid value '(.*)'|(invalid UTF8 data))", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Columns(Description):
    """A format with one request in each line, in columns.

    `columns` are their names as in the format's documentation, with the separator of the lines; at the end, `…` stands
    for further columns, which are ignored. A line of these names is a header. A column that is no text below is a whole
    number.
    """

    time: str | None
    """Column with the time; None: all times are 0."""
    operation: str
    words: Mapping[str, str | None]
    """Operation of each text in the column `operation`; None: the line is no request."""
    offset: str
    length: str
    sectors: Sequence[str] = ()
    """Columns in sectors of 512 bytes; other extents are in bytes."""
    seconds: Sequence[str] = ()
    """Columns of times in seconds, with up to nine decimals; other times are whole numbers of ticks."""
    response: str | None = None
    """Column with the time from request to completion; in seconds it may be blank: unknown."""
    volume: Sequence[str] = ()
    """One column, or two whose texts are joined by `joint`."""
    joint: str = ""
    process: str | None = None
    pid: str | None = None
    no_request: str = ""
    """What lines that are no request are called where they are counted."""
    comment: Callable[[bytes], str | None] = lambda line: None
    """Returns the kind of other documented lines, as in Lines."""

    @functools.cached_property
    def delimiter(self) -> str:
        return " " if " " in self.columns else re.sub(r"\w|…", "", self.columns)[0]

    @functools.cached_property
    def names(self) -> list[str]:
        return self.columns.partition(f"{self.delimiter}…")[0].split(self.delimiter)

    @property
    def more(self) -> bool:
        """Whether further columns may follow."""
        return self.columns.endswith("…")

    @functools.cached_property
    def _types(self) -> dict[str, pa.DataType]:
        texts = (self.operation, self.process, *self.volume)
        return {
            name: _NAMES if name in texts else pa.string() if name in self.seconds else pa.int64()
            for name in self.names
        }

    @functools.cached_property
    def lines(self) -> Lines[pa.RecordBatch]:
        return Lines(self.convert, self._comment)

    @property
    def format(self) -> Format:
        description = {field.name: getattr(self, field.name) for field in fields(Description)}
        return Format(**description, looks_like=self.lines.looks_like, read=self.read)

    def read(self, source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
        """Yield the requests of a file; count lines that are none."""
        for batch in self.lines.batches(source, tally):
            yield requests_of(batch, tally, self.no_request)

    def convert(self, block: Block) -> pa.RecordBatch:
        """Return the lines of a block as `rows`; raise MalformedError if a line has another layout."""
        try:
            table = self._parsed(block.data, self._types)
        except pa.ArrowInvalid as error:
            raise MalformedError(self._reason(str(error))) from None
        # Finding one letter is much faster than finding two with a frequent first one.
        if (b"x" in block.data and b"0x" in block.data) or (b"X" in block.data and b"0X" in block.data):
            self._refuse_hexadecimal(block.data)
        line = line_numbers(block, table.num_rows)
        columns = {name: self._converted(table[name], name) for name in self.names}
        more: dict[str, Any] = {}
        if self.response is not None:
            more["response_ns"] = columns[self.response]
        if len(self.volume) == 2:
            more["volume"] = volume_pairs(columns[self.volume[0]], self.joint, columns[self.volume[1]])
        elif self.volume:
            more["volume"] = columns[self.volume[0]]
        if self.process is not None:
            more["process"] = columns[self.process]
        if self.pid is not None:
            if len(line) and int(columns[self.pid].max()) >= 1 << 31:
                raise MalformedError(f"{self.pid} is beyond 2^31")
            more["pid"] = columns[self.pid].astype(np.int32)
        return rows(
            line=line,
            time=np.zeros(len(line), np.int64) if self.time is None else columns[self.time],
            operation=operation_codes(columns[self.operation], self.words, self.operation),
            offset_bytes=columns[self.offset],
            length_bytes=columns[self.length],
            **more,
        )

    def _converted(self, values: Any, name: str) -> Any:
        if self._types[name] == _NAMES:
            return _trimmed(values)
        if name in self.seconds:
            if name != self.response:
                return decimal_ns(values, name)
            blank = pc.equal(values, "")
            if not pc.any(blank).as_py():
                return decimal_ns(values, name)
            times = decimal_ns(pc.if_else(blank, "0", values), name)
            return pa.array(times, mask=blank.to_numpy(zero_copy_only=False))
        numbers: Whole = values.to_numpy()
        if len(numbers) and int(numbers.min()) < 0:
            raise MalformedError(f"{name} is negative")
        factor = SECTOR_BYTES if name in self.sectors else self.tick_ns if name == self.response else 1
        return numbers if factor == 1 else scaled(numbers, factor, name)

    def _comment(self, line: bytes) -> str | None:
        if line.decode(errors="replace").lower() == self.delimiter.join(self.names).lower():
            return "header lines"
        return self.comment(line)

    def _parsed(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
        """Parse columns of these types; further columns are counted in the first line, or else cut off."""
        if not self.more:
            return self._table(data, types, 0)
        first = data.lstrip(b"\n").partition(b"\n")[0]
        try:
            further = first.count(self.delimiter.encode()) + 1 - len(self.names)
            return self._table(data, types, min(further, _MOST_FURTHER))
        except pa.ArrowInvalid as error:
            if not _WRONG_COUNT.search(str(error)):
                raise
        other, separator = rb"[^%b\n]*" % self.delimiter.encode(), re.escape(self.delimiter.encode())
        wanted = rb"(?m)^((?:%b%b){%d}%b)%b.*$" % (other, separator, len(self.names) - 1, other, separator)
        return self._table(re.sub(wanted, rb"\1", data), types, 0)

    def _table(self, data: bytes, types: Mapping[str, pa.DataType], further: int) -> pa.RecordBatch:
        names = [*self.names, *(f"further {number}" for number in range(further))]
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
        whole = [name for name, kind in self._types.items() if kind == pa.int64()]
        texts = self._parsed(data, dict.fromkeys(whole, pa.string()))
        for name in whole:
            if pc.any(pc.match_substring(texts[name], "x", ignore_case=True)).as_py():
                raise MalformedError(f"{name} is not decimal")

    def _reason(self, message: str) -> str:
        if match := _WRONG_COUNT.search(message):
            least = "at least " if self.more else ""
            return f"has {match[2]} columns instead of {least}{len(self.names)}"
        if match := _WRONG_VALUE.search(message):
            name = self.names[int(match[1])]
            if match[3]:
                return f"{name} is not valid UTF-8"
            return f"{name} '{match[2][:40]}' is not a whole number from 0 to 2^63 - 1"
        return message.splitlines()[0][:120]


def requests_of(batch: pa.RecordBatch, tally: Tally, words: str) -> pa.RecordBatch:
    """Return the requests of a batch; count the other rows as `words`."""
    request = batch["operation"].to_numpy() != NO_REQUEST
    if request.all():
        return batch
    tally.skipped[words] += int(np.count_nonzero(~request))
    return batch.filter(pa.array(request))


def decimal_ns(texts: pa.StringArray, name: str) -> Whole:
    """Convert seconds to whole ns, exactly.

    Raises MalformedError for other texts, negative or too large numbers, and more than nine decimals.
    """
    if (plain := _plain(texts)) is not None:
        return plain
    try:
        exact = pc.cast(pc.utf8_trim_whitespace(texts), pa.decimal128(28, 9))
    except pa.ArrowInvalid:
        shown = f"{name} '{texts[0].as_py()[:40]}'" if len(texts) else name
        raise MalformedError(f"{shown} is not a number of seconds with up to nine decimals") from None
    words = np.frombuffer(exact.buffers()[1], np.int64)[: 2 * len(exact)].reshape(-1, 2)
    if words[:, 1].any() or (words[:, 0] < 0).any():
        raise MalformedError(f"{name} is negative or beyond 2^63 ns")
    return np.ascontiguousarray(words[:, 0])


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


def _trimmed(values: pa.DictionaryArray) -> pa.DictionaryArray:
    """Remove the spaces around names."""
    trimmed = pc.utf8_trim_whitespace(values.dictionary)
    if trimmed.equals(values.dictionary):
        return values
    again = trimmed.dictionary_encode()
    return pa.DictionaryArray.from_arrays(again.indices.take(values.indices), again.dictionary)
