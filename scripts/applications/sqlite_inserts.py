"""Run a small web application's database: SQLite inserts, then reports.

Orders arrive at random times with a few rows each; some are updated or looked up. Every commit is synced
(synchronous=FULL). SQLite checkpoints the log automatically and once at the end. Then the database is dropped from the
page cache, and reports read it from the drive. The same seed gives the same work.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import time
from pathlib import Path

TRANSACTIONS = 600
ROWS = 6
MEAN_PAUSE_S = 0.004
CUSTOMERS = 400
REPORTS = 120


def main(folder: Path) -> None:
    """Run the workload in an empty folder on the file system to be traced."""
    dice = random.Random(20240501)
    path = folder / "orders.db"
    database = _open(path)
    database.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, state TEXT, note BLOB)")
    database.execute("CREATE INDEX orders_by_customer ON orders(customer)")
    rows = 0
    for _ in range(TRANSACTIONS):
        time.sleep(dice.expovariate(1 / MEAN_PAUSE_S))
        rows += _transaction(database, dice, rows)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    _drop_from_cache(path)
    database = _open(path)
    for _ in range(REPORTS):
        time.sleep(dice.expovariate(1 / MEAN_PAUSE_S))
        customer = dice.randrange(CUSTOMERS)
        database.execute("SELECT sum(length(note)) FROM orders WHERE customer = ?", (customer,)).fetchone()
    _drop_from_cache(path)
    database.execute("SELECT state, count(*), sum(length(note)) FROM orders GROUP BY state").fetchall()
    database.close()


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    for setting in ("page_size=4096", "journal_mode=WAL", "synchronous=FULL", "cache_size=-512"):
        database.execute(f"PRAGMA {setting}")
    return database


def _transaction(database: sqlite3.Connection, dice: random.Random, rows: int) -> int:
    """Insert rows, sometimes update or look up others; return the number inserted."""
    database.execute("BEGIN IMMEDIATE")
    new = [
        (dice.randrange(CUSTOMERS), "new", dice.randbytes(dice.randrange(200, 4000)))
        for _ in range(dice.randint(1, ROWS))
    ]
    database.executemany("INSERT INTO orders(customer, state, note) VALUES (?, ?, ?)", new)
    if rows and dice.random() < 0.5:
        database.execute("UPDATE orders SET state = 'sent' WHERE id = ?", (dice.randint(1, rows),))
    if rows and dice.random() < 0.3:
        database.execute("SELECT note FROM orders WHERE customer = ?", (dice.randrange(CUSTOMERS),)).fetchall()
    database.execute("COMMIT")
    return len(new)


def _drop_from_cache(path: Path) -> None:
    """Drop the clean pages of one file from the page cache (posix_fadvise(2))."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
