"""Write to a drive as a stage does, if it is approved and there is consent; print its kernel name, or the refusal.

Arguments: path, serial, and `--yes` to give the consent.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sheet import row

from drivelab.core.errors import UserError
from drivelab.drives import guard
from drivelab.run import consent

DEVICE, SERIAL, *OPTIONS = sys.argv[1:]
RESULTS = Path("/tmp/cloned")
STUDY: Any = SimpleNamespace(results=RESULTS, path=Path("none"), name="study", consent=(SERIAL,))

try:
    listed = row(DEVICE, SERIAL)
    agreed = consent.Drive(listed.drive, SERIAL, guard.approve(listed, DEVICE).identity)
    consent.require(STUDY, [agreed], yes="--yes" in OPTIONS)
    with guard.held(listed, DEVICE) as (held, _):
        consent.check(RESULTS, listed.drive, held.identity)
        with Path(held.path).open("r+b", buffering=0) as file:
            file.write(b"drivelab" * 8192)
        print(held.name)
except UserError as reason:
    print(f"refused: {reason}")
