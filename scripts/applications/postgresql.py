"""Run pgbench (TPC-B-like) on PostgreSQL: `prepare FOLDER`, then `run FOLDER`.

The server listens only on a socket in FOLDER, so it takes no port. It refuses to run as root, so it runs as user
`postgres` if there is one, else `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCALE = 4
"""Scale factor of pgbench: 400,000 accounts, about 60 MiB."""
CLIENTS, TRANSACTIONS = 4, 700
START_S = 60.0
SETTINGS = {
    "listen_addresses": "", "shared_buffers": "16MB", "max_wal_size": "64MB", "min_wal_size": "32MB",
    "checkpoint_timeout": "30s", "wal_level": "minimal", "max_wal_senders": "0", "max_connections": "20",
    "jit": "off", "autovacuum": "off",
}  # fmt: skip


def main(action: str, folder: Path) -> None:
    """Run action `prepare` or `run`."""
    data, user = folder / "db", _user()
    if action == "prepare":
        for path in (data, folder / "socket"):
            path.mkdir(mode=0o700)
            shutil.chown(path, user)
        _run(user, ["initdb", "-D", str(data), "-U", "bench", "-E", "UTF8", "--locale=C", "--wal-segsize=4", "-N"])
    with _server(user, data, folder / "socket"):
        if action == "prepare":
            _run(user, ["pgbench", "-q", "-i", "-s", str(SCALE), *_connection(folder)])
        else:
            _run(user, ["pgbench", "-n", "-c", str(CLIENTS), "-t", str(TRANSACTIONS), "--random-seed=20240505",
                        *_connection(folder)])  # fmt: skip


@contextmanager
def _server(user: str, data: Path, socket: Path) -> Iterator[None]:
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = _as(user, ["postgres", "-D", str(data), "-k", str(socket), *settings])
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=data)
    try:
        deadline_s = time.monotonic() + START_S
        ready = _as(user, ["pg_isready", "-q", "-h", str(socket), "-U", "bench", "-d", "postgres"])
        while subprocess.run(ready, check=False, cwd=data).returncode:
            if process.poll() is not None or time.monotonic() > deadline_s:
                sys.exit(
                    f"the PostgreSQL server did not start within {START_S:g} s or ended early; see its messages above"
                )
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        # A "smart" shutdown waits for the clients, writes a checkpoint and syncs.
        if process.wait():
            sys.exit("the PostgreSQL server did not shut down cleanly; see its messages above")


def _connection(folder: Path) -> list[str]:
    return ["-h", str(folder / "socket"), "-U", "bench", "postgres"]


def _run(user: str, command: list[str]) -> None:
    subprocess.run(_as(user, command), check=True, stdin=subprocess.DEVNULL, cwd="/")


def _as(user: str, command: list[str]) -> list[str]:
    program = _program(command[0])
    if os.geteuid() != 0:
        return [program, *command[1:]]
    group = str(pwd.getpwnam(user).pw_gid)
    return ["setpriv", "--reuid", user, "--regid", group, "--clear-groups", "--", program, *command[1:]]


def _user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _program(name: str) -> str:
    """Return a server program's path: Debian's newest version, else from PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    program = str(installed[-1]) if installed else shutil.which(name)
    if program is None:
        sys.exit(f"program '{name}' is missing; install postgresql")
    return program


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
