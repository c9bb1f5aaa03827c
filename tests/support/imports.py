"""What a new process has imported."""

from __future__ import annotations

import subprocess
import sys


def modules_after(*statements: str) -> set[str]:
    """Return the modules that a new Python process has imported after these statements, which print nothing."""
    code = "; ".join((*statements, "import sys; print(*sys.modules)"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
