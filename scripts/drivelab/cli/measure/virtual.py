"""`drivelab virtual`: start and stop the virtual drives of the configuration, and show those that run."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.terminal import print_json
from drivelab.core.units import some
from drivelab.plan.places import ROOT

DEFAULT_CONFIG = ROOT / "config/virtual_drives.yaml"


def add_parser(commands: Any) -> None:
    """Register `virtual start|stop|status`."""
    parser = commands.add_parser("virtual", help="start and stop virtual drives, and show those that run")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    start = actions.add_parser("start", help="start a drive of the configuration and print its device")
    start.add_argument("name", help="name in config/virtual_drives.yaml")
    start.add_argument(
        "--config", type=Path, default=DEFAULT_CONFIG, help="configuration of the drives (default: %(default)s)"
    )
    start.set_defaults(handler=_start)
    stop = actions.add_parser("stop", help="stop one drive or all; remove the remains of killed drives")
    stop.add_argument("names", nargs="*", metavar="NAME", help="drives to stop (default: all)")
    stop.flag("--force", "stop a drive even if it is mounted or in use")
    stop.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="store the drives' state in FOLDER, for a later start"
    )
    stop.set_defaults(handler=_stop)
    status = actions.add_parser("status", help="list the started drives")
    status.flag("--json", "print the list as JSON")
    status.set_defaults(handler=_status)


def _start(options: argparse.Namespace) -> int:
    from drivelab.core.units import format_size
    from drivelab.plan.yaml_file import load_yaml
    from drivelab.virtual import manage
    from drivelab.virtual.model import DriveModel

    models = load_yaml(options.config)
    if options.name not in models:
        raise UserError(f"{options.config}: has no virtual drive '{options.name}'; it has {', '.join(models)}")
    drive = manage.start(options.name, DriveModel.from_mapping(options.name, models[options.name]))
    print(f"{drive.device} {format_size(drive.capacity_bytes)} {drive.serial}")
    return 0


def _stop(options: argparse.Namespace) -> int:
    from drivelab.virtual import manage

    refusals = []
    removed = []
    for name in options.names or [None]:
        try:
            removed += manage.stop(name, force=options.force, keep=options.keep)
        except UserError as error:
            refusals.append(str(error))
    for item in removed:
        print(f"removed: {item}")
    for file in sorted(options.keep.glob("*.flash")) if options.keep else []:
        print(f"kept: {file}")
    if refusals:
        raise UserError("; ".join(refusals))
    if not removed:
        print(f"{some(options.names, 3)} does not run" if options.names else "no virtual drive runs")
    return 0


def _status(options: argparse.Namespace) -> int:
    from drivelab.virtual import manage

    drives = manage.status()
    if options.json:
        print_json([asdict(drive) for drive in drives])
        return 0
    for drive in drives:
        state = f"running for {drive.uptime_s:.0f} s, process {drive.pid}" if drive.alive else "its server has died"
        print(f"{drive.name} {drive.device} {drive.serial} {state}")
    if not drives:
        print("no virtual drive is running")
    return 0
