"""Make a tree of files to copy or read: log-normal sizes, random content.

The median of a few KiB and the long tail match file systems in use (Agrawal et al., "A Five-Year Study of File-System
Metadata", FAST 2007). The same seed gives the same tree.
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path

FILES_PER_FOLDER = 60
SPREAD = 1.9
"""Standard deviation of the logarithm of the size."""


def main() -> None:
    """Make the tree that the arguments describe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, required=True)
    parser.add_argument("--median-bytes", type=int, default=6000)
    parser.add_argument("--largest-bytes", type=int, default=8 << 20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    for index in range(options.files):
        folder = options.folder / f"d{index // (FILES_PER_FOLDER**2):02}" / f"d{index // FILES_PER_FOLDER:04}"
        folder.mkdir(parents=True, exist_ok=True)
        size = min(int(dice.lognormvariate(math.log(options.median_bytes), SPREAD)), options.largest_bytes)
        (folder / f"f{index:06}").write_bytes(dice.randbytes(size))


if __name__ == "__main__":
    main()
