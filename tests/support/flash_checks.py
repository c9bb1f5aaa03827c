"""Check the invariants of a virtual drive's state."""

from __future__ import annotations

from drivelab.virtual.flash_state import NONE, OPEN, FlashState


def check(drive: FlashState) -> None:
    """Raise AssertionError if a page has two places or none, or a count is wrong."""
    mapped = 0
    for page, place in enumerate(drive._place):
        if place == NONE:
            continue
        mapped += 1
        in_slc = place >= drive._pages
        owner = drive._slc_owner[place - drive._pages] if in_slc else drive._owner[place]
        assert owner == page, f"page {page} is mapped to place {place}, which holds page {owner}"
    held = [page for page in drive._owner + drive._slc_owner if page != NONE]
    assert len(held) == mapped, f"{mapped} pages are mapped, {len(held)} places hold a page"
    assert drive._mapped == mapped, f"{mapped} pages are mapped, the count says {drive._mapped}"
    _check_blocks(drive)
    _check_slc(drive)


def _check_blocks(drive: FlashState) -> None:
    free = set(drive._free)
    assert len(free) == len(drive._free), "a block is free twice"
    open_blocks = {end // drive._block_pages - 1 for end in (drive._host_end, drive._move_end) if end}
    assert not free & open_blocks, "a block is both free and open"
    for block, score in enumerate(drive._score):
        first = block * drive._block_pages
        valid = sum(page != NONE for page in drive._owner[first : first + drive._block_pages])
        locked = OPEN if block in free or block in open_blocks else 0
        assert score == valid + locked, f"block {block} has {valid} valid pages, its score is {score - locked}"
        assert block not in free or valid == 0, f"free block {block} has {valid} valid pages"
    for following, end in ((drive._host_next, drive._host_end), (drive._move_next, drive._move_end)):
        unwritten = drive._owner[following:end]
        assert all(page == NONE for page in unwritten), "a page beyond the frontier is in use"


def _check_slc(drive: FlashState) -> None:
    used = {(drive._slc_oldest + i) % drive._slc_pages for i in range(drive._slc_used)}
    stray = [slot for slot, page in enumerate(drive._slc_owner) if page != NONE and slot not in used]
    assert not stray, f"slots {stray} of the SLC cache hold pages outside its log"
    room = drive._slc_pages - drive._slc_used
    assert 0 <= drive._slc_writable <= room, f"{drive._slc_writable} slots are writable, there is room for {room}"
