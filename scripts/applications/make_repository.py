"""Make a git repository of text files with many commits.

Names, dates and contents come from a seed, so commit hashes are the same everywhere. The branches `old` and `new` are
the first and the last commit.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FILES = 2500
COMMITS = 60
CHANGED = 60
"""Files changed per commit."""
FOLDERS = 80
EPOCH_S = 1_600_000_000


def main(folder: Path) -> None:
    """Make the repository in `folder` without checking it out."""
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    settings = {"gc.auto": "0", "core.fsync": "none", "maintenance.auto": "false", "advice.detachedHead": "false"}
    for name, value in settings.items():
        subprocess.run(["git", "-C", str(folder), "config", name, value], check=True)
    subprocess.run(
        ["git", "-C", str(folder), "fast-import", "--quiet"], input=b"".join(_stream()), stdout=subprocess.DEVNULL,
        check=True,
    )  # fmt: skip


def _stream() -> Iterator[bytes]:
    """Yield the input of git-fast-import(1)."""
    dice = random.Random(20240503)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 10))) for _ in range(4000)]
    for commit in range(COMMITS):
        branch = "old" if commit == 0 else "new"
        message = f"commit {commit}".encode()
        when = f"A <a@example.org> {EPOCH_S + 3600 * commit} +0000"
        yield f"commit refs/heads/{branch}\nmark :{commit + 1}\ncommitter {when}\n".encode()
        yield b"data %d\n%s\n" % (len(message), message)
        if commit:
            yield f"from :{commit}\n".encode()
        for index in range(FILES) if commit == 0 else dice.sample(range(FILES), CHANGED):
            text = _text(dice, words)
            yield f"M 100644 inline part{index % FOLDERS:02}/file{index:04}.txt\ndata {len(text)}\n".encode()
            yield text + b"\n"


def _text(dice: random.Random, words: list[str]) -> bytes:
    lines = (" ".join(dice.choices(words, k=12)) for _ in range(int(dice.lognormvariate(4.2, 1.0)) + 1))
    return "\n".join(lines).encode()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
