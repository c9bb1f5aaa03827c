"""Run scripts in forks of one Python process that has already imported their modules.

Importing pandas and matplotlib takes longer than the work of most workflow scripts. The server idles until the first
script arrives, then imports the modules and forks once per script. Each script still has its own process and memory,
but starts in milliseconds. A script ends with the server, and the server ends with the client, however the client
ends: otherwise an old script could write the same files as a script of the next client.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
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

from drivelab import parent

_PR_SET_PDEATHSIG = 1
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Forks:
    """The client's handle of the server; create it in the main thread, because the server ends with it (prctl(2))."""

    def __init__(self, modules: Sequence[str]) -> None:
        """`modules` are imported before the first script runs."""
        with (
            tempfile.TemporaryDirectory(prefix="drivelab-") as folder,  # accessible to its owner only
            socket.socket(socket.AF_UNIX) as listener,
        ):
            place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            name = f"/proc/self/fd/{place}/scripts"  # a socket address holds 107 bytes, and TMPDIR may be longer
            listener.bind(name)
            listener.listen(socket.SOMAXCONN)
            self._socket = os.open(name, os.O_PATH | os.O_CLOEXEC)  # stays usable after its name is removed
            os.close(place)
            self._server = parent.start(
                [sys.executable, "-m", __name__, str(listener.fileno()), *modules],
                signal="TERM", pass_fds=[listener.fileno()], env={**os.environ, **_ONE_THREAD},
            )  # fmt: skip
        atexit.register(self.end)

    def run(self, script: str) -> None:
        """Run a script as Python runs a file; raises CalledProcessError if it fails, or if it or the server dies."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(f"/proc/self/fd/{self._socket}")
                connection.sendall(f"{Path(script).resolve()}\n".encode())
                status = connection.makefile().read()
            except OSError:
                status = ""
        if status != "0":
            raise subprocess.CalledProcessError(int(status or 1), script)

    def end(self) -> None:
        """End the server after its running scripts end."""
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
        self.wfile.write(str(status).encode())


class _Server(ForkingMixIn, UnixStreamServer):
    max_children = sys.maxsize  # the client limits how many scripts run at a time
    modules: Sequence[str] = ()
    pid = 0

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        for module in self.modules:
            import_module(module)
        gc.freeze()  # else a garbage collection in each fork would touch, and so copy, all imported objects
        super().process_request(request, client_address)


def end_with(server: int) -> None:
    """Ask the kernel to kill this process when its parent ends (prctl(2))."""
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


def main() -> None:
    """Serve on a listening socket; the arguments are its descriptor and the modules."""
    client = os.getppid()

    def end(*_: object) -> None:
        if os.getppid() != client:
            os._exit(1)  # its forks end with it
        sys.exit()  # waits for the forks

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends when its client does
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with _Server("", _Handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = socket.socket(fileno=int(sys.argv[1]))
        server.modules = sys.argv[2:]
        server.pid = os.getpid()
        server.serve_forever()


if __name__ == "__main__":
    main()
