"""Print the guard's verdict on one drive: the kernel name, or the refusal. Arguments: path, serial."""

from __future__ import annotations

import sys

from sheet import approved

from drivelab.core.errors import UserError

try:
    print(approved(*sys.argv[1:]).name)
except UserError as reason:
    print(f"refused: {reason}")
