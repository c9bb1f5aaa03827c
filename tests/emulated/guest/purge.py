"""Purge a drive with drivelab; print the result as JSON, or the error message as `error`.

Arguments: path, serial, method.
"""

from __future__ import annotations

import json
import sys

from sheet import row

from drivelab.core.errors import UserError
from drivelab.drives.guard import held
from drivelab.drives.purge import purge

device, serial, method = sys.argv[1:]
try:
    with held(row(device, serial), device) as (drive, _):
        print(json.dumps(purge(drive, method)))
except UserError as reason:
    print(json.dumps({"error": str(reason)}))
