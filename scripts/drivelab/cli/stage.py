"""`drivelab purge`, `precondition`, `measure`: the stages, as the workflow's rules call them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_PLAN = "plan of a measurement, in plans/ of the results folder"


def add_parser(commands: Any) -> None:
    """Register the stages."""
    one = commands.add_parser("purge", help="stage: bring a drive back to as if never written")
    one.add_argument("plan", type=Path, help=_PLAN)
    one.add_argument("--seal", type=Path, required=True, help="file for the seal that this stage leaves")
    one.set_defaults(handler=_purge)

    one = commands.add_parser("precondition", help="stage: fill a purged drive as its protocol says")
    one.add_argument("plan", type=Path, help=_PLAN)
    one.add_argument("--after", type=Path, required=True, help="seal of the purge")
    one.add_argument("--seal", type=Path, required=True, help="file for the seal that this stage leaves")
    one.set_defaults(handler=_precondition)

    one = commands.add_parser("measure", help="stage: make the recording of a plan, or go on with it")
    one.add_argument("plan", type=Path, help=_PLAN)
    one.add_argument("--after", type=Path, required=True, help="seal of the preconditioning")
    one.add_argument("--barrier", type=int, help=argparse.SUPPRESS)  # open connection of 'measure-together'
    one.set_defaults(handler=_measure)

    one = commands.add_parser("measure-together", help="stage: make recordings of several drives at the same time")
    one.add_argument("plans", type=Path, nargs="+", help="of measurements that begin together")
    one.add_argument("--after", type=Path, nargs="+", required=True, help="seals of the preconditioning, in that order")
    one.set_defaults(handler=_measure_together)

    one = commands.add_parser("capture-trace", help="stage: trace an application as a study says")
    one.add_argument("study", type=Path, help="study file")
    one.add_argument("trace", help="key of the study's 'traces'")
    one.add_argument("-o", "--output", type=Path, required=True, help="the trace that is made")
    one.set_defaults(handler=_capture_trace)

    one = commands.add_parser("part", help="stage: all of a large study that is one drive, by a workflow of its own")
    one.add_argument("study", type=Path, help="study file")
    one.add_argument("drive", help="the part of the study that is made")
    one.add_argument("--stamp", required=True, help="digest of what it depends on")
    one.add_argument("--cores", type=int, required=True, help="CPU cores for the analysis")
    one.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="setting of the workflow")
    one.add_argument("-o", "--output", type=Path, required=True, help="file for its outcome")
    one.set_defaults(handler=_part)


def _purge(options: argparse.Namespace) -> int:
    from drivelab.plan.plan import Plan
    from drivelab.stages.condition import purge

    purge(Plan.read(options.plan), options.seal)
    return 0


def _precondition(options: argparse.Namespace) -> int:
    from drivelab.plan.plan import Plan
    from drivelab.stages.condition import precondition

    precondition(Plan.read(options.plan), options.after, options.seal)
    return 0


def _measure(options: argparse.Namespace) -> int:
    import socket

    from drivelab.plan.plan import Plan
    from drivelab.stages.barrier import Barrier
    from drivelab.stages.measure import measure

    barrier = None if options.barrier is None else Barrier(socket.socket(fileno=options.barrier))
    measure(Plan.read(options.plan), options.after, barrier)
    return 0


def _measure_together(options: argparse.Namespace) -> int:
    from drivelab.stages.together import measure_together

    measure_together(options.plans, options.after)
    return 0


def _capture_trace(options: argparse.Namespace) -> int:
    from drivelab.stages.capture import capture_trace
    from drivelab.stages.planning import Campaign

    capture_trace(Campaign.load(options.study), options.trace, options.output)
    return 0


def _part(options: argparse.Namespace) -> int:
    from drivelab.stages.fleet_part import carry_out

    return carry_out(options.study, options.drive, options.stamp, options.cores, options.output, options.config)
