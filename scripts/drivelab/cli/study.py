"""`drivelab study new`, `check`, `status`: studies as a whole, before, beside and after they are run."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from drivelab.cli.run import in_project
from drivelab.config.study import DEFAULT_STUDY
from drivelab.units import format_duration


def add_parser(commands: Any) -> None:
    """Register `study`."""
    parser = commands.add_parser("study", help="begin a study, check studies whole, see how far they are")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    one = actions.add_parser("new", help="write config/NAME.yaml, to be looked through and run")
    one.add_argument("name", help="lower-case letters, digits, hyphens")
    one.add_argument("--drives", nargs="+", metavar="DRIVE", help="rows of the drive sheet (all with destructive: yes)")
    one.add_argument("--protocols", nargs="+", metavar="PROTOCOL", default=["pts-throughput", "pts-write-saturation"],
                     help="of config/protocols (%(default)s)")  # fmt: skip
    one.set_defaults(handler=_new)

    one = actions.add_parser(
        "check", help="check studies whole: settings, drives, budgets, each other; touches nothing"
    )
    one.add_argument("studies", nargs="*", default=[DEFAULT_STUDY], metavar="STUDY")
    one.set_defaults(handler=_check)

    one = actions.add_parser("status", help="what is done, running, to do or failed, by drive, from the files alone")
    one.add_argument("studies", nargs="*", default=[DEFAULT_STUDY], metavar="STUDY")
    one.add_argument("--json", action="store_true", help="everything that is known, as JSON")
    one.set_defaults(handler=_status)


def _new(options: argparse.Namespace) -> int:
    from drivelab.stages.new_study import write_study

    in_project(DEFAULT_STUDY)
    path = write_study(options.name, options.drives, options.protocols)
    print(f"{path}: written; look through it, then: drivelab study check {path}, drivelab run {path}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from drivelab.stages.check import check, clashes

    campaigns = []
    for study in options.studies:
        campaign, remarks = check(in_project(study))
        campaigns.append(campaign)
        print(
            f"{campaign.study.path}: {len(campaign.plans)} measurements of {len(campaign.study.drives)} drives, sound"
        )
        for remark in remarks:
            print(f"    {remark}")
    clashes(campaigns)
    return 0


def _status(options: argparse.Namespace) -> int:
    from drivelab.config.study import load_study
    from drivelab.stages.status import campaign_of, study_status

    found: dict[str, list[dict[str, Any]]] = {}
    for number, study in enumerate(options.studies):
        campaign = campaign_of(load_study(in_project(study)))
        rows = study_status(campaign)
        found[campaign.study.name] = [row.to_mapping() for row in rows]
        if not options.json:
            print("\n" * bool(number) + "\n".join(status_lines(campaign.study.name, rows, time.time())))
    if options.json:
        print(json.dumps(found, indent=1))
    return 0


def status_lines(name: str, rows: list[Any], now_s: float) -> list[str]:
    """For people: the study in a line, then a line for each drive, what wants attention first."""
    from drivelab.stages.status import STATES

    counts = {state: sum(row.state == state for row in rows) for state in STATES}
    done, planned = sum(row.done for row in rows), sum(row.planned for row in rows)
    drives = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    width = max(len(row.drive) for row in rows)
    lines = [f"Study {name}: {done} of {planned} measurements done; drives: {drives}"]
    for row in sorted(rows, key=lambda row: STATES.index(row.state)):
        words = [f"{row.done} of {row.planned}"]
        if row.state not in ("to do", "done") and row.recording:
            words.append(f"{row.recording.partition('/')[2].partition('/')[0]}, {row.stage or 'measure'}")
        if row.state in ("running", "silent", "interrupted") and row.text:
            words.append(row.text)
        if row.state in ("running", "silent") and row.iops is not None:
            words.append(f"{row.iops:,.0f} IOPS")
        if row.left_s and row.state != "failed":
            words.append(f"about {format_duration(row.left_s)} left")
        if row.host:
            words.append(f"on {row.host}")
        if row.state == "silent" and row.seen_s:
            words.append(f"nothing heard for {format_duration(max(now_s - row.seen_s, 0.0))}")
        elif row.state not in ("to do", "done") and row.seen_s:
            words.append(f"{'for' if row.state == 'running' else 'seen'} {_since(row, now_s)}")
        if row.reason:
            words.append(row.reason)
        lines.append(f"  {row.drive:<{width}}  {row.state:<11}  {'; '.join(words)}")
    return lines


def _since(row: Any, now_s: float) -> str:
    if row.state == "running":
        return format_duration(max(now_s - (row.since_s or now_s), 0.0))
    return f"{format_duration(max(now_s - row.seen_s, 0.0))} ago"
