"""The parameters of a virtual drive: geometry, times, caches and identity, checked once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import format_size, parse_share, parse_size
from drivelab.virtual.effects import Disturbance, Housekeeping, Throttle, Variation

VIRTUAL_DRIVES = Path("config/virtual_drives.yaml")

PAGE_BYTES = 4096
"""Unit of mapping and of programming."""
LEAST_SPARE_BLOCKS = 4
"""One block open for the host, one for moved pages, one free for garbage collection, one to reclaim."""
PRODUCT = "drivelab virtual drive"
FIRMWARE = "VFTL0001"
_Convert = Callable[[Any], Any]
_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_FIRMWARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,7}")


def _size(least_pages: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        size = parse_size(value)
        if size % PAGE_BYTES or size < least_pages * PAGE_BYTES:
            least = format_size(least_pages * PAGE_BYTES)
            raise ValueError(f"'{value}' is not a multiple of {format_size(PAGE_BYTES)} of at least {least}")
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
            raise ValueError(f"'{value}' is not a whole number from {least} to {most}")
        return value

    return read


def _microseconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        raise ValueError(f"'{value}' is not a number of microseconds from 0 to 1e9")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"'{value}' is neither true nor false")
    return value


def _serial(value: Any) -> str:
    if not isinstance(value, str) or not _SERIAL.fullmatch(value):
        raise ValueError(f"'{value}' is not a serial; use at most 40 letters, digits, hyphens and underscores")
    return value


def _firmware(value: Any) -> str:
    if not isinstance(value, str) or not _FIRMWARE.fullmatch(value):
        raise ValueError(f"'{value}' is not a firmware; use at most 8 letters, digits, dots, hyphens and underscores")
    return value


def _key(read: _Convert, key: str = "", write: _Convert = lambda value: value) -> dict[str, Any]:
    """Return how the configuration has a parameter: under its name unless `key` is given."""
    return {"key": key, "read": read, "write": write}


@dataclass(frozen=True)
class DriveModel:
    """All parameters that the behaviour of a virtual drive depends on."""

    serial: str = field(metadata=_key(_serial))
    """Serial number, as in the drive sheet."""
    capacity_bytes: int = field(metadata=_key(_size(256), "capacity", format_size))
    """User capacity, a multiple of 4 KiB."""
    over_provisioning: float = field(metadata=_key(_share, write=lambda share: f"{round(100 * share, 4):g}%"))
    """Flash beyond the capacity, as a fraction of the capacity; includes open and free blocks."""
    pages_per_block: int = field(default=64, metadata=_key(_whole(1, 4096)))
    """Pages that are erased together; a block is striped page by page over all dies."""
    dies: int = field(default=4, metadata=_key(_whole(1, 64)))
    """Units that read, program and erase in parallel."""
    read_us: float = field(default=100.0, metadata=_key(_microseconds))
    """Time for a die to read a page."""
    program_us: float = field(default=680.0, metadata=_key(_microseconds))
    """Time for a die to program a page."""
    erase_us: float = field(default=1000.0, metadata=_key(_microseconds))
    """Time for a die to erase its part of a block."""
    copy_us: float = field(default=230.0, metadata=_key(_microseconds))
    """Time for a die to move a page within the drive. Less than a read plus a program, because a controller bypasses
    the bus and programs several planes together, which it cannot do with scattered host writes."""
    command_us: float = field(default=85.0, metadata=_key(_microseconds))
    """Controller time for each command, one after another: limits IOPS."""
    transfer_us: float = field(default=20.0, metadata=_key(_microseconds))
    """Host bus time for a page: limits bandwidth."""
    slc_cache_bytes: int = field(default=0, metadata=_key(_size(0), "slc_cache", format_size))
    """Size of the SLC cache, in addition to the over-provisioning; an idle drive empties it."""
    slc_program_us: float = field(default=150.0, metadata=_key(_microseconds))
    """Time for a die to program a page of the SLC cache."""
    write_buffer_bytes: int = field(default=64 * PAGE_BYTES, metadata=_key(_size(1), "write_buffer", format_size))
    """Data that may be acknowledged before it is programmed."""
    idle_after_us: float = field(default=300_000.0, metadata=_key(_microseconds))
    """Time without a request after which the drive starts its idle work."""
    enabled: bool = field(default=True, metadata=_key(_flag))
    """If False, nothing takes any time, so a measurement shows the limit of the code that serves the drive."""
    seed: int = field(default=1, metadata=_key(_whole(0, 2**63 - 1)))
    """Seed of the model's random draws."""
    logical_block_bytes: int = field(default=PAGE_BYTES, metadata=_key(_logical_block, "logical_block", format_size))
    """Unit of addresses, a page or a sector of 512 bytes. A write that does not cover whole pages first reads the rest
    of its pages."""
    throttle: Throttle | None = field(default=None, metadata=_key(Throttle.read, write=asdict))
    """The drive warms up, and slows down while it is too hot."""
    housekeeping: Housekeeping | None = field(default=None, metadata=_key(Housekeeping.read, write=asdict))
    """The drive periodically does its own housekeeping."""
    disturb: Disturbance | None = field(default=None, metadata=_key(Disturbance.read, write=asdict))
    """Neighbours on the host periodically steal CPU time."""
    variation: Variation | None = field(default=None, metadata=_key(Variation.read, write=asdict))
    """The times of the flash differ between specimens, purges, moments and pages."""
    firmware: str = field(default=FIRMWARE, metadata=_key(_firmware))
    """Firmware that the drive reports; use another value to simulate an update."""

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
        """Return the identity for the table `drives`."""
        return {
            "serial": self.serial,
            "model": PRODUCT,
            "firmware": self.firmware,
            "transport": "virtual",
            "drive_write_cache": "as modelled",
            "rotational": False,
            "virtual": True,
            "over_provisioning_pct": round(100 * self.over_provisioning, 4),
        }

    def to_mapping(self) -> dict[str, Any]:
        """Return the model as JSON with the keys of the configuration; `from_mapping` reads it back.

        All parameters are present except a logical block of one page, the default firmware, and missing effects.
        """
        values = {key: (entry, getattr(self, entry.name)) for key, entry in self._entries().items()}
        mapping = {key: entry.metadata["write"](value) for key, (entry, value) in values.items() if value is not None}
        if self.logical_block_bytes == PAGE_BYTES:
            del mapping["logical_block"]
        if self.firmware == FIRMWARE:
            del mapping["firmware"]
        return mapping

    @classmethod
    def _entries(cls) -> dict[str, Field[Any]]:
        """Return the parameters by their keys in the configuration."""
        return {entry.metadata["key"] or entry.name: entry for entry in fields(cls)}

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, Any]) -> DriveModel:
        """Read the model from one entry of the configuration; raises UserError that names the wrong key."""
        entries = cls._entries()
        for key in mapping:
            if key not in entries:
                raise UserError(f"virtual drive '{name}': unknown key '{key}'; use {', '.join(entries)}")
        for key in ("serial", "capacity", "over_provisioning"):
            if key not in mapping:
                raise UserError(f"virtual drive '{name}': the key '{key}' is missing; add it")
        values: dict[str, Any] = {}
        for key, value in mapping.items():
            try:
                values[entries[key].name] = entries[key].metadata["read"](value)
            except (UserError, ValueError) as error:
                raise UserError(f"virtual drive '{name}': key '{key}': {error}") from None
        model = cls(**values)
        _check_geometry(name, model)
        return model


def _check_geometry(name: str, model: DriveModel) -> None:
    if model.pages_per_block % model.dies:
        raise UserError(
            f"virtual drive '{name}': key 'pages_per_block' is {model.pages_per_block}, which is not a multiple of the "
            f"{model.dies} dies; make it a multiple of 'dies'"
        )
    spare = model.blocks - math.ceil(model.user_pages / model.pages_per_block)
    if spare < LEAST_SPARE_BLOCKS:
        raise UserError(
            f"virtual drive '{name}': key 'over_provisioning' leaves {spare} spare blocks, garbage collection needs "
            f"{LEAST_SPARE_BLOCKS}; raise it or 'capacity', or lower 'pages_per_block'"
        )


def model_among(models: Mapping[str, Any], name: str, source: str) -> DriveModel:
    """Return a model by its name; raises UserError with `source`, the place of the name, if it is unknown."""
    if name not in models:
        raise UserError(
            f"{source}: there is no virtual drive '{name}' in {VIRTUAL_DRIVES}; it has: {', '.join(models)}"
        )
    return DriveModel.from_mapping(name, models[name])
