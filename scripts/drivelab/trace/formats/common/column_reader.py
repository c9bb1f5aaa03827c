"""Read formats of plain columns, as columns.yaml declares them: whole numbers, names, exact decimals."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

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
)
from drivelab.trace.records import SECTOR_BYTES

_NAMES = pa.dictionary(pa.int32(), pa.string())
_TIME, _WHOLE = "number of seconds with up to nine decimals", "whole number from 0 to 2^63 - 1"
_MOST_FURTHER = 64
_WRONG_COUNT = re.compile(r"Expected (\d+) columns, got (\d+)")
_WRONG_VALUE = re.compile(r"In CSV column #(\d+): ")
_SECONDS = pa.decimal128(28, 9)


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
            name: _NAMES if name in texts else _SECONDS if name in self.seconds else pa.int64() for name in self.names
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
            raise MalformedError(self._reason(str(error), block.data)) from None
        # Finding one letter is much faster than finding two with a frequent first one.
        if (b"x" in block.data and b"0x" in block.data) or (b"X" in block.data and b"0X" in block.data):
            self._refuse_hexadecimal(block.data)
        line = line_numbers(block, table.num_rows)
        columns = {name: self._converted(table[name], name) for name in self.names}
        more: dict[str, Any] = {}
        if self.response is not None:
            more["response_ns"] = columns[self.response]
        if len(self.volume) == 2:
            left, right = (columns[name] for name in self.volume)
            numbers = left.indices.to_numpy().astype(np.int64) << 32 | right.indices.to_numpy()
            pairs = pa.array(numbers).dictionary_encode()
            places = [divmod(pair, 1 << 32) for pair in pairs.dictionary.to_pylist()]
            names = [f"{left.dictionary[at]}{self.joint}{right.dictionary[of]}" for at, of in places]
            more["volume"] = pa.DictionaryArray.from_arrays(pairs.indices, pa.array(names, pa.string()))
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
        if values.null_count and name != self.response:
            raise MalformedError(self._wrong(name, ""))
        if name in self.seconds:
            times = decimal_ns(values.fill_null(0), name)
            return pa.array(times, mask=values.is_null().to_numpy(zero_copy_only=False)) if values.null_count else times
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
                column_types=types,
                include_columns=list(types),
                null_values=[""] if self.response in self.seconds else [],
                strings_can_be_null=False,
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

    def _reason(self, message: str, line: bytes) -> str:
        if match := _WRONG_COUNT.search(message):
            least = "at least " if self.more else ""
            return f"has {match[2]} columns instead of {least}{len(self.names)}"
        if match := _WRONG_VALUE.search(message):
            place = int(match[1])
            try:
                return self._wrong(self.names[place], line.strip(b"\n").split(self.delimiter.encode())[place].decode())
            except UnicodeDecodeError:
                return f"{self.names[place]} is not valid UTF-8"
        return message.splitlines()[0][:120]

    def _wrong(self, name: str, text: str) -> str:
        return f"{name} '{text[:40]}' is not a {_TIME if name in self.seconds else _WHOLE}"


def requests_of(batch: pa.RecordBatch, tally: Tally, words: str) -> pa.RecordBatch:
    """Return the requests of a batch; count the other rows as `words`."""
    request = batch["operation"].to_numpy() != NO_REQUEST
    if request.all():
        return batch
    tally.skipped[words] += int(np.count_nonzero(~request))
    return batch.filter(pa.array(request))


def decimal_ns(seconds: pa.Array, name: str) -> Whole:
    """Convert seconds, decimals or their texts, to whole ns, exactly.

    Raises MalformedError for other texts, and negative or too large numbers.
    """
    try:
        exact = pc.cast(seconds, _SECONDS)
    except pa.ArrowInvalid:
        raise MalformedError(f"{name} '{seconds[0].as_py()[:40]}' is not a {_TIME}") from None
    words = np.frombuffer(exact.buffers()[1], np.int64)[2 * exact.offset :][: 2 * len(exact)].reshape(-1, 2)
    if words[:, 1].any() or (words[:, 0] < 0).any():
        raise MalformedError(f"{name} is negative or beyond 2^63 ns")
    return np.ascontiguousarray(words[:, 0])


def _trimmed(values: pa.DictionaryArray) -> pa.DictionaryArray:
    """Remove the spaces around names."""
    trimmed = pc.utf8_trim_whitespace(values.dictionary)
    if trimmed.equals(values.dictionary):
        return values
    again = trimmed.dictionary_encode()
    return pa.DictionaryArray.from_arrays(again.indices.take(values.indices), again.dictionary)
