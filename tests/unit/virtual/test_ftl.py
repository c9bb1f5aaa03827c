from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from flash_checks import check
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES, DriveModel

PAGES = 256
CAPACITY = PAGES * PAGE_BYTES
TINY = {
    "serial": "TINY",
    "capacity": "1MiB",
    "over_provisioning": "25%",
    "pages_per_block": 8,
    "dies": 2,
    "slc_cache": "80KiB",
    "write_buffer": "16KiB",
}

Step = tuple[str, int, int, int]
spans = st.tuples(st.integers(0, CAPACITY - 1), st.integers(1, 24 * PAGE_BYTES)).map(
    lambda span: (span[0], min(span[1], CAPACITY - span[0]))
)
aligned = st.tuples(st.integers(0, PAGES - 1), st.integers(1, 24)).map(
    lambda span: (span[0] * PAGE_BYTES, min(span[1], PAGES - span[0]) * PAGE_BYTES)
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "write", "read", "trim", "flush", "idle", "purge"]),
        spans | aligned,
        st.integers(0, 2000),
    ),
    max_size=300,
)


def write_at_random(
    drive: FlashDrive, now_us: float, pages: int, seed: int = 1, after: Callable[[float, float], None] | None = None
) -> float:
    """Write single pages at queue depth 1; return the time of the last acknowledgement."""
    rng = Random(seed)
    for _ in range(pages):
        done_us = drive.submit(now_us, "write", rng.randrange(drive.model.user_pages) * PAGE_BYTES, PAGE_BYTES)
        if after is not None:
            after(now_us, done_us)
        now_us = done_us
    return now_us


def iops(drive: FlashDrive, now_us: float, pages: int, seed: int = 1) -> float:
    return 1e6 * pages / (write_at_random(drive, now_us, pages, seed) - now_us)


