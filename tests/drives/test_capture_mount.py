"""Captures without a mounted tracefs, in the test's own mount namespace: drivelab mounts and unmounts tracefs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from captures import dd
from waits import wait_until

from drivelab.core.private import run_directory
from drivelab.plan.places import ROOT
from drivelab.trace.capturing import capture, tracer

pytestmark = [
    pytest.mark.device,
    pytest.mark.single,
    pytest.mark.skipif(capture.possible() is not None, reason=f"no capture here: {capture.possible()}"),
]
UNMOUNTED = f"while mountpoint -q {tracer.TRACING}; do umount {tracer.TRACING} || exit; done; "
MOUNTED = f"mountpoint -q {tracer.TRACING}"
CAPTURE = "import sys; from drivelab.cli.main import main; sys.exit(main(['capture', *sys.argv[1:]]))"


def in_namespace(script: str, *arguments: str) -> subprocess.Popen[str]:
    """Run a shell script in a mount namespace without tracefs; `$@` are the arguments."""
    command = ["unshare", "--mount", "sh", "-c", UNMOUNTED + script, "sh", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_tracefs_is_mounted_for_a_capture_only(device: str, tmp_path: Path) -> None:
    script = f'"$@"; status=$?; {MOUNTED} && echo still mounted; exit $status'
    process = in_namespace(script, sys.executable, "-c", CAPTURE, device, "--backend", "ftrace", "-o",
                           str(tmp_path / "raw"), "--", *dd(device))  # fmt: skip
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "still mounted" not in output
    assert not list(run_directory().glob("*.json"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_tracefs_is_unmounted_after_a_signal(device: str, tmp_path: Path, number: signal.Signals) -> None:
    begun, ended, pid = tmp_path / "begun", tmp_path / "ended", tmp_path / "pid"
    traced = ["sh", "-c", f"while ! test -s {pid}; do sleep 0.01; done; {MOUNTED} && touch {begun}; exec sleep 1000"]
    script = (
        f'"$@" & echo $! >{pid}; wait $!; touch {ended}; '
        f"while find {run_directory()} -name '*.json' | grep -q .; do sleep 0.1; done; "
        f"{MOUNTED} && echo still mounted; exit 0"
    )
    process = in_namespace(script, sys.executable, "-c", CAPTURE, device, "--backend", "ftrace", "-o",
                           str(tmp_path / "raw"), "--", *traced)  # fmt: skip
    try:
        wait_until(lambda: begun.exists() or ended.exists() or process.poll() is not None)
        assert begun.exists(), "the capture did not begin"
        os.kill(int(pid.read_text()), number)
        output, _ = process.communicate(timeout=120)
        assert "still mounted" not in output
    finally:
        if not ended.exists():
            os.kill(int(pid.read_text()), signal.SIGKILL)
        process.kill()
        process.wait()
