"""`drivelab study new`, `check`, `status`: write a study, check it, show its progress."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drivelab.cli.completion import completed_by, drives, protocols
from drivelab.cli.measure.run import in_project
from drivelab.core.errors import UserError
from drivelab.core.terminal import print_json, say
from drivelab.core.units import counted, format_duration, parse_share
from drivelab.plan.places import COMMAND
from drivelab.plan.study import DEFAULT_STUDY, load_study


def add_parser(commands: Any) -> None:
    """Register `study`."""
    parser = commands.add_parser("study", help="create a study, check studies, show their progress")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    action = actions.add_parser("new", help="write config/NAME.yaml, for you to check and run")
    action.add_argument("name", help="name of the study: lower-case letters, digits, hyphens")
    chosen = action.add_argument(
        "--drives", nargs="+", metavar="DRIVE", help="drives of the drive sheet (default: all with destructive: yes)"
    )
    completed_by(chosen, drives)
    chosen = action.add_argument("--protocols", nargs="+", metavar="PROTOCOL",
                        default=["pts-throughput", "pts-write-saturation"],
                        help="protocols of config/protocols (default: %(default)s)")  # fmt: skip
    completed_by(chosen, protocols)
    action.add_argument(
        "--filesystems", nargs="+", metavar="TYPE", default=[],
        help="compare file systems on the drives, such as ext4 xfs btrfs f2fs (default: measure the drives themselves)",
    )  # fmt: skip
    action.add_argument(
        "--detect", metavar="SHARE", help="difference to show, such as 5%%: sets how many recordings each drive needs"
    )
    action.add_argument("--time", metavar="TIME", help="limit of the study's time, such as 3d, which --detect keeps")
    action.add_argument("--written", metavar="AMOUNT", help="limit of the bytes written to each drive, such as 20TB")
    action.flag("--json", "print the file, its size and its outlook as JSON")
    action.set_defaults(handler=_new)

    action = actions.add_parser(
        "check", help="check studies: settings, drives, budgets, conflicts between studies; touches nothing"
    )
    action.studies()
    action.flag("--json", "print the checked studies as JSON")
    action.set_defaults(handler=_check)

    action = actions.add_parser(
        "status", help="show for each drive what is done, running, to do or failed, from files alone"
    )
    action.studies()
    action.flag("--json", "print all known facts as JSON")
    action.set_defaults(handler=_status)


def _new(options: argparse.Namespace) -> int:
    from drivelab.campaign.new_study import Wish, write_study
    from drivelab.campaign.outlook import verdict_outlook
    from drivelab.campaign.planning import Campaign

    in_project(DEFAULT_STUDY)
    file_systems = [name for words in options.filesystems for name in words.split(",") if name]
    detect = parse_share(options.detect) if options.detect else None
    wish = Wish.of(detect, options.time, options.written, file_systems)
    path = write_study(options.name, options.drives, options.protocols, wish)
    campaign = Campaign.load(path, everywhere=True)
    verdicts = verdict_outlook(campaign)
    if options.json:
        study = campaign.study
        print_json(
            {"study": study.name, "path": str(path), "drives": list(study.drives), "measurements": len(campaign.plans),
             "recordings": study.runs, "recordings_wished": wish.runs, "verdicts": verdicts}
        )  # fmt: skip
        return 0
    print(f"{path}: written; check it, then run: {COMMAND} study check {path}, {COMMAND} run {path}")
    if campaign.study.runs < wish.runs:
        print(f"The budget permits {campaign.study.runs} of the {wish.runs} recordings that --detect needs.")
    if verdicts is not None:
        print(verdicts)
    return 0


def _check(options: argparse.Namespace) -> int:
    from drivelab.campaign.check import check, clashes

    checked = [check(path) for path in all_in_project(options.studies)]
    if not options.json:
        for campaign, remarks in checked:
            say(
                f"{campaign.study.path}: {counted(len(campaign.plans), 'measurement')} of "
                f"{counted(len(campaign.study.drives), 'drive')}, valid"
            )
            for remark in remarks:
                say("\n".join(f"    {line}" for line in remark.split("\n")))
    clashes([campaign for campaign, _ in checked])
    if options.json:
        print_json([
            {"study": campaign.study.name, "path": str(campaign.study.path), "drives": list(campaign.study.drives),
             "measurements": len(campaign.plans), "remarks": list(remarks)}
            for campaign, remarks in checked
        ])  # fmt: skip
    return 0


def _status(options: argparse.Namespace) -> int:
    from drivelab.campaign.results_folder import refuse_foreign
    from drivelab.campaign.status import campaign_of, study_status

    studies = [load_study(path) for path in all_in_project(options.studies)]
    refuse_same_name([study.name for study in studies])
    statuses: dict[str, list[dict[str, Any]]] = {}
    for number, study in enumerate(studies):
        campaign = campaign_of(study)
        refuse_foreign(campaign.study)
        rows = study_status(campaign)
        statuses[campaign.study.name] = list(map(asdict, rows))
        if not options.json:
            print("\n" * bool(number) + "\n".join(status_lines(campaign.study.name, rows, time.time())))
    if options.json:
        print_json(statuses)
    return 0


def all_in_project(studies: Sequence[str]) -> list[Path]:
    """Call `in_project` for several studies; raises UserError if they are in different folders."""
    resolved = [str(Path(study).resolve()) if Path(study).exists() else study for study in studies]
    paths, folders = [], []
    for study in resolved:
        paths.append(in_project(study))
        folders.append(Path.cwd())
    if other := next((folder for folder in folders if folder != folders[0]), None):
        raise UserError(f"the studies are in {folders[0]} and {other}; name the studies of one folder at a time")
    return paths


def refuse_same_name(names: Sequence[str]) -> None:
    """Raise UserError if two studies that are shown together have the same name."""
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"two of the studies have the name '{repeated}'; name each study once")


def status_lines(name: str, rows: list[Any], now_s: float) -> list[str]:
    """Return the status as text: a line for the study, then a line for each drive, the most urgent first.

    A line below the drive shows each earlier measurement that failed or was interrupted.
    """
    from drivelab.campaign.status import STATES

    def counts(states: Iterable[str]) -> str:
        number = Counter(states)
        return ", ".join(f"{number[state]} {state}" for state in STATES if number[state])

    def urgency(row: Any) -> int:
        return min(STATES.index(state) for state in (row.state, *(attempt.state for attempt in row.unfinished)))

    done, planned = sum(row.done for row in rows), sum(row.planned for row in rows)
    before = counts(attempt.state for row in rows for attempt in row.unfinished)
    width = max(len(row.drive) for row in rows)
    lines = [f"Study {name}: {done} of {planned} measurements done; drives: {counts(row.state for row in rows)}"
             + (f"; before: {before}" if before else "")]  # fmt: skip
    for row in sorted(rows, key=urgency):
        lines.append(f"  {row.drive:<{width}}  {row.state:<14}  {'; '.join(_words(row, now_s))}")
        for attempt in row.unfinished:
            words = [", ".join(filter(None, [_measurement(attempt.recording), attempt.stage]))]
            words += [f"seen {_ago(attempt.seen_s, now_s)}"] if attempt.seen_s else []
            lines.append(f"  {'':<{width}}  {attempt.state:<14}  {'; '.join([*words, attempt.reason])}")
    return lines


def _words(row: Any, now_s: float) -> Iterator[str]:
    """Yield what is known of a drive."""
    yield f"{row.done} of {row.planned}"
    if row.state == "between stages":
        yield f"{_measurement(row.recording)}, {row.stage}: done {_ago(row.seen_s, now_s)}"
    elif row.state not in ("to do", "done") and row.recording:
        yield f"{_measurement(row.recording)}, {row.stage or 'measure'}"
    if row.next_recording:
        other = "" if row.next_recording == row.recording else f"{_measurement(row.next_recording)}, "
        yield f"next {other}{row.next_stage}"
    if row.state in ("running", "silent", "interrupted") and row.text:
        yield row.text
    if row.left_s and row.state != "failed":
        yield f"about {format_duration(row.left_s)} left"
    if row.host:
        yield f"on {row.host}"
    if row.state == "running":
        yield f"for {_ago(row.since_s or now_s, now_s, '')}"
    elif row.seen_s and row.state in ("silent", "failed", "interrupted"):
        yield (
            f"silent for {_ago(row.seen_s, now_s, '')}" if row.state == "silent" else f"seen {_ago(row.seen_s, now_s)}"
        )
    if row.reason:
        yield row.reason


def _measurement(recording: str) -> str:
    """Return the measurement's name, with its run if that is not the first."""
    _, name, key = recording.split("/")
    run = key.rpartition("-run")[2]
    return name if run == "1" else f"{name} run {run}"


def _ago(at_s: float, now_s: float, word: str = " ago") -> str:
    return f"{format_duration(max(now_s - at_s, 0.0))}{word}"
