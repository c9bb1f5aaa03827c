"""The live view on a terminal: one or two lines per drive; in a pipe, one line per change."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from drivelab.core.files import write_atomic
from drivelab.core.terminal import NO_REDIRECTION, console, strip
from drivelab.core.units import format_duration
from drivelab.plan.places import COMMAND
from drivelab.watch.drive_view import DONE, RUNNING, STANDINGS, WAITING
from drivelab.watch.rates import Point
from drivelab.watch.recording_view import latency_words
from drivelab.watch.study_view import StudyWatch

_EVERY_S = 10.0
"""In a pipe: seconds between two lines of a drive without a change."""
_LINES = 6
_STYLES = {RUNNING: "green", "failed": "bold red", "interrupted": "red", "silent": "red"}
_ENDED = ("finished", "failed", "stopped")
COLUMNS = 120
"""Width of the page in characters."""
_RELOAD_S = 5
_RELOAD = f'<meta http-equiv="refresh" content="{_RELOAD_S}">\n'


def show(studies: Sequence[StudyWatch], page: Path | None = None, period_s: float = 1.0) -> None:
    """Show the live view until interrupted; in a pipe, until all studies have ended. `page` gets the view as HTML."""
    terminal = console()
    live = Live(console=terminal, auto_refresh=False, **NO_REDIRECTION) if terminal.is_terminal else None
    previous: dict[str, tuple[str, float]] = {}
    try:
        with live or nullcontext():
            while True:
                for study in studies:
                    study.poll()
                if page is not None:
                    write_page(screen(studies, COLUMNS), page, reloads=True)
                if live is not None:
                    live.update(screen(studies, terminal.width), refresh=True)
                else:
                    states = [study.state() for study in studies]
                    for line in changes(states, previous, time.monotonic()):
                        print(line, flush=True)
                    if all(state["standing"] in _ENDED for state in states):
                        return
                time.sleep(period_s)
    finally:
        if page is not None:
            write_page(screen(studies, COLUMNS), page, reloads=False)


def write_page(view: RenderableType, path: Path, *, reloads: bool) -> None:
    """Write the view to `path`; a reader finds the page before or this one, whole. The last one does not reload."""
    note = f"{time.strftime('%Y-%m-%d %H:%M:%S')}, {f'reloads every {_RELOAD_S} s' if reloads else 'watch ended'}"
    recorder = console(file=StringIO(), record=True, width=COLUMNS)
    recorder.print(Group(view, Text(note, style="dim")))
    page = recorder.export_html()
    write_atomic(path, page.replace("<style>", f"{_RELOAD}<style>", 1) if reloads else page, lasting=False)


def changes(states: Sequence[Mapping[str, Any]], previous: dict[str, tuple[str, float]], now_s: float) -> Iterator[str]:
    """Yield a line for each drive with a change.

    `said` holds the last text of each key, and its time. Important labels come first, in a separate line, and again
    only when they change.
    """
    for study in states:
        for drive in study["drives"]:
            if drive["standing"] == WAITING:
                continue
            key = f"{study['name']}/{drive['drive']}"
            kind = f"{drive['standing']} {drive.get('recording')} {drive.get('stage')} {round_words(drive)}"
            labels = label_words(drive)
            if labels and previous.get(f"{key} is", ("", 0.0))[0] != labels:
                previous[f"{key} is"] = (labels, now_s)
                yield f"{drive['drive']}: {labels}"
            before, at_s = previous.get(key, ("", -_EVERY_S))
            if kind != before or (drive["standing"] == RUNNING and now_s - at_s >= _EVERY_S):
                previous[key] = (kind, now_s)
                yield f"{drive['drive']}: {doing_words(drive)}{_rate_words(drive)}"
        summary = summary_words(study)
        if previous.get(study["name"], ("", 0.0))[0] != summary:
            previous[study["name"]] = (summary, now_s)
            yield summary


def screen(studies: Sequence[StudyWatch], columns: int) -> RenderableType:
    """Return the present view of all studies for a terminal of `columns`."""
    parts: list[RenderableType] = []
    for study in studies:
        state = study.state()
        parts.append(Text(summary_words(state), style="bold"))
        parts += _drive_lines(study, state, columns)
        lines = list(study.lines)[-_LINES:]
        parts += [
            Text(f"{time.strftime('%H:%M:%S', time.localtime(at_s))} {drive}: {text}", style="dim", no_wrap=True,
                 overflow="ellipsis")
            for at_s, drive, text in lines
        ]  # fmt: skip
    return Group(*parts)


def _drive_lines(study: StudyWatch, state: Mapping[str, Any], columns: int) -> Iterator[Text]:
    """Yield each drive's name and labels, its rates with a sparkline, and its activity."""
    drives = [drive for drive in state["drives"] if drive["standing"] != WAITING]
    width = max((len(drive["drive"]) for drive in drives), default=0)
    for drive in drives:
        name = drive["drive"]
        if labels := label_words(drive):
            yield Text(f"{name} [{labels}]", style="bold", no_wrap=True, overflow="ellipsis")
            name = ""
        line = f"{name:<{width}}" + "".join(f"{rate:>15}" for rate in _rates(drive.get("latest")))
        rates = [point.iops for point in study.drives[drive["drive"]].points]
        room = max(columns - len(line) - 3, 1)
        sparks = strip(rates[-room:], room)
        yield Text(f"{line}  {sparks}", style="bold", no_wrap=True, overflow="crop")
        yield Text(f"  {doing_words(drive)}", style=_STYLES.get(drive["standing"], ""))
    if waiting := len(state["drives"]) - len(drives):
        yield Text(f"{waiting} drive{'s' if waiting > 1 else ''} to do")


