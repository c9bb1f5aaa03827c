"""Purge a drive by the project's code; prints what it returns as JSON, or its sentence as `error`.

Arguments: path, serial, method.
"""

from __future__ import annotations

import json
import sys

from sheet import approved

from drivelab.drives.purge import purge
from drivelab.errors import UserError

device, serial, method = sys.argv[1:]
try:
    print(json.dumps(purge(approved(device, serial), method)))
except UserError as reason:
    print(json.dumps({"error": str(reason)}))
