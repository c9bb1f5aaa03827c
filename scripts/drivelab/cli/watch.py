"""`drivelab watch`: what the drives of running studies do, second by second, in a browser or on the terminal."""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from drivelab.cli.study import all_in_project, refuse_same_name
from drivelab.config.study import DEFAULT_STUDY
from drivelab.errors import UserError

if TYPE_CHECKING:
    from drivelab.watch.study import StudyWatch

_TOKEN = "DRIVELAB_WATCH_TOKEN"
"""Variable with the token to be shown, where it is not to be another one at each start."""


def add_parser(commands: Any) -> None:
    """Register `watch`."""
    one = commands.add_parser(
        "watch",
        help="show running studies live, in a browser or on the terminal",
        description="Serves a page with gauges and a strip chart of the drives of one or more studies, whether or not "
        "they run. It only reads files of the results folder, so it can be started and ended at any time. Nobody but "
        "this host can reach it, unless --listen says so; a token is needed then.",
    )
    one.add_argument("studies", nargs="*", metavar="STUDY", help=f"study file (default {DEFAULT_STUDY})")
    one.add_argument("--text", action="store_true", help="on the terminal instead; in a pipe, a line for each change")
    one.add_argument("--port", type=_port, default=0, help="port of the page (default: any that is free)")
    one.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS",
        help=f"IP address to listen at (default 127.0.0.1); elsewhere with a token: that of {_TOKEN}, else a new one",
    )
    one.set_defaults(handler=_watch)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no port; give 0 to 65535")
    return int(text)


def _watch(options: argparse.Namespace) -> int:
    from drivelab.watch.study import StudyFacts, StudyWatch

    studies = [StudyWatch(StudyFacts.load(path)) for path in all_in_project(options.studies or [DEFAULT_STUDY])]
    refuse_same_name([one.facts.name for one in studies])
    os.nice(19)  # whatever is measured on this host goes first
    try:
        if options.text:
            from drivelab.watch.text import show

            show(studies)
        else:
            _serve(studies, options.listen, options.port)
    except KeyboardInterrupt:
        return 0
    return 0


def _serve(studies: Sequence[StudyWatch], address: str, port: int) -> None:
    from drivelab.watch.hub import Hub
    from drivelab.watch.server import WatchServer, is_loopback, new_token

    token = os.environ.get(_TOKEN) or (None if is_loopback(address) else new_token())
    hub = Hub(studies)
    try:
        server = WatchServer(hub, address, port, token)
    except UserError:
        hub.close()
        raise
    server.start()
    try:
        print(f"{server.url}   (Ctrl-C ends)", flush=True)
        threading.Event().wait()
    finally:
        server.stop()
