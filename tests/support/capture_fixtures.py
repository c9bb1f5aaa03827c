"""Fixtures for tests that capture with this machine's tracer: `pytest_plugins = ("capture_fixtures",)`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from loops import image, looped

from drivelab.core.private import run_directory
from drivelab.trace.capturing import capture, tracer


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Callable[[int, int], str]]:
    """Return a function that makes a loop device (MiB, bytes per logical block); detach all after the test."""
    numbers = count()
    with ExitStack() as attached:

        def make(size_mib: int, block_bytes: int) -> str:
            file = image(tmp_path / f"image{next(numbers)}", size_mib)
            device = attached.enter_context(looped(file, f"--sector-size={block_bytes}", "--direct-io=on"))
            attached.callback(subprocess.run, ["partx", "--delete", device], check=False, capture_output=True)
            return device

        yield make


@pytest.fixture
def device(attach: Callable[[int, int], str]) -> str:
    """A loop device of 64 MiB with logical blocks of 4096 bytes."""
    return attach(64, 4096)


@pytest.fixture(scope="session")
def tracefs() -> Iterator[None]:
    """Mount tracefs; unmount it at the end if it was not mounted before."""
    if (reason := capture.possible()) is not None:
        pytest.skip(f"no capture here: {reason}")
    was_mounted = tracer.TRACING.is_mount()
    if not was_mounted:
        subprocess.run(["mount", "-t", "tracefs", "tracefs", tracer.TRACING], check=True)
    yield
    if not was_mounted:
        subprocess.run(["umount", tracer.TRACING], check=True)


@pytest.fixture
def tracer_untouched(tracefs: None) -> Iterator[None]:
    """Check that the test leaves the tracer unchanged and nothing mounted."""
    before = tracer.state()
    yield
    assert tracer.state() == before
    assert not list(run_directory().glob("*.json"))
    assert f"{run_directory()}/mount." not in Path("/proc/mounts").read_text()
