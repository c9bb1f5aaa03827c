"""Read the files of a tree in random order with several threads, as at boot.

Each thread has its own files in its own order, so the same seed reads the same data. The interleaving of the threads
varies.
"""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path

THREADS = 4
HEAD_BYTES = 16384
WHOLE_SHARE = 0.7
"""Share of files read whole. Only the head of the others is read, as programs do with libraries and fonts."""


def main(folder: Path) -> None:
    """Read the files in `folder`."""
    dice = random.Random(20240502)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    dice.shuffle(files)
    chosen = [(path, None if dice.random() < WHOLE_SHARE else HEAD_BYTES) for path in files]
    threads = [threading.Thread(target=_read, args=(chosen[index::THREADS],)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _read(chosen: list[tuple[Path, int | None]]) -> None:
    for path, size in chosen:
        with path.open("rb", buffering=0) as file:
            file.read(-1 if size is None else size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
