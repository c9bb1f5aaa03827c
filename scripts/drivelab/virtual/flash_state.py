"""The state of a virtual drive: the place of every page, the state of every block, and busy times.

Places 0 to `_pages` - 1 are pages of the main area; higher places are slots of the SLC cache.
"""

from __future__ import annotations

import json
import math
from array import array
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable
from typing import Any

from drivelab.virtual.effects import Heat
from drivelab.virtual.model import DriveModel

NONE = -1
OPEN = 1 << 30
"""Added to the score of an open or free block, which garbage collection must not choose."""
_TIMES = ("_controller_free", "_bus_free", "_active_until")
_LISTS_OF_TIMES = ("_buffer_freed", "_die_free", "_die_read_free")
_MEMORY = (
    "_lifetime", "_mapped", "_place", "_owner", "_score", "_free", "_host_next", "_host_end", "_move_next", "_move_end",
    "_slc_owner", "_slc_oldest", "_slc_used", "_slc_writable", "_buffer_slot", *_TIMES, *_LISTS_OF_TIMES,
)  # fmt: skip
"""Everything that changes while the drive is used; the rest follows from the model."""
_PACKED = ("_place", "_owner", "_score", "_free", "_slc_owner")
"""The long lists of whole numbers: as JSON they would take most of the time of a virtual cell."""
_HEAT = "_temperature"
"""Only in the state of a drive that warms up, so that the format of other states does not change."""
_PURGED = "_purged_at_us"
"""Only in the state of a drive with variation, whose times depend on it."""
_LIFETIME = ("host_write_bytes", "host_read_bytes", "nand_write_pages", "erases", "trimmed_bytes")


class FlashState:
    """The state; `drivelab.virtual.ftl.FlashDrive` adds the behaviour."""

    def __init__(self, model: DriveModel) -> None:
        self.model = model
        self._user_pages = model.user_pages
        self._block_pages = model.pages_per_block
        self._pages = model.blocks * model.pages_per_block
        self._slc_pages = model.slc_pages
        self._lifetime = dict.fromkeys(_LIFETIME, 0)
        self.reset(0.0)

    def reset(self, now_us: float) -> None:
        """Forget everything except the lifetime counters; the temperature too."""
        self._heat = Heat(self.model.throttle, now_us) if self.model.throttle is not None else None
        self._forget(now_us)

    def _forget(self, now_us: float) -> None:
        """Unmap all pages, mark all blocks erased, and make everything idle from `now_us` on."""
        self._purged_at_us = now_us
        self._pace_until_us = -math.inf
        self._controller_free = self._bus_free = self._active_until = now_us
        self._die_free = [now_us] * self.model.dies
        self._die_read_free = [now_us] * self.model.dies
        self._buffer_freed = [now_us] * self.model.buffer_pages
        self._buffer_slot = 0
        self._mapped = 0
        self._place = [NONE] * self._user_pages
        self._owner = [NONE] * self._pages
        self._score = [OPEN] * self.model.blocks
        self._free = deque(range(self.model.blocks))
        self._host_next = self._host_end = self._move_next = self._move_end = 0
        self._slc_owner = [NONE] * self._slc_pages
        self._slc_oldest = self._slc_used = 0
        self._slc_writable = self._slc_pages

    def _invalidate(self, page: int) -> None:
        """Mark the page's current place, if it has one, as invalid."""
        place = self._place[page]
        if place == NONE:
            return
        self._mapped -= 1
        if place >= self._pages:
            self._slc_owner[place - self._pages] = NONE
        else:
            self._owner[place] = NONE
            self._score[place // self._block_pages] -= 1

    def is_mapped(self, page: int) -> bool:
        """Return whether a page was written and neither trimmed nor purged since."""
        return self._place[page] != NONE

    def dump(self) -> bytes:
        """Return the whole state, for `load` with the same model; equal states give equal bytes."""
        state = {key: getattr(self, key) for key in _MEMORY}
        if self._heat is not None:
            state[_HEAT] = self._heat.state()
        if self.model.variation is not None:
            state[_PURGED] = self._purged_at_us
        state |= {key: _packed(state[key]) for key in _PACKED}
        return json.dumps(state, separators=(",", ":")).encode()

    def load(self, data: bytes) -> None:
        """Load a state from `dump`; raises ValueError if it is invalid or from a drive of another size."""
        state: Any = json.loads(data)
        known = {*_MEMORY, *((_HEAT,) if self._heat is not None else ())}
        known |= {_PURGED} if self.model.variation is not None else set()
        if not isinstance(state, dict) or set(state) != known:
            raise ValueError("this is not the state of a virtual drive")
        state |= {key: _unpacked(state[key]) for key in _PACKED}
        for key in ("_place", "_owner", "_score", "_slc_owner", "_die_free", "_buffer_freed"):
            if len(state[key]) != len(getattr(self, key)):
                raise ValueError("this is the state of a virtual drive of another size")
        if self._heat is not None:
            self._heat.restore(state.pop(_HEAT))
        vars(self).update({**state, "_free": deque(state["_free"]), "_pace_until_us": -math.inf})

    def shift(self, us: float) -> None:
        """Change to a clock that is `us` microseconds ahead of the clock of all times so far."""
        for key in _TIMES:
            setattr(self, key, getattr(self, key) + us)
        for key in _LISTS_OF_TIMES:
            setattr(self, key, [at + us for at in getattr(self, key)])
        if self._heat is not None:
            self._heat.at_us += us


def _packed(numbers: Iterable[int]) -> str:
    return b64encode(array("i", numbers).tobytes()).decode()


def _unpacked(text: Any) -> list[int]:
    """Return the numbers; raises ValueError for a text that is none of `_packed`."""
    return list(array("i", b64decode(str(text), validate=True)))
