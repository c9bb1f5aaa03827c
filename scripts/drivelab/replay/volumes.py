"""The volumes of a replay: which target the requests of each go to, and where on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import MappingChoice
from drivelab.replay.mapping import Mapper, MappingReport, Placed
from drivelab.replay.survey import Shape, Shaping, Survey
from drivelab.trace.parquet_schema import REQUESTS, VOLUME, TraceFile
from drivelab.trace.statistics.batch import Batch, Ints, Times

ONLY = ""
"""Name of the volume of a trace that has one."""


@dataclass(frozen=True)
class Volumes:
    """The volumes that are replayed, in the order of the engine's targets."""

    capacities_bytes: Mapping[str, int]
    """Capacity of each volume's target, by the name of the volume."""
    block_bytes: int
    """Size of the targets' logical blocks; of different ones, the largest."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.capacities_bytes)

    @property
    def named(self) -> bool:
        """Whether requests name their volume; otherwise there is only one."""
        return self.names != (ONLY,)

    @cached_property
    def bases_bytes(self) -> Ints:
        """What to add to an offset of each volume, so that no two volumes share an address."""
        capacities = np.array(list(self.capacities_bytes.values()), np.int64)
        return np.asarray(np.cumsum(capacities) - capacities, np.int64)

    def numbers(self, requests: pa.RecordBatch) -> Ints:
        """Return the number of each request's volume, -1 for one that is not replayed; shape (rows,)."""
        if not self.named:
            return np.zeros(requests.num_rows, np.int64)
        column = requests.column(VOLUME.name)
        numbers = {name: number for number, name in enumerate(self.names)}
        codes = np.array([numbers.get(name, -1) for name in column.dictionary.to_pylist()] or [-1], np.int64)
        return np.asarray(codes[column.indices.to_numpy(zero_copy_only=False)], np.int64)


