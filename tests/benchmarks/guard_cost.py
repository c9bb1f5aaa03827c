"""Measure how long the guard takes to check a drive beside many processes.

    python tests/benchmarks/guard_cost.py [DECISIONS]

Run as root. Uses its own virtual drives in real time, in its own run directory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from drivelab.drives import guard
from drivelab.plan.drive_sheet import SheetRow
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

BYSTANDERS = 100
FILES_EACH = 50


def main(decisions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DRIVELAB_RUN_DIR"] = folder
        mapping = {"serial": "GUARD-1", "capacity": "64MiB", "over_provisioning": "28%"}
        device = manage.start("guard", DriveModel.from_mapping("guard", mapping)).device
        row = SheetRow("guard", "virtual:guard", "GUARD-1", True, "", "benchmark")
        files = f"files = [open('/etc/passwd') for _ in range({FILES_EACH})]"
        opener = f"import time; {files}; print(flush=True); time.sleep(600)"
        bystanders = [
            subprocess.Popen([sys.executable, "-S", "-c", opener], stdout=subprocess.PIPE) for _ in range(BYSTANDERS)
        ]
        try:
            for bystander in bystanders:
                assert bystander.stdout is not None
                bystander.stdout.readline()
            times_ms = []
            for _ in range(decisions):
                began_s = time.perf_counter()
                with guard.held(row, device):
                    times_ms.append(1000 * (time.perf_counter() - began_s))
        finally:
            for bystander in bystanders:
                bystander.kill()
                bystander.wait()
            manage.stop(force=True)
    print(
        f"{decisions} decisions beside {BYSTANDERS} processes with {FILES_EACH} files each: "
        f"median {statistics.median(times_ms):.1f} ms, largest {max(times_ms):.1f} ms"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
