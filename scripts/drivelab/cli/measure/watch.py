"""`drivelab watch`: show the drives of studies live, in a browser or on the terminal."""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from drivelab.cli.measure.study import all_in_project, refuse_same_name
from drivelab.core.errors import UserError
from drivelab.plan.study import DEFAULT_STUDY

if TYPE_CHECKING:
    from drivelab.watch.study_view import StudyWatch

_TOKEN = "DRIVELAB_WATCH_TOKEN"
"""Environment variable with a fixed token; without it, each start creates a new one."""


def add_parser(commands: Any) -> None:
    """Register `watch`."""
    parser = commands.add_parser(
        "watch",
        help="show running studies live, in a browser or on the terminal",
        description="Serves a page with gauges and a strip chart of the drives of one or more studies. It only "
        "reads files of the results folder, so you can start and stop it at any time, even if no study runs. Only "
        "this host can reach the page; with --listen, other hosts can reach it with a token.",
    )
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"study file (default {DEFAULT_STUDY})")
    parser.add_argument(
        "--text", action="store_true", help="show on the terminal instead; in a pipe, print a line for each change"
    )
    parser.add_argument("--port", type=_port, default=0, help="port of the page (default: any free port)")
    parser.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS",
        help=f"IP address to listen on (default 127.0.0.1); any other needs a token: that in {_TOKEN}, else a new one",
    )
    parser.set_defaults(handler=_watch)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; give 0 to 65535")
    return int(text)


def _watch(options: argparse.Namespace) -> int:
    from drivelab.watch.study_view import StudyFacts, StudyWatch

    studies = [StudyWatch(StudyFacts.load(path)) for path in all_in_project(options.studies or [DEFAULT_STUDY])]
    refuse_same_name([study.facts.name for study in studies])
    os.nice(19)  # measurements on this host go first
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
    from drivelab.watch.web_server import WatchServer, is_loopback, new_token

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
