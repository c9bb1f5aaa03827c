"""Serve one virtual drive: a flash model behind a FUSE file, with each reply at the time that the model computes.

Started by `drivelab.virtual.manage` as `python -m drivelab.virtual.server NAME MOUNT_POINT LOG [KEPT]` with the model
as JSON on standard input; KEPT is a file of `drivelab.virtual.kept_state`. Standard library only, so that it starts
fast, stays small and needs no environment.
"""

from __future__ import annotations

import errno
import gc
import json
import mmap
import os
import select
import sys
import time
from dataclasses import asdict
from heapq import heappop, heappush
from pathlib import Path

from drivelab.virtual import fuse, kept_state
from drivelab.virtual.daemon import daemonize
from drivelab.virtual.faults import Fault, disturbance
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel

SPIN_NS = 100_000
"""Time before a deadline at which to stop sleeping and poll: longer than timer slack and wake-up of a normal process
(prctl(2)). Polling needs the normal scheduling class: a real-time class keeps fio and the kernel's loop worker off the
processor that they share with the server (6k instead of 31k IOPS at QD1 on two processors)."""
LINGER_NS = 100_000
"""Time after a request during which to poll for the next one without sleeping: doubles the rate at QD1."""
ADVANCE_S = 0.1
"""Interval at which an idle drive with a cache does its idle work, so that no request waits for all of it."""
PATH_US = 20.0
"""Time from the host's block layer to this process and back, subtracted from the model's time: at best 20 to 22 us on
two processors of a virtual machine, 60 us and more if the processors sleep or are shared. A constant, because a
measurement at each start would give drives that start at different times different speeds."""
XATTR = "user.drivelab."

Reply = tuple[bytes | memoryview, ...]


class _Ended(Exception):  # noqa: N818
    """The drive is saved in a file; from now on the server must not answer any request of the kernel."""


