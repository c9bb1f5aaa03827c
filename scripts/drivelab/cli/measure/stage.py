"""`drivelab purge`, `precondition`, `measure`: the stages that the workflow's rules call."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_PLAN = "plan of a measurement, in plans/ of the results folder"


def add_parser(commands: Any) -> None:
    """Register the stages."""
    parser = commands.add_parser("purge", description="Stage: purge a drive, to a state as if never written.")
    parser.add_argument("plan", type=Path, help=_PLAN)
    parser.add_argument("--seal", type=Path, required=True, help="file for the seal of this stage")
    parser.set_defaults(handler=_purge)

    parser = commands.add_parser("precondition", description="Stage: precondition a purged drive by its protocol.")
    parser.add_argument("plan", type=Path, help=_PLAN)
    parser.add_argument("--after", type=Path, required=True, help="seal of the purge")
    parser.add_argument("--seal", type=Path, required=True, help="file for the seal of this stage")
    parser.set_defaults(handler=_precondition)

    parser = commands.add_parser("measure", description="Stage: make the recording of a plan, or resume it.")
    parser.add_argument("plan", type=Path, help=_PLAN)
    parser.add_argument("--after", type=Path, required=True, help="seal of the preconditioning")
    parser.add_argument("--barrier", type=int, help=argparse.SUPPRESS)  # open connection of 'measure-together'
    parser.set_defaults(handler=_measure)

    parser = commands.add_parser("measure-together", description="Stage: measure several drives at the same time.")
    parser.add_argument("plans", type=Path, nargs="+", help="plans of measurements that start together")
    parser.add_argument(
        "--after", type=Path, nargs="+", required=True, help="seals of the preconditioning, in the order of the plans"
    )
    parser.set_defaults(handler=_measure_together)

    parser = commands.add_parser("capture-trace", description="Stage: trace an application of a study.")
    parser.add_argument("study", type=Path, help="study file")
    parser.add_argument("trace", help="key of the study's 'traces'")
    parser.add_argument("-o", "--output", type=Path, required=True, help="trace to write")
    parser.set_defaults(handler=_capture_trace)


def _purge(options: argparse.Namespace) -> int:
    from drivelab.plan.plan import Plan
    from drivelab.run.condition import purge

    purge(Plan.read(options.plan), options.seal)
    return 0


def _precondition(options: argparse.Namespace) -> int:
    from drivelab.plan.plan import Plan
    from drivelab.run.condition import precondition

    precondition(Plan.read(options.plan), options.after, options.seal)
    return 0


def _measure(options: argparse.Namespace) -> int:
    import socket

    from drivelab.plan.plan import Plan
    from drivelab.run.measure import measure
    from drivelab.run.together import Barrier

    barrier = None if options.barrier is None else Barrier(socket.socket(fileno=options.barrier))
    measure(Plan.read(options.plan), options.after, barrier)
    return 0


def _measure_together(options: argparse.Namespace) -> int:
    from drivelab.run.together import measure_together

    measure_together(options.plans, options.after)
    return 0


def _capture_trace(options: argparse.Namespace) -> int:
    from drivelab.campaign.capture import capture_trace
    from drivelab.campaign.planning import Campaign

    capture_trace(Campaign.load(options.study), options.trace, options.output)
    return 0
