"""The program blktrace, played by a script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drivelab.trace.blktrace import Blktrace, RefusedError

CPUS = os.cpu_count() or 1
WORKS = f"""#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -D) folder=$2;; -o) name=$2;; esac; shift; done
finish() {{
    cat "$folder/../debug/sda/msg" >> "$folder/$name.blktrace.0"
    echo "  Total: 9 events (dropped 4), 1 KiB data"
    exit 0
}}
trap finish INT
for cpu in $(seq 0 {CPUS - 1}); do : > "$folder/$name.blktrace.$cpu"; done
while :; do sleep 0.01; done
"""
REFUSES = "#!/bin/sh\necho 'Thread 1 failed open trace1: 1/Operation not permitted' >&2\nexit 1\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "debug" / "sda").mkdir(parents=True)
    return tmp_path / "out" / "trace"


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "blktrace"
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_drops_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    install(tmp_path, monkeypatch, WORKS)
    tracer = Blktrace("/dev/sda", out, tmp_path / "debug")
    tracer.start()
    assert tracer.stop() == {"dropped_events": 4, "start": 0}


def test_a_trace_without_the_mark_began_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    install(tmp_path, monkeypatch, WORKS.replace('cat "$folder/../debug/sda/msg" >>', "echo >>"))
    tracer = Blktrace("/dev/sda", out, tmp_path / "debug")
    tracer.start()
    assert tracer.stop()["start"] == 1


def test_the_kernels_refusal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    install(tmp_path, monkeypatch, REFUSES)
    with pytest.raises(RefusedError, match="Operation not permitted"):
        Blktrace("/dev/sda", out, tmp_path / "debug").start()


def test_a_missing_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="blktrace is not installed"):
        Blktrace("/dev/sda", out).start()
