"""`drivelab plan`: show what a study would do, without touching anything."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from drivelab.cli.measure.run import in_project
from drivelab.core.terminal import print_json, print_table, say
from drivelab.core.units import counted, format_amount, format_duration, format_percentage, format_span
from drivelab.plan.study import ANY_HOST

if TYPE_CHECKING:
    from drivelab.campaign.outlook import Outlook
    from drivelab.campaign.planning import Campaign, Planned


def add_parser(commands: Any) -> None:
    """Register `plan`."""
    parser = commands.add_parser("plan", help="show what a study would erase, write and measure; touches nothing")
    parser.study()
    parser.flag("--commands", "list every measurement with its shortenings and its fio commands")
    parser.flag("--json", "print drives, tests and totals as JSON")
    parser.flag("--everywhere", "include measurements of other hosts, as on a cluster")
    parser.set_defaults(handler=_plan)


def _plan(options: argparse.Namespace) -> int:
    from drivelab.campaign.budget import exceeded, refusal
    from drivelab.campaign.outlook import headline, outlook, verdict_outlook
    from drivelab.campaign.planning import Campaign
    from drivelab.campaign.results_folder import refuse_foreign

    campaign = Campaign.load(in_project(options.study), everywhere=options.everywhere)
    refuse_foreign(campaign.study)
    campaign.approve_drives(attached_only=True)
    rows = outlook(campaign)
    beyond = exceeded(campaign, rows)
    verdicts = verdict_outlook(campaign)
    if options.json:
        print_json(_mapping(campaign, rows, verdicts, beyond))
    else:
        say(headline(campaign))
        for row in rows:
            print("\n".join(row.lines()))
        _table(rows)
        lines = [*_totals(campaign, rows), *growth_lines(campaign), *filter(None, [verdicts])]
        print("\n".join([*lines, *(f"Over budget: {excess}" for excess in beyond)]))
        if options.commands:
            by_drive = {row.drive: row for row in rows}
            for planned in sorted(campaign.plans, key=lambda planned: campaign.order(planned.plan)):
                _show(campaign, planned, by_drive)
        else:
            print("--commands lists every measurement with its fio commands.")
    if beyond:  # same exit status as `drivelab run`, for scripts
        raise refusal(campaign, beyond)
    return 0


def _mapping(
    campaign: Campaign, rows: Sequence[Outlook], verdicts: str | None, beyond: Sequence[str]
) -> dict[str, Any]:
    """Return the plan of a study for JSON; times in seconds, volumes in bytes, each at least and at most."""
    names = ("drive", "device", "serial", "model", "capacity_bytes", "virtual", "attached", "holds", "to_do")
    return {
        "study": campaign.study.name,
        "drives": [{**{name: getattr(row, name) for name in names}, **asdict(row.estimate)} for row in rows],
        "tests": [
            {**{name: value for name, value in vars(test).items() if name != "estimate"}, **asdict(test.estimate)}
            for row in rows
            for test in row.tests
        ],
        "verdicts": verdicts,
        "over_budget": list(beyond),
    }


def _table(rows: Sequence[Outlook]) -> None:
    """Print a line for each test: its runs, and what is left to do."""
    fields = []
    for test in (test for row in rows for test in row.tests):
        span = test.estimate
        left = (format_span(span.least_s, span.most_s, format_duration),
                format_span(span.least_bytes, span.most_bytes, format_amount)) if test.to_do else ("", "")  # fmt: skip
        fields.append((test.drive, test.measurement, str(test.runs), str(test.to_do or "none"), *left,
                       "reduced" if test.reduced else ""))  # fmt: skip
    numbers = ("runs", "to do", "time", "written")
    print_table(("drive", "test", *numbers, ""), fields, numbers)


def growth_lines(campaign: Campaign) -> list[str]:
    """Return what a growing study may still take and write; no lines for other studies."""
    from drivelab.campaign.outlook import outlook
    from drivelab.campaign.planning import Campaign

    study = campaign.study
    if study.growth is None:
        return []
    runs = {choice.name: study.growth.most for choice in study.measurements}
    most = Campaign.load(study.path, everywhere=campaign.everywhere, growth=study.growth.grown(runs, ()))
    return [
        "Grows: one run at a time, until every headline comparison is decided at the margin of "
        f"{format_percentage(study.margin_pct)} %. With all {study.growth.most} runs:",
        *(f"    {line}" for line in _totals(most, outlook(most)) or ["nothing is left to measure"]),
    ]


def _totals(campaign: Campaign, rows: Sequence[Outlook]) -> list[str]:
    """Return a line for each host with measurements to do: its drives, time and bytes in total."""
    from drivelab.campaign.budget import together_s

    lines = []
    for host in dict.fromkeys(host for row in rows for host in row.by_host):
        spans = [row.by_host[host] for row in rows if host in row.by_host]
        concurrency = campaign.study.concurrency_of(host)
        least_s, most_s = (
            together_s([getattr(span, key) for span in spans], concurrency) for key in ("least_s", "most_s")
        )
        where = "Total" if host == ANY_HOST else f"Total on host {host}"
        lines.append(
            f"{where}: {counted(len(spans), 'drive')}, {format_duration(least_s)} to {format_duration(most_s)}"
            f"{f', {concurrency} at a time' if concurrency > 1 else ''}, at most "
            f"{format_amount(sum(span.most_bytes for span in spans))} written"
        )
    return lines


def _show(campaign: Campaign, planned: Planned, rows: Mapping[str, Outlook]) -> None:
    """Print a measurement, with its commands if this host makes it."""
    from drivelab.campaign.commands import fio_commands
    from drivelab.campaign.subjects import logical_block_bytes_of
    from drivelab.plan.hosts import host_of
    from drivelab.recording.folders import is_recorded

    place = ""
    if campaign.study.order is not None:
        host = host_of(planned.plan)
        place = f", number {campaign.order(planned.plan) + 1}{'' if host == ANY_HOST else f' on host {host}'}"
    print(f"\n{planned.plan.recording}{place}{', already recorded' if is_recorded(planned.plan) else ''}")
    for difference in planned.altered:
        print(f"    reduced: {difference}")
    if "simultaneous" in planned.plan.subject:
        print(f"    measured at the same time: {', '.join(planned.plan.subject['simultaneous'])}")
    print(f"    purge: {planned.plan.subject['condition']['purge']}")
    row = rows.get(planned.plan.sheet_drive)
    if row is None or not campaign.is_here(planned.plan) or not row.attached:
        return
    block = logical_block_bytes_of(planned.plan)
    for purpose, command in fio_commands(planned.plan, row.device, row.capacity_bytes, block):
        how = " (simulated)" if planned.plan.clock == "virtual" else f":\n        {command}"
        print(f"    {purpose}{how if command else ''}")