@settings(deadline=None, max_examples=150)
@given(steps, st.booleans())
def test_invariants_hold_and_no_write_is_lost(actions: list[tuple[str, tuple[int, int], int]], enabled: bool) -> None:
    drive = FlashDrive(DriveModel.from_mapping("tiny", {**TINY, "enabled": enabled}))
    written: set[int] = set()
    now_us = 0.0
    for operation, (offset, length), pause_us in actions:
        now_us += pause_us
        if operation == "idle":
            now_us += drive.model.idle_after_us + 10 * pause_us
            drive.advance(now_us)
        elif operation == "purge":
            drive.purge(now_us)
            written.clear()
        else:
            assert drive.submit(now_us, operation, offset, length) >= now_us
        if operation == "write":
            written |= set(range(offset // PAGE_BYTES, (offset + length - 1) // PAGE_BYTES + 1))
        elif operation == "trim":
            written -= set(range(-(-offset // PAGE_BYTES), (offset + length) // PAGE_BYTES))
        check(drive)
        assert drive.counters()["mapped_pages"] == len(written)
    assert {page for page in range(PAGES) if drive.is_mapped(page)} == written


def test_invariants_hold_through_steady_state(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small())
    now_us = 0.0
    for seed in range(8):
        now_us = write_at_random(drive, now_us, 1000, seed)
        check(drive)
    assert drive.counters()["erases"] > 0


def break_place(drive: FlashDrive) -> None:
    drive._place[3] = drive._place[4]


def break_owner(drive: FlashDrive) -> None:
    drive._owner[next(i for i, page in enumerate(drive._owner) if page >= 0)] = -1


def break_score(drive: FlashDrive) -> None:
    drive._score[0] += 1


def break_free_list(drive: FlashDrive) -> None:
    drive._free.append(drive._free[0])


def break_count(drive: FlashDrive) -> None:
    drive._mapped += 1


@pytest.mark.parametrize("damage", [break_place, break_owner, break_score, break_free_list, break_count])
def test_the_check_detects_a_broken_invariant(
    damage: Callable[[FlashDrive], None], small: Callable[..., DriveModel]
) -> None:
    drive = FlashDrive(small())
    write_at_random(drive, 0.0, 4000)
    check(drive)
    damage(drive)
    with pytest.raises(AssertionError, match=r"has|hold|holds|mapped|free"):
        check(drive)


def steady_write_amplification(model: DriveModel) -> float:
    drive = FlashDrive(model)
    now_us = write_at_random(drive, 0.0, 8 * model.user_pages)
    before = drive.counters()
    write_at_random(drive, now_us, 2 * model.user_pages, seed=2)
    after = drive.counters()
    nand = after["nand_write_bytes"] - before["nand_write_bytes"]
    return nand / (after["host_write_bytes"] - before["host_write_bytes"])


def test_write_amplification_falls_with_over_provisioning(small: Callable[..., DriveModel]) -> None:
    low, middle, high = (
        steady_write_amplification(small(capacity="16MiB", over_provisioning=share)) for share in ("7%", "28%", "100%")
    )
    assert low > 1.5 * middle > 1.5 * high > 1.5
    # (1 + s) / 2s, with the spare share s, holds for collection of the oldest block; greedy collection does better
    assert 1.6 < middle < (1 + 0.28) / (2 * 0.28)


def test_sequential_writes_are_not_amplified(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small(slc_cache="0B"))
    now_us = 0.0
    for offset in [page * PAGE_BYTES for _ in range(4) for page in range(0, 1024, 32)]:
        now_us = drive.submit(now_us, "write", offset, 32 * PAGE_BYTES)
    assert drive.counters()["nand_write_bytes"] == drive.counters()["host_write_bytes"]


def test_a_purge_undoes_the_write_cliff(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small())
    now_us = write_at_random(drive, 0.0, 128)
    fresh = 1e6 * 128 / now_us
    now_us = write_at_random(drive, now_us, 6000)
    start = now_us
    now_us = write_at_random(drive, now_us, 500)
    assert 1e6 * 500 / (now_us - start) < fresh / 3
    drive.purge(now_us)
    check(drive)
    assert drive.counters()["mapped_pages"] == 0
    assert iops(drive, now_us, 128) == pytest.approx(fresh)


def test_idle_time_restores_the_slc_cache(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small())
    now_us = write_at_random(drive, 0.0, 5000)
    tired = iops(drive, now_us, 64)
    now_us = drive.active_until_us
    mapped = drive.counters()["mapped_pages"]
    rested = iops(drive, now_us + 10e6, 64)
    assert rested > 2 * tired
    assert drive.counters()["mapped_pages"] >= mapped
    check(drive)


def test_a_short_pause_restores_nothing(small: Callable[..., DriveModel]) -> None:
    pause_us = 250_000
    drive, still = FlashDrive(small()), FlashDrive(small())
    for flash in (drive, still):
        write_at_random(flash, 0.0, 5000)
    begin = drive.active_until_us
    assert iops(drive, begin + pause_us, 256) < 1.3 * iops(still, begin, 256)


def test_idle_work_in_small_steps_has_the_same_result(small: Callable[..., DriveModel]) -> None:
    often, once = FlashDrive(small()), FlashDrive(small())
    for drive in (often, once):
        write_at_random(drive, 0.0, 100)
    begin = often.active_until_us
    for millisecond in range(0, 2000, 50):
        often.advance(begin + 1000 * millisecond)
    once.advance(begin + 2e6)
    assert often.counters() == once.counters()
    assert often.dump() == once.dump()
    check(often)


@pytest.mark.parametrize(("offset", "length"), [(512, 512), (0, 512), (PAGE_BYTES - 512, 512), (512, PAGE_BYTES)])
def test_a_partial_page_is_read_before_it_is_written(
    offset: int, length: int, small: Callable[..., DriveModel]
) -> None:
    def latency_us(at: int, size: int, mapped: bool) -> float:
        drive = FlashDrive(small(write_buffer="4MiB"))
        if mapped:
            drive.submit(0.0, "write", 0, 2 * PAGE_BYTES)
        return drive.submit(100_000.0, "write", at, size) - 100_000.0

    pages = (offset + length - 1) // PAGE_BYTES + 1
    whole_us = latency_us(0, pages * PAGE_BYTES, mapped=True)
    assert latency_us(offset, length, mapped=True) > whole_us + 50
    assert latency_us(offset, length, mapped=False) == whole_us


def test_reads_of_unmapped_and_trimmed_pages_are_faster(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small())

    def read_us(now_us: float) -> float:
        return drive.submit(now_us, "read", 0, PAGE_BYTES) - now_us

    unmapped_us = read_us(0.0)
    drive.submit(10_000.0, "write", 0, PAGE_BYTES)
    assert read_us(20_000.0) == pytest.approx(unmapped_us + drive.model.read_us)
    drive.submit(30_000.0, "trim", 1, PAGE_BYTES)
    assert drive.counters()["trimmed_bytes"] == 0
    assert read_us(40_000.0) > unmapped_us
    drive.submit(50_000.0, "trim", 0, PAGE_BYTES)
    assert drive.counters()["trimmed_bytes"] == PAGE_BYTES
    assert read_us(60_000.0) == pytest.approx(unmapped_us)


def test_trimming_half_the_drive_lowers_write_amplification(small: Callable[..., DriveModel]) -> None:
    def moved_pages(trim: bool) -> int:
        drive = FlashDrive(small(slc_cache="0B"))
        now_us = write_at_random(drive, 0.0, 5000)
        if trim:
            now_us = drive.submit(now_us, "trim", 2 << 20, 2 << 20)
        before = drive.counters()["nand_write_bytes"]
        write_at_random(drive, now_us, 300)
        return drive.counters()["nand_write_bytes"] - before

    assert moved_pages(trim=True) < moved_pages(trim=False) / 1.5


def test_a_read_waits_for_one_page_operation_only(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small(slc_cache="0B", write_buffer="1MiB"))
    for page in range(256):
        now_us = drive.submit(0.0, "write", page * PAGE_BYTES, PAGE_BYTES)
    waited_us = drive.submit(now_us, "read", 0, PAGE_BYTES) - now_us
    model = drive.model
    alone_us = model.command_us + model.read_us + model.transfer_us
    assert alone_us <= waited_us <= alone_us + model.program_us
    assert drive.submit(now_us, "flush", 0, 0) - now_us > 10 * model.program_us


def test_the_write_buffer_is_bounded(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small(slc_cache="0B", write_buffer="64KiB", command_us=0, transfer_us=0))
    acknowledged_us = [drive.submit(0.0, "write", page * PAGE_BYTES, PAGE_BYTES) for page in range(32)]
    assert acknowledged_us[:16] == [0.0] * 16
    assert acknowledged_us[16] == drive.model.program_us
    assert acknowledged_us[31] == 4 * drive.model.program_us


def test_counters_count_host_io(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small())
    drive.submit(0.0, "write", 512, 1024)
    drive.submit(0.0, "read", 0, 3 * PAGE_BYTES)
    drive.submit(0.0, "flush", 0, 0)
    drive.submit(0.0, "trim", 0, 4 * PAGE_BYTES)
    counters = drive.counters()
    assert counters["host_write_bytes"] == 1024
    assert counters["host_read_bytes"] == 3 * PAGE_BYTES
    assert counters["nand_write_bytes"] == PAGE_BYTES
    assert counters["trimmed_bytes"] == 4 * PAGE_BYTES
    drive.purge(1e6)
    assert drive.counters()["host_write_bytes"] == 1024


def test_the_map_is_kept_without_timing(small: Callable[..., DriveModel]) -> None:
    drive = FlashDrive(small(enabled=False))
    assert write_at_random(drive, 7.0, 4000) == 7.0
    assert drive.submit(7.0, "read", 0, 1 << 20) == 7.0
    drive.advance(1e9)
    check(drive)
    assert drive.counters()["mapped_pages"] > 900


@pytest.mark.parametrize(
    ("operation", "offset", "length"),
    [("read", -1, 1), ("write", 0, 0), ("read", 4 << 20, 1), ("trim", 0, (4 << 20) + 1), ("erase", 0, 1)],
)
def test_impossible_requests_are_refused(
    operation: str, offset: int, length: int, small: Callable[..., DriveModel]
) -> None:
    with pytest.raises(ValueError, match=operation):
        FlashDrive(small()).submit(0.0, operation, offset, length)


def test_a_loaded_state_behaves_like_the_original(small: Callable[..., DriveModel]) -> None:
    original, copy = FlashDrive(small()), FlashDrive(small())
    now_us = write_at_random(original, 0.0, 3000)
    copy.load(original.dump())
    check(copy)
    assert write_at_random(copy, now_us, 1000) == write_at_random(original, now_us, 1000)
    assert copy.dump() == original.dump()


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\x80\x04N.", b"null"])
def test_an_invalid_state_is_refused(data: bytes, small: Callable[..., DriveModel]) -> None:
    with pytest.raises(ValueError, match=r"Expecting|not the state|decode"):
        FlashDrive(small()).load(data)


def test_the_state_of_another_size_is_refused(small: Callable[..., DriveModel]) -> None:
    with pytest.raises(ValueError, match="another size"):
        FlashDrive(small()).load(FlashDrive(small(capacity="8MiB")).dump())
