"""Run scripts in forks of one Python process that has imported their modules.

A new Python needs longer to import pandas and matplotlib than most scripts of the workflow run. The server waits at
almost no cost for the first script, then imports the modules, may use them once, and forks for each script. Each script
is still a process with its own memory, but starts in milliseconds. Scripts end with the server, and the server ends
with its client, in any way: no leftover script may write the files of the next client's scripts.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from socketserver import ForkingMixIn, StreamRequestHandler, UnixStreamServer
from typing import NamedTuple

from drivelab.core import programs

_PR_SET_PDEATHSIG = 1
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Usage(NamedTuple):
    """Resources that a script and its child processes used."""

    cpu_s: float
    most_mib: float
    """Memory of the largest process, with the imports that it shares with the server."""
    read_mib: float
    written_mib: float


class Forks:
    """The client's side of the server; make it in the main thread, because the server ends with it (prctl(2))."""

    def __init__(self, modules: Sequence[str], warm_up: str = "") -> None:
        """Start the server; before the first script it imports `modules` and calls `warm_up`, a `module:function`."""
        with (
            tempfile.TemporaryDirectory(prefix="drivelab-") as folder,  # only its owner can read it
            socket.socket(socket.AF_UNIX) as listener,
        ):
            place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            name = f"/proc/self/fd/{place}/scripts"  # an address has at most 107 bytes, and TMPDIR may be deep
            listener.bind(name)
            listener.listen(socket.SOMAXCONN)
            self._socket = os.open(name, os.O_PATH | os.O_CLOEXEC)  # outlives its name, so no file is left
            os.close(place)
            self._server = programs.start(
                programs.python("-m", __name__, str(listener.fileno()), warm_up, *modules),
                signal="TERM", pass_fds=[listener.fileno()], env={**os.environ, **_ONE_THREAD},
            )  # fmt: skip
        atexit.register(self.end)

    def run(self, script: str) -> Usage:
        """Run a script like `python FILE`; raises CalledProcessError if it fails, or if it or the server dies."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(f"/proc/self/fd/{self._socket}")
                connection.sendall(f"{Path(script).resolve()}\n".encode())
                status, *used = connection.makefile().read().split() or ["1"]
            except OSError:
                status = "1"
        if status != "0":
            raise subprocess.CalledProcessError(int(status), script)
        return Usage(*map(float, used))

    def end(self) -> None:
        """End the server after its running scripts."""
        self._server.terminate()
        self._server.wait()
        os.close(self._socket)
        atexit.unregister(self.end)


class _Handler(StreamRequestHandler):
    def handle(self) -> None:
        end_with(self.server.pid)  # type: ignore[attr-defined]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        script = self.rfile.readline().decode().rstrip("\n")
        status = _status(script)
        sys.stdout.flush()
        sys.stderr.flush()
        self.wfile.write(" ".join(map(str, (status, *_usage()))).encode())


class _Server(ForkingMixIn, UnixStreamServer):
    max_children = sys.maxsize  # the client limits the number of concurrent scripts
    modules: Sequence[str] = ()
    warm_up = ""
    pid = 0

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        for name in self.modules:
            import_module(name)
        if self.warm_up:
            module, _, function = self.warm_up.partition(":")
            getattr(import_module(module), function)()
            self.warm_up = ""
        gc.freeze()  # a garbage collection over the imports in each fork would copy them
        gc.set_threshold(20_000)  # the default collects hundreds of times while a script draws one figure
        super().process_request(request, client_address)


def end_with(server: int) -> None:
    """Make the kernel kill this process when its parent ends (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def _status(script: str) -> int:
    """Run a script and return its exit status."""
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _usage() -> Usage:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return Usage(
        own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        max(own.ru_maxrss, children.ru_maxrss) / 1024,
        (own.ru_inblock + children.ru_inblock) / 2048,  # blocks of 512 B, getrusage(2)
        (own.ru_oublock + children.ru_oublock) / 2048,
    )


def main() -> None:
    """Serve on a listening socket; the arguments are its descriptor, the warm-up and the modules."""
    client = os.getppid()

    def end(*_: object) -> None:
        if os.getppid() != client:
            os._exit(1)  # its forks end too
        sys.exit()  # waits for the forks

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends with its client
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with _Server("", _Handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = socket.socket(fileno=int(sys.argv[1]))
        server.warm_up, *server.modules = sys.argv[2:]
        server.pid = os.getpid()
        server.serve_forever()


if __name__ == "__main__":
    main()
