"""Calls in a thread, which write to what the caller closes."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, time
from drivelab.core.behind import Behind
from drivelab.core.termination import end_in_order

def write(number):
    time.sleep(0.2)  # the main thread waits by then
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.3)
    print("written", number, flush=True)

end_in_order()
try:
    with Behind() as behind:
        behind.do(write, 1)
except KeyboardInterrupt:
    print("closed", flush=True)
"""


def test_a_signal_at_the_end_waits_for_the_last_call() -> None:
    """A Parquet writer that is closed during a call crashes Python, or says that the file cannot be written."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "written 1\nclosed\n"