class Chosen:
    """Requests of some volumes of an open trace, in batches, readable repeatedly.

    Raises UserError for a request of a volume that the trace does not list.
    """

    def __init__(self, trace: TraceFile, volumes: Volumes) -> None:
        self._trace, self._volumes = trace, volumes
        self.rows = 0
        for batch in trace.batches([VOLUME.name]):
            self.rows += int((volumes.numbers(batch) >= 0).sum())
            if unlisted := set(batch.column(VOLUME.name).unique().to_pylist()) - trace.volumes.keys():
                raise UserError(f"the trace does not list the volume '{min(unlisted)}'; merge or import it again")

    def batches(self, columns: Iterable[str], most_rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most `most_rows` rows with `columns` and the volume, in `queue_ns` order."""
        for batch in self._trace.batches(dict.fromkeys((*columns, VOLUME.name)), most_rows):
            yield batch.filter(pa.array(self._volumes.numbers(batch) >= 0))


def surveys(
    batches: Iterable[pa.RecordBatch], volumes: Volumes, gap_bytes: int | None
) -> tuple[Times, Sequence[Survey]]:
    """Return the times of all volumes together, and survey each alone, as drivelab.replay.survey.survey."""
    each = [Survey(block_bytes=volumes.block_bytes, gap_bytes=gap_bytes) for _ in volumes.names]
    together = Times() if volumes.named else each[0]
    for requests in batches:
        if not volumes.named:
            each[0].add(Batch(requests))
            continue
        together.add_times(Batch(requests))
        for number, rows in _parts(volumes.numbers(requests)):
            each[number].add(Batch(requests.take(pa.array(rows))))
    for totals in each:
        totals.finish()
    return together, each


def _parts(numbers: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each volume's number and its rows."""
    for number in np.unique(numbers):
        yield int(number), np.flatnonzero(numbers == number)


class _Placement:
    """Place the requests of one volume batch by batch, and count the changes."""

    def __init__(self, mapper: Mapper, before: Shape) -> None:
        self._mapper, self._before = mapper, before
        known_bytes = before.footprint_bytes if mapper.keeps_footprint else None
        self._after = Shaping(known_bytes) if mapper.alters else None
        self._requests = 0
        self.split = 0

    def place(self, requests: pa.RecordBatch, batch: Batch) -> tuple[Placed, pa.RecordBatch, Batch]:
        """Return the places, and the requests that are left."""
        placed = self._mapper.place(batch)
        self._requests += batch.rows
        if placed.altered:
            requests = _moved(requests, placed)
            batch = Batch(requests)
        if self._after is not None:
            self._after.add(batch)
        return placed, requests, batch

    def report(self, requests_in_trace: int) -> MappingReport:
        mapper, before = self._mapper, self._before
        after = before if self._after is None else self._after.shape()
        return MappingReport(
            method=mapper.method,
            reason=mapper.reason,
            capacity_bytes=mapper.capacity_bytes,
            logical_block_bytes=mapper.block_bytes,
            range_start_bytes=mapper.low_block * mapper.block_bytes,
            range_bytes=mapper.range_blocks * mapper.block_bytes,
            requests_in_trace=requests_in_trace,
            requests_merged=requests_in_trace - self._requests,
            requests_moved=mapper.moved,
            requests_resized=mapper.resized,
            requests_split=self.split,
            requests_clipped=mapper.clipped,
            requests_dropped=mapper.dropped,
            footprint_before_bytes=before.footprint_bytes,
            footprint_after_bytes=after.footprint_bytes,
            sequential_before_pct=before.sequential_pct,
            sequential_after_pct=after.sequential_pct,
            retouched_before_bytes=before.retouched_bytes,
            retouched_after_bytes=after.retouched_bytes,
        )


class OnTargets(NamedTuple):
    """Requests placed on their targets."""

    requests: pa.RecordBatch
    batch: Batch
    volume: Ints
    """Number of each request's volume."""


class Placements:
    """Place the requests of all volumes, each on its own target, batch by batch.

    Raises UserError as drivelab.replay.mapping.Mapper does.
    """

    def __init__(self, volumes: Volumes, choice: MappingChoice, surveyed: Sequence[Survey]) -> None:
        self.volumes = volumes
        self._each: list[_Placement] = []
        for (name, capacity_bytes), survey in zip(volumes.capacities_bytes.items(), surveyed, strict=True):
            try:
                mapper = Mapper(choice, survey, capacity_bytes, volumes.block_bytes)
            except UserError as error:
                raise UserError(f"volume {name}: {error}" if volumes.named else str(error)) from None
            self._each.append(_Placement(mapper, survey.shape))

    def place(self, requests: pa.RecordBatch) -> OnTargets:
        """Return the requests that are left, on their targets."""
        numbers = self.volumes.numbers(requests)
        if not self.volumes.named:
            _, requests, batch = self._each[0].place(requests, Batch(requests))
            return OnTargets(requests, batch, numbers[: batch.rows])
        offset, length = np.zeros(numbers.size, np.int64), np.zeros(numbers.size, np.int64)
        kept = np.zeros(numbers.size, np.bool_)
        for number, rows in _parts(numbers):
            part = requests.take(pa.array(rows))
            placed, _, _ = self._each[number].place(part, Batch(part))
            offset[rows], length[rows], kept[rows] = placed.offset_bytes, placed.length_bytes, placed.kept
        requests = _moved(requests, Placed(offset, length, kept, altered=True))
        return OnTargets(requests, Batch(requests), numbers[kept])

    def count_split(self, numbers: Ints) -> None:
        """Count requests that became several, by the numbers of their volumes."""
        for placement, count in zip(self._each, np.bincount(numbers, minlength=len(self._each)), strict=True):
            placement.split += int(count)

    def reports(self, requests_in_trace: Mapping[str, int]) -> dict[str, MappingReport]:
        """Return how the requests so far were mapped, by volume."""
        names = self.volumes.names
        return {name: each.report(requests_in_trace[name]) for name, each in zip(names, self._each, strict=True)}


def _moved(requests: pa.RecordBatch, placed: Placed) -> pa.RecordBatch:
    """Return the requests that are left, at their places."""
    for name, values in (("offset_bytes", placed.offset_bytes), ("length_bytes", placed.length_bytes)):
        place = requests.schema.get_field_index(name)
        requests = requests.set_column(place, REQUESTS.field(name), pa.array(values))
    return requests.filter(pa.array(placed.kept))
