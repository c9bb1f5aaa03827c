"""Purge a drive, with a pause between the guard's check of its identity and the check of its users.

Arguments: those of purge.py. Creates /run/looked when the guard has read the identity, and continues when
/run/exchanged exists.
"""

from __future__ import annotations

import runpy
import time
from pathlib import Path
from typing import Any

from drivelab.drives import guard

original_holder = guard.holder


def wait_and_check(*arguments: Any, **options: Any) -> str | None:
    Path("/run/looked").touch()
    while not Path("/run/exchanged").exists():
        time.sleep(0.05)
    return original_holder(*arguments, **options)


guard.holder = wait_and_check
runpy.run_path("/guest/purge.py", run_name="__main__")
