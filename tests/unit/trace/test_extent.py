"""Duration, bytes written and bytes read of a trace."""

from __future__ import annotations

from drivelab.trace import catalogue
from drivelab.trace.characterise import row_of
from drivelab.trace.extent import extent
from drivelab.trace.statistics.count import count


def test_the_extent_equals_the_characterisation() -> None:
    for name in catalogue.load():
        row = row_of(count(catalogue.path_of(name), name))
        assert extent(catalogue.path_of(name)) == (
            row["duration_s"],
            row["write_bytes"],
            row["read_bytes"],
        )
