"""Values of a protocol's fields in base units, with `each` replaced by the value whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from drivelab.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.units import parse_duration, parse_share, parse_size


@dataclass(frozen=True)
class Values:
    """What the fields of a step are to be understood by."""

    protocol: str
    """Name, for errors."""
    threads: int
    queue_depth: int
    active_range: float
    """A fraction of the capacity."""
    block_size: str | None = None
    """The value of `for_each` whose turn it is."""
    time: str | None = None
    """The value of a repeat's `over` whose turn it is."""

    @classmethod
    def of_class(cls, name: str, chosen: Mapping[str, Any], block_size: str | None) -> Values:
        """Those of a protocol called `name` for a drive class; raises UserError for an impossible active range."""
        share = parse_share(chosen["active_range"])
        if not 0 < share <= 1:
            raise UserError(f"protocol '{name}': active range {chosen['active_range']} is not within 0% and 100%")
        return cls(name, chosen["threads"], chosen["queue_depth"], share, block_size)

    def at(self, time: str | None) -> Values:
        """The same, with another value for the times that are `each`."""
        return replace(self, time=time)

    def size(self, text: str) -> int:
        """Bytes of a size."""
        if text == "each" and self.block_size is None:
            raise UserError(f"protocol '{self.protocol}': a block size is 'each' but there is no 'for_each'; add one")
        return parse_size(self.block_size if text == "each" else text)

    def sizes(self, text: str) -> dict[str, int]:
        """Fields of a cell for one block size, or for a range such as `4KiB-1MiB`."""
        least, dash, most = text.partition("-")
        if not dash:
            return {"block_size_bytes": self.size(text)}
        low, high = self.size(least), self.size(most)
        if not low or high <= low or high % low:
            raise UserError(
                f"protocol '{self.protocol}': block size {text} is no range; write the smaller size first, and as the "
                "larger one a multiple of it"
            )
        return {"block_size_bytes": low, "block_size_max_bytes": high}

    def duration_s(self, text: str) -> float:
        """Seconds of a duration."""
        if text == "each" and self.time is None:
            raise UserError(
                f"protocol '{self.protocol}': a time is 'each' but its step is not repeated 'over' times; repeat it"
            )
        return parse_duration(self.time if text == "each" else text)

    def cell(self, fields: Mapping[str, Any], runtime_s: float | None) -> Cell:
        """The cell that the fields of a soak, or of one cell of a loop, describe."""
        sizes = self.sizes(fields["block_size"])
        return Cell(
            pattern=fields["pattern"],
            read_share=fields["read_share"],
            block_size_bytes=sizes["block_size_bytes"],
            threads=fields.get("threads", self.threads),
            queue_depth=fields.get("queue_depth", self.queue_depth),
            runtime_s=runtime_s,
            range_share=self.active_range,
            slice_s=self.duration_s(fields["slice"]) if "slice" in fields else None,
            block_size_max_bytes=sizes.get("block_size_max_bytes"),
        )
