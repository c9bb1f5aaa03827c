"""`python -m drivelab.native`: build the compiled part."""

import sys

from drivelab.core.errors import UserError
from drivelab.native import build

try:
    print(build())
except UserError as error:
    sys.exit(f"drivelab: {error}")
