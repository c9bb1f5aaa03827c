"""Print what this machine gives at three loads, as JSON: `entries` and `missing` of drivelab.run.host_ceiling.

Arguments: fio's engine, kernel names of devices under test.
"""

from __future__ import annotations

import json
import sys

from drivelab.plan.cell import Cell
from drivelab.run import host_ceiling

host_ceiling.UNDISTURBED = 0.0  # other programs run beside the emulation
LOADS = [Cell("random", share, 4096, threads, 16, 1.0) for share, threads in ((100, 1), (0, 1), (100, 2))]
entries, missing = host_ceiling.measured_now(LOADS, sys.argv[1], besides=sys.argv[2:])
print(json.dumps({"entries": entries, "missing": missing}))
