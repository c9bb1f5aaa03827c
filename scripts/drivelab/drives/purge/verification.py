"""Verify a purge on the drive itself; exit status and completion codes do not count."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import erasing, sysfs, tools
from drivelab.drives.approved import HeldDevice
from drivelab.drives.composed import is_composed
from drivelab.drives.identifiers import actual_serial, identifier
from drivelab.drives.purge import by_host, canaries, nvme_sanitize, scsi_erase
from drivelab.drives.purge import canaries as raw
from drivelab.drives.purge.canaries import Geometry, Raw, Sample, declared_byte
from drivelab.drives.purge.method import Method, Promise, Say, SpoiltError

_GRANULE_LIMIT_BYTES = 64 << 20
"""Limit of the discard unit that the write test uses; a drive with a larger unit gets one canary's length."""


def purge_verified(method: Method, device: HeldDevice, say: Say) -> dict[str, Any]:
    """Run one method, prove that it worked, and return the facts to record.

    Raises UserError with drive, method, reason and remedy; SpoiltError if the purge altered the drive.
    """
    started_s = time.monotonic()
    _finish_running(device, say)
    geometry, serial = _geometry(device), _identity(device)
    say(f"{method.title}: writing canaries", None)
    planted = _plant(method, device, geometry)
    evidence = method.carry_out(device, say)
    say(f"{method.title}: verifying", None)
    _same_drive(method, device, geometry, serial)
    try:
        raw.drop_page_cache(device.path)
        content = _judge_content(method, device, geometry, planted)
        _forget_partitions(method, device)
        _judge_writable(device, geometry)
    except OSError as error:
        raise _failed(method, device, f"the drive fails after the purge: {error}", "check dmesg") from None
    return {
        "verified": f"{len(planted)} canaries are gone, {content}, a block was written and read back, "
        "capacity and logical block are unchanged",
        "content": content,
        "leaves": str(method.leaves),
        "duration_s": round(time.monotonic() - started_s, 3),
        "evidence": evidence,
    }


def _finish_running(device: HeldDevice, say: Say) -> None:
    if is_composed(device.kind):
        return
    if device.name.startswith("nvme"):
        nvme_sanitize.finish_running(device, say)
    elif device.name.startswith("sd"):
        scsi_erase.finish_running(device, say)


def _identity(device: HeldDevice) -> str | None:
    if is_composed(device.kind):
        return identifier(device.kind, device.name)
    return actual_serial(device.device, device.name)


def _geometry(device: HeldDevice) -> Geometry:
    return Geometry(sysfs.capacity_bytes(device.name), sysfs.logical_block_bytes(device.name))


def _plant(method: Method, device: HeldDevice, geometry: Geometry) -> dict[int, bytes]:
    try:
        raw.drop_page_cache(device.path)
        return canaries.write(device.path, geometry)
    except OSError as error:
        raise UserError(
            f"{device.device} cannot be written to before the purge ({error}), so drivelab could not prove a purge; "
            "check whether it is write-protected, locked by a password, or in the failure mode of a sanitize"
        ) from None


def _same_drive(method: Method, device: HeldDevice, before: Geometry, serial: str | None) -> None:
    after = _geometry(device)
    if after != before:
        raise SpoiltError(
            f"{device.device} has another size after {method.name}: {after.capacity_bytes} bytes in blocks of "
            f"{after.logical_block_bytes} instead of {before.capacity_bytes} in blocks of {before.logical_block_bytes};"
            " check dmesg, and restore the old format"
        )
    if _identity(device) != serial:
        raise SpoiltError(
            f"{device.device} is another drive after {method.name}; run drivelab drives to see what is attached"
        )


