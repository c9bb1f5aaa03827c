"""Mapping of requests to another drive."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, table
from prepared_replays import MIB

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import MappingChoice
from drivelab.replay.mapping import Mapper, active_range
from drivelab.replay.survey import survey
from drivelab.trace.statistics.batch import Batch

Extent = tuple[str, int, int]
transfer = st.tuples(st.sampled_from(["read", "write"]), st.integers(0, 1 << 40), st.integers(1, 1 << 18))
near = st.tuples(st.sampled_from(["read", "write"]), st.integers(0, 1 << 16), st.integers(1, 1 << 13))
wide = st.tuples(st.sampled_from(["discard", "write-zeroes"]), st.integers(0, 1 << 41), st.integers(1, 1 << 42))


def batch_of(extents: list[Extent]) -> pa.RecordBatch:
    return table([Row(0, None, None, *extent) for extent in extents]).to_batches()[0]


def mapper_of(extents: list[Extent], choice: MappingChoice, capacity_bytes: int, block_bytes: int) -> Mapper:
    gap = choice.gap_bytes if choice.method == "compact" else None
    return Mapper(choice, survey([batch_of(extents)], block_bytes, gap), capacity_bytes, block_bytes)


def placed(
    extents: list[Extent], choice: MappingChoice, capacity_bytes: int, block_bytes: int = 512
) -> tuple[list[tuple[int, int]], list[bool]]:
    placement = mapper_of(extents, choice, capacity_bytes, block_bytes).place(Batch(batch_of(extents)))
    return list(
        zip(placement.offset_bytes.tolist(), placement.length_bytes.tolist(), strict=True)
    ), placement.kept.tolist()


@given(
    st.lists(transfer, min_size=1), st.lists(st.one_of(transfer, wide)), st.sampled_from(["auto", "modulo", "scale"]),
    st.sampled_from([512, 4096]), st.integers(1, 5), st.integers(2 * MIB, 8 * MIB),
)  # fmt: skip
def test_all_requests_are_whole_blocks_within_the_range(
    transfers: list[Extent], others: list[Extent], method: str, block: int, start: int, size: int
) -> None:
    extents = transfers + others
    choice = MappingChoice(method, start * 1111, size)
    extents_on_drive, kept = placed(extents, choice, 16 * MIB, block)
    for (operation, _, length), (offset, mapped), keep in zip(extents, extents_on_drive, kept, strict=True):
        if not keep:
            assert operation in ("discard", "write-zeroes")
            continue
        assert start * 1111 <= offset
        assert offset + mapped <= start * 1111 + size
        assert offset % block == mapped % block == 0
        assert mapped > 0
        if operation in ("read", "write"):
            assert length <= mapped < length + 2 * block
        elif operation == "discard":
            assert mapped <= length


@given(
    st.lists(
        st.one_of(near, wide.map(lambda extent: (extent[0], extent[1] % 65536, extent[2] % 65536 + 1))), min_size=1
    )
)
def test_exact_and_auto_keep_whole_blocks_in_place(extents: list[Extent]) -> None:
    extents = [("read", 0, 512), *((name, o // 512 * 512, -(-n // 512) * 512) for name, o, n in extents)]
    for method in ("exact", "auto"):
        mapper = mapper_of(extents, MappingChoice(method), MIB, 512)
        result = mapper.place(Batch(batch_of(extents)))
        assert list(zip(result.offset_bytes.tolist(), result.length_bytes.tolist(), strict=True)) == [
            extent[1:] for extent in extents
        ]
        assert mapper.method == "exact"
        assert not result.altered
        assert (mapper.moved, mapper.resized, mapper.clipped, mapper.dropped) == (0, 0, 0, 0)


@given(st.lists(transfer, min_size=1), st.integers(512, 4096))
def test_modulo_keeps_lengths_and_wraps_offsets(extents: list[Extent], size_kib: int) -> None:
    extents = [(name, o // 512 * 512, -(-n // 512) * 512) for name, o, n in extents]
    size = size_kib << 10
    placements, _ = placed(extents, MappingChoice("modulo"), size)
    for (_, offset, length), (new, mapped) in zip(extents, placements, strict=True):
        assert mapped == length
        assert new == min(offset % size, size - length)


@given(st.lists(st.one_of(near, near, transfer), min_size=1, max_size=30), st.sampled_from([0, 512, 5000, 1 << 20]))
def test_compaction_keeps_order_overlap_and_adjacency(extents: list[Extent], gap: int) -> None:
    block = 512
    placements, _ = placed(extents, MappingChoice("compact", gap_bytes=gap), 1 << 42, block)
    before = [(o // block * block, -(-(o + n) // block) * block) for _, o, n in extents]
    after = [(o, o + n) for o, n in placements]
    for first, (begin, end) in enumerate(before):
        assert after[first][1] - after[first][0] == end - begin
        for second, (other, _) in enumerate(before):
            assert (begin < other) == (after[first][0] < after[second][0])
            assert _overlap(before[first], before[second]) == _overlap(after[first], after[second])
            if end == other:
                assert after[first][1] == after[second][0]
    taken = sum(end - begin for begin, end in _union(after, 0))
    assert max(end for _, end in after) - taken <= (len(extents)) * (gap // block * block)
    assert _union(after, gap // block * block) == [(min(b for b, _ in after), max(e for _, e in after))]


@given(st.lists(near, min_size=1, max_size=20), st.integers(0, 1 << 17), st.integers(1, 1 << 17))
def test_a_discard_covers_the_same_requests_after_compaction(extents: list[Extent], begin: int, length: int) -> None:
    extents = [*((name, o // 512 * 512, -(-n // 512) * 512) for name, o, n in extents), ("discard", begin, length)]
    placements, kept = placed(extents, MappingChoice("compact", gap_bytes=0), MIB)
    low, high = -(-begin // 512) * 512, (begin + length) // 512 * 512
    offset, mapped = placements[-1]
    covered = [_overlap((low, high), (o, o + n)) if high > low else False for _, o, n in extents[:-1]]
    assert covered == [kept[-1] and _overlap((offset, offset + mapped), (o, o + n)) for o, n in placements[:-1]]


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _union(extents: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for begin, end in sorted(extents):
        if result and begin - result[-1][1] <= gap:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result


def test_scaling_keeps_the_order() -> None:
    extents = [("write", index * 8192, 4096) for index in range(256)]
    placements, _ = placed(extents, MappingChoice("scale"), MIB, 4096)
    offsets = [offset for offset, _ in placements]
    assert offsets == sorted(offsets)
    span = 255 * 2 + 1
    assert offsets == [index * 2 * 256 // span * 4096 for index in range(256)]
    wide, _ = placed(extents, MappingChoice("scale"), span * 3 * 4096, 4096)
    assert [offset for offset, _ in wide] == [3 * offset for _, offset, _ in extents]


def test_scaling_is_exact_for_the_largest_drives() -> None:
    top = (1 << 62) - 512
    extents = [("read", 0, 512), ("read", top // 2 // 512 * 512, 512), ("read", top - 512, 512)]
    placements, _ = placed(extents, MappingChoice("scale"), top)
    assert [offset for offset, _ in placements] == [offset for _, offset, _ in extents]


def test_shrunk_cut_and_dropped_discards_are_counted() -> None:
    extents: list[Extent] = [
        ("write", 512, 512), ("discard", 512, 8192), ("discard", 100, 4096), ("discard", MIB - 4096, 3 * MIB),
        ("write-zeroes", 0, 5 * MIB), ("read", 100, 4096), ("read", 4096, 0), ("flush", 0, 0),
        ("discard", 4 * MIB, 4096),
    ]  # fmt: skip
    mapper = mapper_of(extents, MappingChoice("modulo"), MIB, 4096)
    result = mapper.place(Batch(batch_of(extents)))
    assert list(zip(result.offset_bytes.tolist(), result.length_bytes.tolist(), strict=True)) == [
        (0, 4096), (4096, 4096), (0, 0), (MIB - 4096, 4096), (0, MIB), (0, 8192), (0, 0), (0, 0), (0, 4096),
    ]  # fmt: skip
    assert result.kept.tolist() == [True, True, False, True, True, True, False, True, True]
    assert (mapper.resized, mapper.clipped, mapper.dropped, mapper.moved) == (3, 2, 2, 1)


def test_auto_chooses_a_method_with_a_reason() -> None:
    assert mapper_of([("read", 0, MIB)], MappingChoice(), MIB, 512).method == "exact"
    larger = mapper_of([("read", 512, MIB)], MappingChoice(), MIB, 512)
    assert larger.method == "modulo"
    assert larger.reason == "the trace ends at 1049088B, beyond the active range of 1024KiB"
    assert mapper_of([("read", 0, MIB)], MappingChoice("modulo"), MIB, 512).reason == "as chosen"


@pytest.mark.parametrize(
    ("choice", "extents", "problem"),
    [
        (
            MappingChoice("exact", 4096),
            [("read", MIB - 512, 512)],
            "on a drive of at least 1028KiB, or choose the mapp",
        ),
        (MappingChoice(), [("read", 0, 2 * MIB)], "a request of 2MiB is longer than the active range of 1024KiB"),
        (MappingChoice(range_start_bytes=MIB), [("read", 0, 512)], "lies outside the drive of 1024KiB"),
        (MappingChoice(range_bytes=2 * MIB), [("read", 0, 512)], "from 0B to 2MiB lies outside the drive"),
        (MappingChoice(range_start_bytes=1, range_bytes=600), [("read", 0, 512)], "has no whole block of 512B"),
        (
            MappingChoice("compact", gap_bytes=0),
            [("read", index * MIB, 65536) for index in range(17)],
            "the compacted trace needs 1.06 MiB, gaps up to 0B included, but the active range has 1 MiB; choose a",
        ),
        (MappingChoice("exact"), [("read", 2**63 - 512, 511)], "at least"),
        (MappingChoice(), [("read", 2**63 - 512, 512)], "fits no device"),
        (MappingChoice(), [("discard", 0, 1 << 58)], "fits no device"),
        (MappingChoice(), [("read", -512, 512)], "fits no device"),
    ],
)
def test_impossible_mappings_are_refused(choice: MappingChoice, extents: list[Extent], problem: str) -> None:
    with pytest.raises(UserError) as refused:
        mapper_of(extents, choice, MIB, 512)
    assert problem in str(refused.value)


def test_huge_offsets_do_not_wrap_around() -> None:
    last = 2**63 - 1
    extents: list[Extent] = [("read", last - 511, 511), ("discard", 0, (1 << 58) - 1), ("write", 0, 512)]
    for method in ("modulo", "scale", "compact"):
        placements, _ = placed(
            extents, MappingChoice(method, **({"gap_bytes": 0} if method == "compact" else {})), MIB, 4096
        )
        assert (np.array(placements) >= 0).all()
        assert (np.array(placements).sum(axis=1) <= MIB).all()


def test_an_active_range_has_whole_blocks_only() -> None:
    assert active_range(MappingChoice(), MIB + 511, 512) == (0, 2048)
    assert active_range(MappingChoice(range_start_bytes=1, range_bytes=1535), MIB, 512) == (1, 2)
    with pytest.raises(UserError, match="has no block"):
        active_range(MappingChoice(), 100, 512)
