"""Start processes that can write to a file or a device, each in a different way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPEN = "import os, sys; os.open(sys.argv[1], os.O_RDWR); print(flush=True); sys.stdin.read()"
_MAPPED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
descriptor = os.open(sys.argv[1], os.O_RDWR)
assert libc.mmap(None, ctypes.c_size_t(4096), 3, 1, descriptor, ctypes.c_long(0)) != ctypes.c_void_p(-1).value
os.close(descriptor)
print(flush=True)
sys.stdin.read()
"""
_LEADERLESS = """
import ctypes, os, sys, threading
def write():
    begun.wait()
    os.open(sys.argv[1], os.O_RDWR)
    print(flush=True)
    sys.stdin.read()
    os._exit(0)
begun = threading.Event()
threading.Thread(target=write).start()
begun.set()
ctypes.CDLL(None).pthread_exit(None)
"""


_OWN_TABLE = """
import ctypes, os, sys, threading
def write():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    os.open(sys.argv[1], os.O_RDWR)
    print(flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=write).start()
"""


@contextmanager
def writer(path: Path) -> Iterator[None]:
    """Run a process that has the file open for writing."""
    with _process(_OPEN, path):
        yield


@contextmanager
def mapping(path: Path) -> Iterator[None]:
    """Run a process that has the file mapped, shared and writable, with its descriptor closed."""
    with _process(_MAPPED, path):
        yield


@contextmanager
def leaderless_writer(path: Path) -> Iterator[None]:
    """Run a process whose first thread has ended and whose second has the file open for writing."""
    with _process(_LEADERLESS, path):
        yield


@contextmanager
def own_table_writer(path: Path) -> Iterator[None]:
    """Run a process in which a thread with a separate file table has the file open for writing."""
    with _process(_OWN_TABLE, path):
        yield


@contextmanager
def _process(code: str, path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        try:
            yield
        finally:
            process.stdin.close()
