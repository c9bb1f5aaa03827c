"""CloudPhysics vscsi, versions 1 and 2: binary SCSI commands of virtual disks.

Source: FAST 2015, libCacheSim. The time is in us since an unknown moment and is used as the time of the request.
Version 2 adds the response time in us; completion is the sum. The length is in bytes, the address in sectors of 512
bytes. A file is one virtual disk, so there is no column for it. Known commands are reads, writes (also with
verification) and cache synchronisations; any other command makes a record malformed. Records are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.formats.common.source import Source
from drivelab.trace.formats.common.trace_format import LARGEST, LONGEST_NS, MOST_TICKS, Format, Tally, rows
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.records import SECTOR_BYTES

TICK_NS = 1000
V1 = np.dtype(
    [("sn", "<u4"), ("len", "<u4"), ("nSG", "<u4"), ("cmd", "<u2"), ("ver", "<u2"), ("lbn", "<u8"), ("ts", "<u8")]
)
V2 = np.dtype(
    [
        ("cmd", "<u2"), ("ver", "<u2"), ("sn", "<u4"), ("len", "<u4"), ("nSG", "<u4"), ("lbn", "<u8"), ("ts", "<u8"),
        ("rt", "<u8"),
    ]
)  # fmt: skip
VERSIONS = {1: V1, 2: V2}
COMMANDS = {
    **dict.fromkeys((0x08, 0x28, 0xA8, 0x88), "read"),
    **dict.fromkeys((0x0A, 0x2A, 0xAA, 0x8A, 0x2E, 0xAE, 0x8E), "write"),
    **dict.fromkeys((0x35, 0x91), "flush"),
}
"""SCSI operation codes (SBC-4, 6, 10, 12 and 16 bytes): READ, WRITE, WRITE AND VERIFY, SYNCHRONIZE CACHE."""
_UNKNOWN = -1
_CODES = np.full(1 << 16, _UNKNOWN, np.int8)
for _command, _operation in COMMANDS.items():
    _CODES[_command] = OPERATIONS.index(_operation)


def _version(head: bytes) -> int | None:
    """Return the version: the high byte of `ver`, equal in all of the first records."""
    for number, dtype in sorted(VERSIONS.items(), reverse=True):
        records = np.frombuffer(head, dtype, count=min(len(head) // dtype.itemsize, 64))
        if len(records) and (records["ver"] >> 8 == number).all():
            return number
    return None


def _looks_like(head: bytes) -> bool:
    version = _version(head)
    first = None if version is None else np.frombuffer(head, VERSIONS[version], count=1)
    return first is not None and bool(_CODES[first["cmd"][0]] != _UNKNOWN)


def _read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    tally.unit = "record"
    version = _version(source.head)
    if version is None:
        raise UserError(f"{source.path}: is not vscsi version 1 or 2; name its format with --format")
    dtype = VERSIONS[version]
    rest, number = b"", 1
    for piece in source.pieces():
        data = rest + piece
        whole = len(data) // dtype.itemsize
        rest = data[whole * dtype.itemsize :]
        yield _requests(np.frombuffer(data, dtype, count=whole), version, number, tally)
        number += whole
    if rest:
        tally.add(number, f"is cut off after {len(rest)} of {dtype.itemsize} bytes")


def _requests(records: npt.NDArray[np.void], version: int, number: int, tally: Tally) -> pa.RecordBatch:
    reasons = _faults(records, version)
    faulty = np.logical_or.reduce(list(reasons.values()))
    for place in np.flatnonzero(faulty).tolist():
        reason = next(text for text, mask in reasons.items() if mask[place])
        tally.add(number + place, reason)
    good = records[~faulty]
    return rows(
        line=number + np.flatnonzero(~faulty),
        time=good["ts"].astype(np.int64),
        operation=_CODES[good["cmd"]],
        offset_bytes=good["lbn"].astype(np.int64) * SECTOR_BYTES,
        length_bytes=good["len"].astype(np.int64),
        **({"response_ns": good["rt"].astype(np.int64) * TICK_NS} if version == 2 else {}),
    )


def _faults(records: npt.NDArray[np.void], version: int) -> dict[str, npt.NDArray[np.bool_]]:
    """Return masks of malformed records, by reason."""
    faults = {
        f"is not of version {version}": records["ver"] >> 8 != version,
        "its SCSI command is not a read, write or cache synchronisation": _CODES[records["cmd"]] == _UNKNOWN,
        "its address is beyond 2^63 bytes": records["lbn"] > (LARGEST - (1 << 32)) // SECTOR_BYTES,
        "its time is beyond 2^62 us": records["ts"] > MOST_TICKS,
    }
    if version == 2:
        faults["its response time is longer than 146 years"] = records["rt"] > LONGEST_NS // TICK_NS
    return faults


FORMATS = (
    Format(
        name="vscsi",
        title="CloudPhysics vscsi traces, version 1 and 2, binary",
        columns="v1: sn,len,nSG,cmd,ver,lbn,ts; v2: cmd,ver,sn,len,nSG,lbn,ts,rt",
        units="bytes, sectors of 512 bytes, us, SCSI operation code",
        looks_like=_looks_like,
        read=_read,
        time_resolution_ns=TICK_NS,
        tick_ns=TICK_NS,
    ),
)
