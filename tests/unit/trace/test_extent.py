"""Duration, bytes written and bytes read of a trace."""

from __future__ import annotations

from drivelab.trace import trace_catalogue
from drivelab.trace.parquet_schema import extent
from drivelab.trace.statistics.count import count, row_of


def test_the_extent_equals_the_characterisation() -> None:
    for name in trace_catalogue.load():
        row = row_of(count(trace_catalogue.path_of(name), name))
        assert extent(trace_catalogue.path_of(name)) == (
            row["duration_s"],
            row["write_bytes"],
            row["read_bytes"],
        )
