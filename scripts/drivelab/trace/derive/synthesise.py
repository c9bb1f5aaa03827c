"""Write a synthetic equivalent of a trace as a protocol for studies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from drivelab.errors import UserError
from drivelab.protocol.grammar import load, resolve
from drivelab.trace.catalogue import sha256_of
from drivelab.trace.derive.equivalent import Equivalent, measure
from drivelab.trace.derive.limits import limits
from drivelab.trace.derive.protocol_text import protocol_text, whole_depth, workload
from drivelab.trace.outputs import refuse_source, writable
from drivelab.trace.schema import open_trace

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Report:
    """The written protocol and its equivalent."""

    output: Path
    name: str
    equivalent: Equivalent

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {
            "protocol": str(self.output),
            "name": self.name,
            **asdict(self.equivalent),
            "streams": [{"workload": workload(stream), **asdict(stream)} for stream in self.equivalent.streams],
            "active_range_pct": self.equivalent.active_range_pct,
            "left_out_pct": self.equivalent.left_out_pct,
            "not_carried_over": list(limits(self.equivalent)),
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as text lines."""
        equivalent = self.equivalent
        yield f"{self.output}: protocol '{self.name}', {len(equivalent.streams)} streams"
        yield f"  {'share':>7}  {'requests':>10}  {'depth':>5}  stream"
        for stream in equivalent.streams:
            depth = whole_depth(stream.depth)
            yield f"  {stream.share_pct:6.2f}%  {stream.requests:10}  {depth:5}  {workload(stream)}"
        yield "Lost properties of the trace:"
        for text in limits(equivalent):
            yield f"  * {text}"


def synthesise(
    source: Path, output: Path, *, streams: int = 9, name: str | None = None, block_bytes: int = _SECTOR_BYTES
) -> Report:
    """Write the synthetic equivalent of a trace as a protocol, in bounded memory.

    Raises UserError when the source is not a trace or has no reads and writes, or the output name is unsuitable.
    """
    name = name or output.stem
    if output.suffix != ".yaml":
        raise UserError(f"{output}: does not end in .yaml; name the protocol like config/protocols/NAME.yaml")
    if not _NAME.fullmatch(name):
        raise UserError(f"{output}: '{name}' is not a protocol name; use lower-case letters, digits and hyphens")
    if name != output.stem:
        raise UserError(f"{output}: protocol '{name}' must be in a file '{name}.yaml'; change one of the names")
    if streams < 1:
        raise UserError(f"the number of streams is {streams}; choose 1 or more")
    if block_bytes < _SECTOR_BYTES or block_bytes & (block_bytes - 1):
        raise UserError(
            f"a block of {block_bytes} B is not a power of two of at least {_SECTOR_BYTES} B; no drive has such blocks"
        )
    refuse_source(output, [source])
    with open_trace(source) as trace:
        equivalent = measure(trace, source, streams=streams, block_bytes=block_bytes)
        text = protocol_text(equivalent, name, trace.provenance, source.name, sha256_of(source))
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        # Check the protocol as a study would, before it replaces an existing file.
        with TemporaryDirectory(dir=output.parent, prefix=".synthesise-") as folder:
            draft = Path(folder) / output.name
            draft.write_text(text, encoding="utf-8")
            protocol = load(draft)
            for drive_class in ("enterprise", "client"):
                for scale in (None, "demo"):
                    resolve(protocol, drive_class, scale, {}, str(output))
            draft.replace(output)
    return Report(output, name, equivalent)
