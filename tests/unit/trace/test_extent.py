"""Duration and bytes written of a trace, without the rest."""

from __future__ import annotations

from drivelab.trace import catalogue
from drivelab.trace.characterise import characterise_file
from drivelab.trace.extent import extent


def test_the_extent_is_that_of_the_characterisation() -> None:
    for name in catalogue.load():
        row = characterise_file(catalogue.path_of(name), name).iloc[0]
        assert extent(catalogue.path_of(name)) == (row["duration_s"], row["write_bytes"])
