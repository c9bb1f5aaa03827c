"""Purge a drive, and wait for a while between the guard's first look at its identity and at its users.

Arguments: those of purge.py. Makes /run/looked when the guard has read the identity, and goes on when /run/exchanged
is there.
"""

from __future__ import annotations

import runpy
import time
from pathlib import Path
from typing import Any

from drivelab.drives import guard

ask = guard.holder


def wait_and_ask(*arguments: Any, **options: Any) -> str | None:
    Path("/run/looked").touch()
    while not Path("/run/exchanged").exists():
        time.sleep(0.05)
    return ask(*arguments, **options)


guard.holder = wait_and_ask
runpy.run_path("/guest/purge.py", run_name="__main__")
