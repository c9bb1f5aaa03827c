"""Stand in for tasks of a personal computer: a game that loads its levels, photos and a film, office documents.

    personal.py prepare TASK FOLDER   write the files that the task works on
    personal.py run TASK FOLDER       do the task

No product was measured: sizes, numbers and order are round numbers from general knowledge of such programs. The same
seed gives the same work. Contents are random, as compressed assets, photos and documents are.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
PACKS, PACK_BYTES, LEVELS, ASSETS_OF_A_LEVEL = 6, 20 * MIB, 4, 90
PHOTOS, PHOTO_BYTES, CLIP_BYTES, EDITED = 24, (2 * MIB, 5 * MIB), 32 * MIB, 6
DOCUMENTS, DOCUMENT_BYTES, SAVES, MAILS = 80, (20 * KIB, 1500 * KIB), 40, 120
THREADS = 4


def write_new(path: Path, size: int, dice: random.Random, piece: int = MIB) -> None:
    """Write a file of random bytes in pieces, without a sync."""
    with path.open("wb", buffering=0) as file:
        for begin in range(0, size, piece):
            file.write(dice.randbytes(min(piece, size - begin)))


def sync(path: Path) -> None:
    """Persist a file or folder (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save(path: Path, content: bytes) -> None:
    """Replace a file as programs do that must not lose it: write another, sync it, rename it."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    sync(new)
    new.replace(path)
    sync(path.parent)


def prepare_game(folder: Path, dice: random.Random) -> None:
    for pack in range(PACKS):
        write_new(folder / f"{pack}.pack", PACK_BYTES, dice)


def run_game(folder: Path, dice: random.Random) -> None:
    """Load level after level: assets of 16 KiB to 1 MiB from all packs, by four threads; then save the game."""
    packs = [os.open(folder / f"{pack}.pack", os.O_RDONLY) for pack in range(PACKS)]

    def load(asset: tuple[int, int, int]) -> None:
        pack, begin, size = asset
        for offset in range(begin, begin + size, 256 * KIB):
            os.pread(packs[pack], min(256 * KIB, begin + size - offset), offset)

    for level in range(LEVELS):
        sizes = [dice.choice((16, 32, 64, 64, 128, 256, 512, 1024)) * KIB for _ in range(ASSETS_OF_A_LEVEL)]
        assets = [(dice.randrange(PACKS), dice.randrange((PACK_BYTES - size) // 4096) * 4096, size) for size in sizes]
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(load, assets))
        for shader in range(12):
            write_new(folder / f"shader-{level}-{shader}", dice.randrange(4, 48) * KIB, dice)
        save(folder / "progress", dice.randbytes(2 * MIB))
    for pack in packs:
        os.close(pack)


def prepare_photos(folder: Path, dice: random.Random) -> None:
    for photo in range(PHOTOS):
        write_new(folder / f"{photo}.raw", dice.randrange(*PHOTO_BYTES), dice)
    for clip in range(2):
        write_new(folder / f"{clip}.clip", CLIP_BYTES, dice)


def run_photos(folder: Path, dice: random.Random) -> None:
    """Import photos with previews, edit and save some, then cut two clips to a film."""
    seeds = [dice.randrange(1 << 30) for _ in range(PHOTOS)]

    def preview(photo: int) -> None:
        own = random.Random(seeds[photo])
        (folder / f"{photo}.raw").read_bytes()
        write_new(folder / f"{photo}.preview", own.randrange(60, 240) * KIB, own)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(preview, range(PHOTOS)))
    for photo in dice.sample(range(PHOTOS), EDITED):
        save(folder / f"{photo}.edited", dice.randbytes(dice.randrange(*PHOTO_BYTES)))
    with (folder / "film").open("wb", buffering=0) as film:
        for clip in range(2):
            with (folder / f"{clip}.clip").open("rb", buffering=0) as file:
                while piece := file.read(MIB):
                    film.write(piece[: len(piece) * 3 // 4])
        os.fsync(film.fileno())


def prepare_office(folder: Path, dice: random.Random) -> None:
    for document in range(DOCUMENTS):
        write_new(folder / f"{document}.document", dice.randrange(*DOCUMENT_BYTES), dice)


def run_office(folder: Path, dice: random.Random) -> None:
    """Open documents, save changed ones, and receive mail in a database with an index."""
    mail = sqlite3.connect(folder / "mail.db", isolation_level=None)
    mail.execute("PRAGMA journal_mode=WAL")
    mail.execute("PRAGMA synchronous=FULL")
    mail.execute("CREATE TABLE mail(sender INTEGER, body BLOB)")
    mail.execute("CREATE INDEX by_sender ON mail(sender)")
    for turn in range(SAVES):
        document = folder / f"{dice.randrange(DOCUMENTS)}.document"
        content = document.read_bytes()
        if turn % 2:
            save(document, content[: len(content) // 2] + dice.randbytes(len(content) // 2 + 4 * KIB))
        for _ in range(MAILS // SAVES):
            body = dice.randbytes(dice.choice((2, 4, 8, 30, 200)) * KIB)
            mail.execute("INSERT INTO mail VALUES (?, ?)", (dice.randrange(50), body))
    mail.close()
    for document in range(DOCUMENTS):  # a search through all
        (folder / f"{document}.document").read_bytes()


TASKS: dict[str, dict[str, Callable[[Path, random.Random], None]]] = {
    "prepare": {"game": prepare_game, "photos": prepare_photos, "office": prepare_office},
    "run": {"game": run_game, "photos": run_photos, "office": run_office},
}

if __name__ == "__main__":
    action, task, folder = sys.argv[1:]
    TASKS[action][task](Path(folder), random.Random(f"{action} {task}"))
