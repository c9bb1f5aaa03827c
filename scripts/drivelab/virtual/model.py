"""The parameters of a virtual drive: geometry, times, caches and identity, checked once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
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
_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_FIRMWARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,7}")


@dataclass(frozen=True)
class DriveModel:
    """All parameters that the behaviour of a virtual drive depends on."""

    serial: str
    """Serial number, as in the drive sheet."""
    capacity_bytes: int
    """User capacity, a multiple of 4 KiB."""
    over_provisioning: float
    """Flash beyond the capacity, as a fraction of the capacity; includes open and free blocks."""
    pages_per_block: int = 64
    """Pages that are erased together; a block is striped page by page over all dies."""
    dies: int = 4
    """Units that read, program and erase in parallel."""
    read_us: float = 100.0
    """Time for a die to read a page."""
    program_us: float = 680.0
    """Time for a die to program a page."""
    erase_us: float = 1000.0
    """Time for a die to erase its part of a block."""
    copy_us: float = 230.0
    """Time for a die to move a page within the drive. Less than a read plus a program, because a controller bypasses
    the bus and programs several planes together, which it cannot do with scattered host writes."""
    command_us: float = 85.0
    """Controller time for each command, one after another: limits IOPS."""
    transfer_us: float = 20.0
    """Host bus time for a page: limits bandwidth."""
    slc_cache_bytes: int = 0
    """Size of the SLC cache, in addition to the over-provisioning; an idle drive empties it."""
    slc_program_us: float = 150.0
    """Time for a die to program a page of the SLC cache."""
    write_buffer_bytes: int = 64 * PAGE_BYTES
    """Data that may be acknowledged before it is programmed."""
    idle_after_us: float = 300_000.0
    """Time without a request after which the drive starts its idle work."""
    enabled: bool = True
    """If False, nothing takes any time, so a measurement shows the limit of the code that serves the drive."""
    seed: int = 1
    """Seed of the model's random draws."""
    logical_block_bytes: int = PAGE_BYTES
    """Unit of addresses, a page or a sector of 512 bytes. A write that does not cover whole pages first reads the rest
    of its pages."""
    throttle: Throttle | None = None
    """The drive warms up, and slows down while it is too hot."""
    housekeeping: Housekeeping | None = None
    """The drive periodically does its own housekeeping."""
    disturb: Disturbance | None = None
    """Neighbours on the host periodically steal CPU time."""
    variation: Variation | None = None
    """The times of the flash differ between specimens, purges, moments and pages."""
    firmware: str = FIRMWARE
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
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        mapping = {KEYS[name].key: KEYS[name].write(value) for name, value in values.items() if value is not None}
        if self.logical_block_bytes == PAGE_BYTES:
            del mapping["logical_block"]
        if self.firmware == FIRMWARE:
            del mapping["firmware"]
        return mapping

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, Any]) -> DriveModel:
        """Read the model from one entry of the configuration; raises UserError that names the wrong key."""
        by_key = {entry.key: field for field, entry in KEYS.items()}
        for key in mapping:
            if key not in by_key:
                raise UserError(f"virtual drive '{name}': unknown key '{key}'; use {', '.join(by_key)}")
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
            f"virtual drive '{name}': key 'pages_per_block' is {model.pages_per_block}, which is not a multiple of the "
            f"{model.dies} dies; make it a multiple of 'dies'"
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
    "variation": _Key("variation", Variation.read, Variation.write),
    "firmware": _Key("firmware", _firmware),
}


def model_among(models: Mapping[str, Any], name: str, source: str) -> DriveModel:
    """Return a model by its name; raises UserError with `source`, the place of the name, if it is unknown."""
    if name not in models:
        raise UserError(
            f"{source}: there is no virtual drive '{name}' in {VIRTUAL_DRIVES}; it has: {', '.join(models)}"
        )
    return DriveModel.from_mapping(name, models[name])