def _judge_content(method: Method, device: HeldDevice, geometry: Geometry, planted: dict[int, bytes]) -> str:
    """Return what the drive reads as, in words; raises UserError if it keeps data or breaks the method's promise."""
    offsets = sorted({*planted, *canaries.places(geometry)})
    lenient = method.promises is Promise.NOTHING
    with raw.opened(device.path) as drive:
        where_planted = canaries.read(drive, planted, geometry.chunk_bytes, errors=lenient)
        kept = canaries.survivors(planted, where_planted, geometry.logical_block_bytes)
        if kept:
            raise _failed(
                method, device, f"{len(kept)} of {len(planted)} canaries still read back, the first at byte {kept[0]}",
                "use another method, or set purge: none in the study, which labels its results as not purged",
            )  # fmt: skip
        first = canaries.read(drive, offsets, geometry.chunk_bytes, errors=lenient)
        if lenient:
            return f"{len(offsets)} places hold no known data"
        return _judge_promise(method, device, first, drive, offsets, geometry)


def _judge_promise(
    method: Method, device: HeldDevice, first: Sample, drive: Raw, offsets: list[int], geometry: Geometry
) -> str:
    promised = 0x00 if method.promises is Promise.ZEROS else declared_byte(device)
    actual = canaries.common_byte(first.contents)
    if promised is not None and actual != promised:
        bad = next(at for at, data in zip(offsets, first.contents, strict=True) if data and set(data) != {promised})
        raise _failed(
            method, device, f"the block at byte {bad} should read as {promised:#04x}, but does not",
            "use another method",
        )  # fmt: skip
    if canaries.read(drive, offsets, geometry.chunk_bytes) != first:
        raise _failed(method, device, "two reads of the same places differ", "use another method")
    if actual is None:
        return f"{len(offsets)} places read the same twice"
    return f"{len(offsets)} places read as {'zeros' if actual == 0 else f'{actual:#04x}'}"


def _forget_partitions(method: Method, device: HeldDevice) -> None:
    """Remove the kernel's partitions of the erased table, because they could still be mounted.

    The kernel does not reread the table while a drive is held with O_EXCL, so each remaining partition is deleted.
    """
    raw.reread_partition_table(device.path)
    for number in _partitions(device.name):
        tools.run("partx", "--delete", "--nr", number, device.path)
    if remaining := _partitions(device.name):
        raise _failed(
            method, device, f"the kernel still has its partition {remaining[0]}, although the table is gone",
            "check what uses the partition, and run the command again",
        )  # fmt: skip


def _partitions(name: str) -> list[str]:
    files = sorted(sysfs.block_dir(name).glob("*/partition"))
    return [number for file in files if (number := sysfs.read_text(file)) is not None]


def _judge_writable(device: HeldDevice, geometry: Geometry) -> None:
    """Write a block, read it back and restore it; raises OSError if that fails."""
    length = geometry.chunk_bytes
    unit = _discard_unit(device, geometry)
    offset = random.SystemRandom().randrange(geometry.capacity_bytes // unit) * unit
    data = os.urandom(length)
    with raw.opened(device.path, write=True) as drive:
        before = _previous_content(drive, offset, length)
        drive.write(offset, data)
        drive.sync()
        if drive.read(offset, length) != data:
            raise OSError(f"the data written at byte {offset} does not read back")
        if by_host.discards(device.name):
            erasing.run(device.name, "blkdiscard", "--force", f"--offset={offset}", f"--length={unit}", device.path)
        if before is not None and drive.read(offset, length) != before:
            drive.write(offset, before)
            drive.sync()


def _previous_content(drive: Raw, offset: int, length: int) -> bytes | None:
    with suppress(OSError):
        return drive.read(offset, length)
    return None


def _discard_unit(device: HeldDevice, geometry: Geometry) -> int:
    """Return the drive's discard unit in bytes, a multiple of a canary's length, else the canary's length."""
    text = sysfs.read_text(sysfs.whole_dir(device.name) / "queue/discard_granularity") or "0"
    granularity, chunk = int(text), geometry.chunk_bytes
    if granularity % chunk == 0 and 0 < granularity <= min(_GRANULE_LIMIT_BYTES, geometry.capacity_bytes):
        return granularity
    return chunk


def _failed(method: Method, device: HeldDevice, reason: str, remedy: str) -> UserError:
    return UserError(f"{device.device} is not purged by {method.name} ({method.title}): {reason}; {remedy}")