class Server:
    """Answers the kernel's requests on a /dev/fuse descriptor until the file is unmounted or the drive is saved."""

    def __init__(self, model: DriveModel, descriptor: int, file: Path | None = None) -> None:
        self._model = model
        self._size = model.capacity_bytes
        self._fd = descriptor
        self._memory = mmap.mmap(-1, self._size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._data = memoryview(self._memory)
        saved = None if file is None else kept_state.read(file, model, self._data, self._now_us())
        self._drive = saved or FlashDrive(model)
        self._buffer = memoryview(bytearray(fuse.BUFFER_BYTES))
        self._buffers = [self._buffer]
        self._pending: list[tuple[int, int, Reply]] = []
        """Heap of (time on the monotonic clock in ns, unique, reply)."""
        self._faults: list[Fault] = []
        self._held: list[bytes] = []
        """Requests that a `hang` fault holds back without a reply."""
        self._active_ns = 0

    def run(self) -> None:
        """Serve until the file is unmounted, the connection is aborted or the drive is saved."""
        try:
            while True:
                while self._receive():
                    self._answer_due()
                self._answer_due()
                self._wait()
        except _Ended:
            pass
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise

    def _wait(self) -> None:
        """Sleep until a request comes or the next deadline is near; near a deadline return at once, to poll."""
        now_ns = time.monotonic_ns()
        if self._pending:
            left_ns = self._pending[0][0] - now_ns
            if left_ns > SPIN_NS:
                select.select([self._fd], [], [], (left_ns - SPIN_NS) / 1e9)
        elif now_ns - self._active_ns > LINGER_NS:
            timeout_s = ADVANCE_S if self._model.slc_cache_bytes else None
            if not select.select([self._fd], [], [], timeout_s)[0]:
                self._drive.advance(self._now_us())
            self._active_ns = time.monotonic_ns()

    def _answer_due(self) -> None:
        pending = self._pending
        while pending and pending[0][0] <= time.monotonic_ns():
            self._send(heappop(pending)[2])

    def _send(self, reply: Reply) -> None:
        try:
            os.writev(self._fd, reply)
        except FileNotFoundError:
            return  # the request was aborted meanwhile

    def _receive(self) -> bool:
        """Receive and handle one request; False if none is waiting."""
        try:
            length = os.readv(self._fd, self._buffers)
        except BlockingIOError:
            return False
        except FileNotFoundError:
            return True  # aborted before it was read
        self._handle(self._buffer, length)
        self._active_ns = time.monotonic_ns()
        return True

    def _handle(self, request: memoryview, length: int) -> None:
        _, opcode, unique, *_ = fuse.IN_HEADER.unpack_from(request)
        if opcode == fuse.READ:
            _, offset, size = fuse.IO_IN.unpack_from(request, fuse.IN_HEADER.size)
            end = max(offset, min(offset + size, self._size))
            header = fuse.OUT_HEADER.pack(fuse.OUT_HEADER.size + end - offset, 0, unique)
            self._io(request, length, "read", unique, offset, end - offset, (header, self._data[offset:end]))
        elif opcode == fuse.WRITE:
            _, offset, size = fuse.IO_IN.unpack_from(request, fuse.IN_HEADER.size)
            self._io(request, length, "write", unique, offset, size, (fuse.WRITE_OUT.pack(24, 0, unique, size, 0),))
        elif opcode == fuse.FALLOCATE:
            self._trim(request, length, unique)
        elif opcode == fuse.FSYNC:
            self._io(request, length, "flush", unique, 0, 0, (fuse.answer(unique),))
        elif opcode in (fuse.GETXATTR, fuse.SETXATTR):
            self._send((self._attribute(opcode, unique, request[fuse.IN_HEADER.size : length]),))
        elif opcode not in fuse.WITHOUT_REPLY:
            self._send((fuse.file_answer(opcode, unique, request[fuse.IN_HEADER.size : length], self._size),))

    def _trim(self, request: memoryview, length: int, unique: int) -> None:
        _, offset, size, mode, _ = fuse.FALLOCATE_IN.unpack_from(request, fuse.IN_HEADER.size)
        if mode & (fuse.FALLOC_PUNCH_HOLE | fuse.FALLOC_ZERO_RANGE):
            self._io(request, length, "trim", unique, offset, size, (fuse.answer(unique),))
        else:
            self._send((fuse.refusal(unique, errno.EOPNOTSUPP),))

    def _io(
        self, request: memoryview, length: int, operation: str, unique: int, offset: int, size: int, reply: Reply
    ) -> None:
        """Perform an I/O in memory now, and reply when the model completes it."""
        if size == 0 and operation != "flush":  # a read beyond the end
            self._send(reply)
            return
        if offset + size > self._size:
            self._send((fuse.refusal(unique, errno.ENOSPC),))
            return
        fault, delay_us = disturbance(self._faults, operation, offset, size) if self._faults else (None, 0.0)
        if fault is not None and fault.kind == "hang":
            self._held.append(bytes(request[:length]))
            return
        if fault is not None:
            self._send((fuse.refusal(unique, fault.number),))
            return
        if operation == "write":
            start = fuse.IN_HEADER.size + fuse.IO_IN_BYTES
            self._data[offset : offset + size] = request[start : start + size]
        elif operation == "trim":
            self._zero(offset, size)
        done_us = self._drive.submit(self._now_us(), operation, offset, size) + delay_us
        done_ns = int(done_us * 1000)
        if done_ns > time.monotonic_ns():
            heappush(self._pending, (done_ns, unique, reply))
        else:
            self._send(reply)

    def _now_us(self) -> float:
        """Return the model's current time: when a request that arrives now left the host's block layer.

        The whole path is subtracted here, so that the reply reaches the host when the model completes the request.
        """
        return time.monotonic_ns() / 1000 - PATH_US

    def _zero(self, offset: int, size: int) -> None:
        """Zero a range: drop whole pages, which then read as zeros without memory (madvise(2)); write partial pages."""
        page = mmap.PAGESIZE
        first, last = -(-offset // page) * page, (offset + size) // page * page
        if first >= last:
            self._data[offset : offset + size] = bytes(size)
            return
        self._data[offset:first] = bytes(first - offset)
        self._data[last : offset + size] = bytes(offset + size - last)
        self._memory.madvise(mmap.MADV_DONTNEED, first, last - first)

    def _attribute(self, opcode: int, unique: int, body: memoryview) -> bytes:
        """Reply to GETXATTR and SETXATTR, which read counters and control the drive."""
        size, _ = fuse.XATTR_IN.unpack_from(body)
        name, _, value = bytes(body[fuse.XATTR_IN.size :]).partition(b"\0")
        if opcode == fuse.SETXATTR:
            number = self._set(name.decode(), value[:size])
            return fuse.refusal(unique, number) if number else fuse.answer(unique)
        content = self._get(name.decode())
        return fuse.refusal(unique, errno.ENODATA) if content is None else fuse.xattr_answer(unique, size, content)

    def _get(self, name: str) -> bytes | None:
        """Return the value of an extended attribute, or None if the name is unknown."""
        if name == XATTR + "counters":
            return json.dumps(self._drive.counters()).encode()
        if name == XATTR + "faults":
            return json.dumps([asdict(fault) for fault in self._faults]).encode()
        if name == XATTR + "held":
            return b"%d" % len(self._held)
        if name == XATTR + "hangs":
            return b"%d" % any([self._held, *(fault.kind == "hang" for fault in self._faults)])
        if name == XATTR + "release":
            return b"%d" % self._release()
        return None

    def _release(self) -> int:
        """Clear all faults and handle the held requests; return their number.

        Reading an attribute triggers this, because setting one needs the inode lock, which a hanging flush or trim
        holds.
        """
        held, self._held, self._faults = self._held, [], []
        for request in held:
            self._handle(memoryview(request), len(request))
        return len(held)

    def _set(self, name: str, value: bytes) -> int:
        """Execute a control attribute; return 0 or an errno."""
        control = name.removeprefix(XATTR)
        try:
            if control == "purge":
                self._drive.purge(self._now_us())
                self._zero(0, self._size)
            elif control == "reset":
                self._drive, self._faults = FlashDrive(self._model), []
                self._zero(0, self._size)
            elif control == "keep":
                kept_state.write(Path(os.fsdecode(value)), self._drive, self._data, self._now_us())
                raise _Ended
            elif control == "faults":
                self._faults = [Fault(**fault) for fault in json.loads(value)]
            else:
                return errno.EOPNOTSUPP
        except (ValueError, TypeError):
            return errno.EINVAL
        except OSError as error:
            return error.errno or errno.EIO
        return 0


def main() -> None:
    name, mount_point, log = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    model = DriveModel.from_mapping(name, json.load(sys.stdin))
    ready = daemonize(log)
    descriptor = fuse.mount(mount_point, f"drivelab:{name}")
    server = Server(model, descriptor, Path(sys.argv[4]) if sys.argv[4:] else None)
    gc.collect()
    gc.freeze()
    os.write(ready, b"%d\n" % os.getpid())
    os.close(ready)
    server.run()


if __name__ == "__main__":
    main()
