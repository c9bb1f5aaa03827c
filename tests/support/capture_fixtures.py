"""Fixtures for tests that capture with this machine's tracer: `pytest_plugins = ("capture_fixtures",)`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drivelab.core.private import run_directory
from drivelab.trace.capturing import capture, tracer
from drivelab.virtual import fuse


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Callable[[int, int], str]]:
    """Return a function that makes a loop device (MiB, bytes per logical block); detach all after the test."""
    attached: list[tuple[str, Path]] = []

    def make(size_mib: int, block_bytes: int) -> str:
        image = tmp_path / f"image{len(attached)}"
        with image.open("wb") as file:
            file.truncate(size_mib << 20)
        command = ["losetup", "--find", "--show", "--sector-size", str(block_bytes), "--direct-io=on", str(image)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no loop device: {done.stderr.strip().rpartition(': ')[2]}")
        attached.append((done.stdout.strip(), image))
        return attached[-1][0]

    yield make
    for device, _ in attached:
        subprocess.run(["partx", "--delete", device], check=False, capture_output=True)
    # Another test may have a device open, or have it already for another file.
    left = [device for device, image in attached if not fuse.detach_loop(device, image, 60)]
    assert not left


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
