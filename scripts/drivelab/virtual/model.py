"""The parameters of a virtual drive: geometry, times, caches and identity, checked once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from drivelab.errors import UserError
from drivelab.units import format_size, parse_share, parse_size
from drivelab.virtual.effects import Disturbance, Housekeeping, Throttle

PAGE_BYTES = 4096
"""Unit of mapping and of programming."""
LEAST_SPARE_BLOCKS = 4
"""One block open for the host, one for moved pages, one free for garbage collection, one to gain something from."""
PRODUCT = "drivelab virtual drive"
FIRMWARE = "VFTL0001"
_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_FIRMWARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,7}")


@dataclass(frozen=True)
class DriveModel:
    """All that the behaviour of a virtual drive depends on."""

    serial: str
    """Serial number, as it stands in the drive sheet."""
    capacity_bytes: int
    """User capacity, a multiple of 4 KiB."""
    over_provisioning: float
    """Flash beyond the capacity, as a fraction of the capacity; holds open and free blocks too."""
    pages_per_block: int = 64
    """Pages that are erased together; a block is striped page by page over all dies."""
    dies: int = 4
    """Units that read, program and erase at the same time."""
    read_us: float = 100.0
    """Time of a die to read a page."""
    program_us: float = 680.0
    """Time of a die to program a page."""
    erase_us: float = 1000.0
    """Time of a die to erase its part of a block."""
    copy_us: float = 230.0
    """Time of a die for a page that is moved within the drive. Less than a read and a program, because a controller
    moves pages past the bus and programs several planes together, which it cannot do with scattered host writes."""
    command_us: float = 85.0
    """Time of the controller for each command, one after another: the ceiling of IOPS."""
    transfer_us: float = 20.0
    """Time of the host bus for a page: the ceiling of bandwidth."""
    slc_cache_bytes: int = 0
    """Size of the SLC cache, beyond the over-provisioning; an idle drive empties it."""
    slc_program_us: float = 150.0
    """Time of a die to program a page of the SLC cache."""
    write_buffer_bytes: int = 64 * PAGE_BYTES
    """Data that may be acknowledged before it is programmed."""
    idle_after_us: float = 300_000.0
    """Time without a request after which the drive takes itself to be idle."""
    enabled: bool = True
    """If not, nothing takes any time, so that a measurement shows the ceiling of what serves the drive."""
    seed: int = 1
    """Of what the model draws by chance."""
    logical_block_bytes: int = PAGE_BYTES
    """Unit of addresses, a page or a sector of 512 bytes. What is smaller than a page or does not begin with one is
    written by reading the rest of the page first."""
    throttle: Throttle | None = None
    """The drive warms up, and slows down while it is too hot."""
    housekeeping: Housekeeping | None = None
    """The drive is busy with itself by the clock."""
    disturb: Disturbance | None = None
    """Others on the host take time by the clock."""
    firmware: str = FIRMWARE
    """Firmware that the drive tells; another one is an update to try."""

    @property
    def user_pages(self) -> int:
        return self.capacity_bytes // PAGE_BYTES

    @property
    def blocks(self) -> int:
        """Blocks of the main area, over-provisioning included."""
        return round(self.user_pages * (1 + self.over_provisioning) / self.pages_per_block)

    @property
    def slc_pages(self) -> int:
        return self.slc_cache_bytes // PAGE_BYTES

    @property
    def buffer_pages(self) -> int:
        return self.write_buffer_bytes // PAGE_BYTES

    def describe(self) -> dict[str, Any]:
        """Identity as in the table `drives`."""
        return {
            "serial": self.serial,
            "model": PRODUCT,
            "firmware": self.firmware,
            "transport": "virtual",
            "drive_write_cache": "as the model has it",
            "virtual": True,
            "over_provisioning_pct": round(100 * self.over_provisioning, 4),
        }

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able, in the words of the configuration; `from_mapping` reads it back.

        Every parameter is present, but for a logical block of a page, the usual firmware, and effects that the drive
        does not have.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        found = {KEYS[name].key: KEYS[name].write(value) for name, value in values.items() if value is not None}
        if self.logical_block_bytes == PAGE_BYTES:
            del found["logical_block"]
        if self.firmware == FIRMWARE:
            del found["firmware"]
        return found

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, Any]) -> DriveModel:
        """The model in one entry of the configuration; raises UserError that names the key that is wrong."""
        by_key = {one.key: field for field, one in KEYS.items()}
        for key in mapping:
            if key not in by_key:
                raise UserError(f"virtual drive '{name}': there is no key '{key}'; known are {', '.join(by_key)}")
        for key in ("serial", "capacity", "over_provisioning"):
            if key not in mapping:
                raise UserError(f"virtual drive '{name}': the key '{key}' is missing; add it")
        values: dict[str, Any] = {}
        for key, value in mapping.items():
            try:
                values[by_key[key]] = KEYS[by_key[key]].read(value)
            except (UserError, ValueError) as error:
                raise UserError(f"virtual drive '{name}': key '{key}': {error}") from None
        model = cls(**values)
        _check_geometry(name, model)
        return model


def _check_geometry(name: str, model: DriveModel) -> None:
    if model.pages_per_block % model.dies:
        raise UserError(
            f"virtual drive '{name}': key 'pages_per_block' is {model.pages_per_block}, which {model.dies} dies do not "
            "share evenly; make it a multiple of 'dies'"
        )
    spare = model.blocks - math.ceil(model.user_pages / model.pages_per_block)
    if spare < LEAST_SPARE_BLOCKS:
        raise UserError(
            f"virtual drive '{name}': key 'over_provisioning' leaves {spare} spare blocks, garbage collection needs "
            f"{LEAST_SPARE_BLOCKS}; raise it or 'capacity', or lower 'pages_per_block'"
        )


@dataclass(frozen=True)
class _Key:
    """How a parameter is written in the configuration."""

    key: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


def _size(least_pages: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        size = parse_size(value)
        if size % PAGE_BYTES or size < least_pages * PAGE_BYTES:
            raise ValueError(f"'{value}' is no multiple of {format_size(PAGE_BYTES)} from {least_pages} of them on")
        return size

    return read


def _logical_block(value: Any) -> int:
    size = parse_size(value)
    if size not in (512, PAGE_BYTES):
        raise ValueError(f"'{value}' is neither 512B nor {format_size(PAGE_BYTES)}")
    return size


def _share(value: Any) -> float:
    share = round(parse_share(value), 6)
    if not 0 < share <= 4:
        raise ValueError(f"'{value}' is not within 0% and 400%")
    return share


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"'{value}' is no whole number from {least} to {most}")
        return value

    return read


def _microseconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        raise ValueError(f"'{value}' is no number of microseconds from 0 to 1e9")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"'{value}' is neither true nor false")
    return value


def _serial(value: Any) -> str:
    if not isinstance(value, str) or not _SERIAL.fullmatch(value):
        raise ValueError(f"'{value}' is no serial; use letters, digits, hyphens and underscores, 40 at the most")
    return value


def _firmware(value: Any) -> str:
    if not isinstance(value, str) or not _FIRMWARE.fullmatch(value):
        raise ValueError(f"'{value}' is no firmware; use letters, digits, dots, hyphens and underscores, 8 at the most")
    return value


KEYS: dict[str, _Key] = {
    "serial": _Key("serial", _serial),
    "capacity_bytes": _Key("capacity", _size(256), format_size),
    "over_provisioning": _Key("over_provisioning", _share, lambda share: f"{round(100 * share, 4):g}%"),
    "pages_per_block": _Key("pages_per_block", _whole(1, 4096)),
    "dies": _Key("dies", _whole(1, 64)),
    "read_us": _Key("read_us", _microseconds),
    "program_us": _Key("program_us", _microseconds),
    "erase_us": _Key("erase_us", _microseconds),
    "copy_us": _Key("copy_us", _microseconds),
    "command_us": _Key("command_us", _microseconds),
    "transfer_us": _Key("transfer_us", _microseconds),
    "slc_cache_bytes": _Key("slc_cache", _size(0), format_size),
    "slc_program_us": _Key("slc_program_us", _microseconds),
    "write_buffer_bytes": _Key("write_buffer", _size(1), format_size),
    "idle_after_us": _Key("idle_after_us", _microseconds),
    "enabled": _Key("enabled", _flag),
    "seed": _Key("seed", _whole(0, 2**63 - 1)),
    "logical_block_bytes": _Key("logical_block", _logical_block, format_size),
    "throttle": _Key("throttle", Throttle.read, Throttle.write),
    "housekeeping": _Key("housekeeping", Housekeeping.read, Housekeeping.write),
    "disturb": _Key("disturb", Disturbance.read, Disturbance.write),
    "firmware": _Key("firmware", _firmware),
}
