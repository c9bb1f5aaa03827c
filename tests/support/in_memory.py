"""Temporary folders in memory, for tests that make and remove thousands of small files, or synchronise each of them.

A disk that discards what is removed takes milliseconds for each. A conftest.py chooses this by
`from in_memory import tmp_path`; tests that open a file with O_DIRECT cannot, because old kernels' tmpfs refuses it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
LEAST_BYTES = 1 << 30
"""Free memory without which the folders are on the disk: a container may have 64 MiB."""


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder in memory if there is enough, else on the disk; remove it at the end."""
    is_large = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= LEAST_BYTES
    with tempfile.TemporaryDirectory(
        prefix="drivelab-test.", dir=MEMORY if is_large else None, ignore_cleanup_errors=True
    ) as made:
        yield Path(made)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with folder() as made:
        yield made
