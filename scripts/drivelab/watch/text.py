"""The live view on a terminal: a line or two for each drive; in a pipe, a line for each change."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from drivelab.terminal import NO_REDIRECTION, console
from drivelab.units import format_duration
from drivelab.watch.drive import RUNNING, STANDINGS, WAITING
from drivelab.watch.rates import Point
from drivelab.watch.study import StudyWatch
from drivelab.watch.words import latency_words

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EVERY_S = 10.0
"""In a pipe: between two lines of a drive that only goes on."""
_LINES = 6
_STYLES = {RUNNING: "green", "failed": "bold red", "interrupted": "red", "silent": "red"}
_ENDED = ("finished", "failed", "stopped")


def show(studies: Sequence[StudyWatch], period_s: float = 1.0) -> None:
    """Shows until interrupted; in a pipe it ends when all studies have come to an end."""
    terminal = console()
    if terminal.is_terminal:
        with Live(console=terminal, auto_refresh=False, **NO_REDIRECTION) as live:
            while True:
                _poll(studies)
                live.update(screen(studies, terminal.width), refresh=True)
                time.sleep(period_s)
    said: dict[str, tuple[str, float]] = {}
    while True:
        _poll(studies)
        states = [study.state() for study in studies]
        for line in changes(states, said, time.monotonic()):
            print(line, flush=True)
        if all(state["standing"] in _ENDED for state in states):
            return
        time.sleep(period_s)


def _poll(studies: Sequence[StudyWatch]) -> None:
    for study in studies:
        study.poll()


def changes(states: Sequence[Mapping[str, Any]], said: dict[str, tuple[str, float]], now_s: float) -> Iterator[str]:
    """A line for each drive of which there is something new to say; `said` is what was said last, and when.

    Labels that must not be missed come first, in a line of their own, and again only when they change.
    """
    for study in states:
        for drive in study["drives"]:
            if drive["standing"] == WAITING:
                continue
            key = f"{study['name']}/{drive['drive']}"
            kind = f"{drive['standing']} {drive.get('recording')} {drive.get('stage')} {round_words(drive)}"
            labels = label_words(drive)
            if labels and said.get(f"{key} is", ("", 0.0))[0] != labels:
                said[f"{key} is"] = (labels, now_s)
                yield f"{drive['drive']}: {labels}"
            before, at_s = said.get(key, ("", -_EVERY_S))
            if kind != before or (drive["standing"] == RUNNING and now_s - at_s >= _EVERY_S):
                said[key] = (kind, now_s)
                yield f"{drive['drive']}: {doing_words(drive)}{_rate_words(drive)}"
        summary = summary_words(study)
        if said.get(study["name"], ("", 0.0))[0] != summary:
            said[study["name"]] = (summary, now_s)
            yield summary


def screen(studies: Sequence[StudyWatch], columns: int) -> RenderableType:
    """All of it as it is now, for a terminal of so many columns."""
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
    """Of each drive its name and labels, its rates with those before them, and what it does."""
    drives = [drive for drive in state["drives"] if drive["standing"] != WAITING]
    width = max((len(drive["drive"]) for drive in drives), default=0)
    for drive in drives:
        name = drive["drive"]
        if labels := label_words(drive):
            yield Text(f"{name} [{labels}]", style="bold", no_wrap=True, overflow="ellipsis")
            name = ""
        latest = drive.get("latest")
        rates = [f"{latest[2]:,.0f} IOPS", f"{latest[3]:,.1f} MiB/s", latency_words(latest[4])] if latest else []
        line = f"{name:<{width}}" + "".join(f"{one:>15}" for one in rates)
        points = [point for one in study.drives[drive["drive"]].history.values() for point in one]
        sparks = sparkline(points[-max(columns - len(line) - 3, 1) :])
        yield Text(f"{line}  {sparks}", style="bold", no_wrap=True, overflow="crop")
        yield Text(f"  {doing_words(drive)}", style=_STYLES.get(drive["standing"], ""))
    if waiting := len(state["drives"]) - len(drives):
        yield Text(f"{waiting} drive{'s' if waiting > 1 else ''} to do")


def sparkline(points: Sequence[Point]) -> str:
    """IOPS of points as blocks, from zero to the highest."""
    most = max((point.iops for point in points), default=0.0)
    return "".join(_BLOCKS[round((len(_BLOCKS) - 1) * point.iops / most)] if most else _BLOCKS[0] for point in points)


def summary_words(study: Mapping[str, Any]) -> str:
    """Of a study."""
    return f"{study['title']}: {study['standing']}, {study['done']} of {study['recordings']} measurements done"


def round_words(drive: Mapping[str, Any]) -> str:
    """Where the loop is, if there is one under way; empty otherwise."""
    progress = drive.get("progress")
    if not progress or drive["stage"] != "measure":
        return ""
    if progress["ended"]:
        return str(progress["ended"])
    kind = "cold round" if progress["cold"] else "round"
    return f"{kind} {progress['round']} of {'' if progress['fixed'] else 'at most '}{progress['rounds']}"


def label_words(drive: Mapping[str, Any]) -> str:
    """What must not be missed of a drive's numbers; empty where there is nothing."""
    names = {"simulated": "virtual clock", "virtual": "virtual drive", "reduced": "reduced protocol"}
    return ", ".join(name for key, name in names.items() if drive.get(key))


def doing_words(drive: Mapping[str, Any]) -> str:
    """What a drive does, and what is wrong."""
    if drive["standing"] in ("measured", "between"):
        words = [": ".join(word for word in (drive.get("measurement"), STANDINGS[drive["standing"]]) if word)]
    else:
        words = [f"{drive.get('measurement', '')}, {drive['stage']}: {drive['text']}"]
    if drive["standing"] == RUNNING:
        words += [_steady_words(drive), _left_words(drive)]
        words += [f"disturbed: {'; '.join(drive['taints'])}" if drive.get("taints") else ""]
    elif drive["standing"] not in ("measured", "between"):
        words += [STANDINGS[drive["standing"]], drive["failure"] or ""]
    words.append(drive.get("trouble") or "")
    return ", ".join(word for word in words if word)


def _left_words(drive: Mapping[str, Any]) -> str:
    """Of the stage, in the words of the page; a stop rule may end it earlier."""
    if not drive["left_s"]:
        return ""
    progress = drive.get("progress")
    most = "at most " if progress and not progress["fixed"] else ""
    return f"{most}about {format_duration(drive['left_s'])} left of this stage"


def _steady_words(drive: Mapping[str, Any]) -> str:
    """How many of the tracked variables are steady in their last rounds."""
    variables = (drive.get("progress") or {}).get("variables", ())
    return f"{sum(one.get('steady', False) for one in variables)} of {len(variables)} steady" if variables else ""


def _rate_words(drive: Mapping[str, Any]) -> str:
    latest = drive.get("latest")
    if not latest:
        return ""
    return f", {latest[2]:,.0f} IOPS, {latest[3]:,.1f} MiB/s, {latency_words(latest[4])}"
