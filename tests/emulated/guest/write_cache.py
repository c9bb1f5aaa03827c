"""Switch a drive's write cache off, restore it with the returned undo, and print the states as JSON.

Arguments: path, serial.
"""

from __future__ import annotations

import json
import sys

from sheet import approved

from drivelab.drives import write_cache
from drivelab.drives.undo import perform

device = approved(*sys.argv[1:])
states: dict[str, str | None] = {"before": write_cache.state(device.name)}
undo = write_cache.change(device, on=False)
states["changed"] = write_cache.state(device.name)
states["undo"] = perform(undo) if undo is not None else "there is no undo"
states["after"] = write_cache.state(device.name)
print(json.dumps(states))
