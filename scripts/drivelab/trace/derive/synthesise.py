"""A synthetic equivalent of a trace, written as a protocol that a study can run."""

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
    """What became of a trace."""

    output: Path
    name: str
    found: Equivalent

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "protocol": str(self.output),
            "name": self.name,
            **asdict(self.found),
            "streams": [{"workload": workload(one), **asdict(one)} for one in self.found.streams],
            "active_range_pct": self.found.active_range_pct,
            "left_out_pct": self.found.left_out_pct,
            "not_carried_over": list(limits(self.found)),
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        found = self.found
        yield f"{self.output}: protocol '{self.name}', {len(found.streams)} streams"
        yield f"  {'share':>7}  {'requests':>10}  {'depth':>5}  stream"
        for one in found.streams:
            yield f"  {one.share_pct:6.2f}%  {one.requests:10}  {whole_depth(one.depth):5}  {workload(one)}"
        yield "Not carried over:"
        for text in limits(found):
            yield f"  * {text}"


def synthesise(
    source: Path, output: Path, *, streams: int = 9, name: str | None = None, block_bytes: int = _SECTOR_BYTES
) -> Report:
    """Write the synthetic equivalent of a trace as a protocol; bounded memory.

    Raises UserError when the source is no trace or has no reads and writes, or the output is no place for a protocol.
    """
    name = name or output.stem
    if output.suffix != ".yaml":
        raise UserError(f"{output}: a protocol is a file like config/protocols/NAME.yaml; name it so")
    if not _NAME.fullmatch(name):
        raise UserError(f"{output}: '{name}' is no name of a protocol; use lower-case letters, digits and hyphens")
    if name != output.stem:
        raise UserError(f"{output}: a protocol '{name}' has to be in a file '{name}.yaml'; let the names agree")
    if streams < 1:
        raise UserError(f"{streams} streams are no workload; choose one or more")
    if block_bytes < _SECTOR_BYTES or block_bytes & (block_bytes - 1):
        raise UserError(
            f"a block of {block_bytes} B is no power of two from {_SECTOR_BYTES} B; no drive has such blocks"
        )
    refuse_source(output, [source])
    with open_trace(source) as trace:
        found = measure(trace, source, streams=streams, block_bytes=block_bytes)
        text = protocol_text(found, name, trace.provenance, source.name, sha256_of(source))
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        # Checked as a study would, before it takes the place of another one.
        with TemporaryDirectory(dir=output.parent, prefix=".synthesise-") as folder:
            draft = Path(folder) / output.name
            draft.write_text(text, encoding="utf-8")
            protocol = load(draft)
            for drive_class in ("enterprise", "client"):
                for scale in (None, "demo"):
                    resolve(protocol, drive_class, scale, {}, str(output))
            draft.replace(output)
    return Report(output, name, found)