def summary_words(study: Mapping[str, Any]) -> str:
    """Return a line on the study's progress."""
    words = f"{study['title']}: {study['standing']}, {study['done']} of {study['recordings']} measurements done"
    return f"{words}; no run has begun, start one with {COMMAND} run" if study["standing"] == WAITING else words


def round_words(drive: Mapping[str, Any]) -> str:
    """Return the round or outcome of the present loop; empty without a loop."""
    progress = drive.get("progress")
    if not progress or drive["stage"] != "measure":
        return ""
    if progress["ended"]:
        return str(progress["ended"])
    kind = "cold round" if progress["cold"] else "round"
    return f"{kind} {progress['round']} of {'' if progress['fixed'] else 'at most '}{progress['rounds']}"


def label_words(drive: Mapping[str, Any]) -> str:
    """Return important labels of a drive's numbers; empty if there are none."""
    names = {"simulated": "virtual clock", "virtual": "virtual drive", "reduced": "reduced protocol"}
    return ", ".join(name for key, name in names.items() if drive.get(key))


def doing_words(drive: Mapping[str, Any]) -> str:
    """Return a drive's activity and problems."""
    if drive["standing"] in ("measured", DONE):
        parts = [": ".join(part for part in (drive.get("measurement"), STANDINGS[drive["standing"]]) if part)]
    else:
        parts = [f"{drive.get('measurement', '')}, {drive['stage']}: {drive['text']}"]
    if drive["standing"] == RUNNING:
        parts += [_steady_words(drive), _left_words(drive)]
        parts += [f"disturbed: {'; '.join(drive['taints'])}" if drive.get("taints") else ""]
    elif drive["standing"] not in ("measured", DONE):
        parts += [STANDINGS[drive["standing"]], drive["failure"] or ""]
    parts.append(drive.get("trouble") or "")
    return ", ".join(part for part in parts if part)


def _left_words(drive: Mapping[str, Any]) -> str:
    """Return the time left of the stage; a stop rule may end it earlier."""
    if not drive["left_s"]:
        return ""
    progress = drive.get("progress")
    most = "at most " if progress and not progress["fixed"] else ""
    return f"{most}about {format_duration(drive['left_s'])} left of this stage"


def _steady_words(drive: Mapping[str, Any]) -> str:
    """Return how many tracked variables are steady in their last rounds."""
    steady = (drive.get("progress") or {}).get("steady", ())
    return f"{sum(steady)} of {len(steady)} steady" if steady else ""


def _rate_words(drive: Mapping[str, Any]) -> str:
    return "".join(f", {rate}" for rate in _rates(drive.get("latest")))


def _rates(latest: Point | None) -> tuple[str, ...]:
    if latest is None:
        return ()
    return f"{latest.iops:,.0f} IOPS", f"{latest.bandwidth_mib_s:,.1f} MiB/s", latency_words(latest.latency_us)
