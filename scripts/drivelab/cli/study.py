"""`drivelab study new`, `check`, `status`: studies as a whole, before, beside and after they are run."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drivelab.cli.run import in_project
from drivelab.config.study import DEFAULT_STUDY
from drivelab.errors import UserError
from drivelab.units import format_duration
from drivelab.words import counted


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
    one.add_argument(
        "studies", nargs="*", default=[DEFAULT_STUDY], metavar="STUDY", help=f"study file (default {DEFAULT_STUDY})"
    )
    one.set_defaults(handler=_check)

    one = actions.add_parser("status", help="what is done, running, to do or failed, by drive, from the files alone")
    one.add_argument(
        "studies", nargs="*", default=[DEFAULT_STUDY], metavar="STUDY", help=f"study file (default {DEFAULT_STUDY})"
    )
    one.add_argument("--json", action="store_true", help="everything that is known, as JSON")
    one.set_defaults(handler=_status)


def _new(options: argparse.Namespace) -> int:
    from drivelab.stages.new_study import write_study

    in_project(DEFAULT_STUDY)
    path = write_study(options.name, options.drives, options.protocols)
    print(f"{path}: written; look through it, then: ./drivelab study check {path}, ./drivelab run {path}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from drivelab.stages.check import check, clashes

    campaigns = []
    for path in all_in_project(options.studies):
        campaign, remarks = check(path)
        campaigns.append(campaign)
        print(
            f"{campaign.study.path}: {counted(len(campaign.plans), 'measurement')} of "
            f"{counted(len(campaign.study.drives), 'drive')}, sound"
        )
        for remark in remarks:
            print(f"    {remark}")
    clashes(campaigns)
    return 0


def _status(options: argparse.Namespace) -> int:
    from drivelab.config.study import load_study
    from drivelab.stages.layout import Layout
    from drivelab.stages.status import campaign_of, study_status

    studies = [load_study(path) for path in all_in_project(options.studies)]
    refuse_same_name([study.name for study in studies])
    found: dict[str, list[dict[str, Any]]] = {}
    for number, study in enumerate(studies):
        campaign = campaign_of(study)
        Layout(campaign).check_owner()
        rows = study_status(campaign)
        found[campaign.study.name] = [row.to_mapping() for row in rows]
        if not options.json:
            print("\n" * bool(number) + "\n".join(status_lines(campaign.study.name, rows, time.time())))
    if options.json:
        print(json.dumps(found, indent=1))
    return 0


def all_in_project(studies: Sequence[str]) -> list[Path]:
    """As `in_project`, of several; raises UserError for studies of several folders, of which one can be current."""
    given = [str(Path(one).resolve()) if Path(one).exists() else one for one in studies]
    paths, folders = [], []
    for one in given:
        paths.append(in_project(one))
        folders.append(Path.cwd())
    if other := next((folder for folder in folders if folder != folders[0]), None):
        raise UserError(f"the studies are in {folders[0]} and {other}; name the studies of one folder at a time")
    return paths


def refuse_same_name(names: Sequence[str]) -> None:
    """Raise UserError if two of the studies that are to be told of together have one name."""
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"two of the studies are called '{twice}'; name each study once")


def status_lines(name: str, rows: list[Any], now_s: float) -> list[str]:
    """For people: the study in a line, then a line for each drive, what wants attention first.

    Below a drive there is a line for each of its measurements that failed or were interrupted before what it does now.
    """
    from drivelab.stages.status import STATES

    counts = Counter(row.state for row in rows)
    before = Counter(one.state for row in rows for one in row.unfinished)
    done, planned = sum(row.done for row in rows), sum(row.planned for row in rows)
    parts = ["drives: " + ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])]
    if before:
        parts.append("before: " + ", ".join(f"{before[state]} {state}" for state in STATES if before[state]))
    width = max(len(row.drive) for row in rows)
    lines = [f"Study {name}: {done} of {planned} measurements done; {'; '.join(parts)}"]
    for row in sorted(rows, key=_urgency):
        words = [f"{row.done} of {row.planned}"]
        if row.state == "between stages":
            words.append(f"{_measurement(row.recording)}, {row.stage}: done {_ago(row, now_s)}")
        elif row.state not in ("to do", "done") and row.recording:
            words.append(f"{_measurement(row.recording)}, {row.stage or 'measure'}")
        if row.next_recording:
            other = "" if row.next_recording == row.recording else f"{_measurement(row.next_recording)}, "
            words.append(f"next {other}{row.next_stage}")
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
        elif row.state == "running":
            words.append(f"for {format_duration(max(now_s - (row.since_s or now_s), 0.0))}")
        elif row.state in ("failed", "interrupted") and row.seen_s:
            words.append(f"seen {_ago(row, now_s)}")
        if row.reason:
            words.append(row.reason)
        lines.append(f"  {row.drive:<{width}}  {row.state:<14}  {'; '.join(words)}")
        for one in row.unfinished:
            words = [", ".join(filter(None, [_measurement(one.recording), one.stage]))]
            words += [f"seen {_ago(one, now_s)}"] if one.seen_s else []
            lines.append(f"  {'':<{width}}  {one.state:<14}  {'; '.join([*words, one.reason])}")
    return lines


def _urgency(row: Any) -> int:
    from drivelab.stages.status import STATES

    return min(STATES.index(state) for state in (row.state, *(one.state for one in row.unfinished)))


def _measurement(recording: str) -> str:
    """Name and run, the first of which goes without saying."""
    _, name, key = recording.split("/")
    run = key.rpartition("-run")[2]
    return name if run == "1" else f"{name} run {run}"


def _ago(row: Any, now_s: float) -> str:
    return f"{format_duration(max(now_s - row.seen_s, 0.0))} ago"
