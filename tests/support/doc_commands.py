"""Decide how tests run the commands in the docs, and replace files and drives that are missing here."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from doc_pages import ROOT

from drivelab.cli.main import parser

NOT_RUN = (
    # Command, and the tests that run it instead. The real parser checks its arguments in any case.
    (r"drivelab capture /dev/", "tests/drives/test_capture.py", "traces a device of this machine"),
    (r"drivelab replay .*--target", "tests/drives/test_replay_command.py", "needs a device"),
    (r"drivelab virtual (start|stop)", "tests/drives/test_virtual_drive.py", "makes a device of this machine"),
    (r"drivelab doctor .*--(apply|restore)", "tests/drives/test_signals.py", "changes this machine"),
    (r"drivelab doctor --json nvme0n1", "tests/unit/host/test_catalogue.py", "needs a drive that is missing here"),
    (r"drivelab quick\b", "tests/drives/test_quick.py", "measures a folder or device of this machine, for minutes"),
    (r"drivelab compare .*(until=|date=|op7,firmware=)", "tests/unit/explore", "recordings of other days"),
    (r"drivelab compare results/old:op7", "tests/unit/explore", "results of another time"),
    (r"drivelab run config/mine.yaml", "tests/drives/faults", "takes real drives, and a day"),
    (r"drivelab run config/limit.yaml", "tests/golden/test_study.py", "a minute; the golden study has a load"),
    (r"drivelab (study new fs|run config/fs.yaml|compare .*config/fs.yaml)", "tests/drives/test_file_systems_page.py",
     "mounts file systems"),
    (r"drivelab (run|demo)\b.*--profile", "tests/cluster", "needs a cluster"),
)  # fmt: skip
ELSEWHERE = (
    # Commands of other programs, and why they are not run.
    (r"\./drivelab (setup|test)", "tests/fresh runs them in new systems; the sh script handles them"),
    (r"rsync ", "needs another host"),
    (r"apt-get install ", "changes this machine"),
    (r".*-m drivelab.core.prune", "tests/packages"),
    (r"(pipx install|drivelab init studies|cd studies|drivelab demo$)", "tests/workflow/test_installed.py"),
)
REAL_DRIVES = {"S4EVNX0K": "op7-512e", "S5Y3NX0M": "op28-512e"}
"""Serial of each drive in the docs, and the virtual drive that replaces it, in simulated time."""
SHORTER: dict[str, dict[str, Any]] = {
    "pts-iops": {
        "loop": {
            "runtime": "100ms",
            "cells": {"read_share": [100, 0], "block_size": ["4KiB"]},
            "until": {"steady_state": {"track": [{"read_share": 0, "block_size": "4KiB", "metric": "iops"}]}},
        }
    },
    "pts-latency": {"loop": {"runtime": "200ms"}},
    "pts-write-saturation": {"soak": {"slice": "1s", "until": {"time": "5s"}}},
}
"""Settings that shorten a study of the docs beyond the scale demo, to seconds."""


@dataclass(frozen=True)
class Command:
    """One line of a block of sh, and its treatment: run, parsed, or elsewhere (not a drivelab command)."""

    line: str
    kind: str
    reason: str = ""


def classified(line: str) -> Command:
    """Return the treatment of a line by the tables above, whatever its comment says; other lines are run."""
    command = line.partition(" # ")[0].rstrip()
    for pattern, test, why in NOT_RUN:
        if re.search(pattern, command):
            return Command(line, "parsed", f"{why}; run by {test}")
    for pattern, why in ELSEWHERE:
        if re.match(pattern, command):
            return Command(line, "elsewhere", why)
    return Command(line, "run")


def arguments(line: str) -> list[str]:
    """Return the words after `drivelab` in a line of sh."""
    words = shlex.split(line, comments=True)
    at = next((i for i, word in enumerate(words) if word in ("./drivelab", "drivelab")), None)
    if at is None:
        raise ValueError(f"not a drivelab command: {line}")
    return words[at + 1 :]


def parse(line: str) -> argparse.Namespace:
    """Parse a line with the real parser; raises SystemExit if it refuses."""
    return parser().parse_args(arguments(line))


def unknown_words(mention: str) -> list[str]:
    """Return commands, actions and options in a sentence that the real parser does not know."""
    current = parser()
    words = mention.split()[1:]
    while words and (below := _subcommands(current)):
        if words[0] not in below:
            return [] if words[0] in ("setup", "test", "…") or words[0].startswith("--") else [words[0]]
        current = below[words.pop(0)]
    known = set(current._option_string_actions)
    own_words = words[: words.index("--")] if "--" in words else words
    options = [re.split(r"[=|,)\]]", word.lstrip("["))[0] for word in own_words if re.match(r"\[?--?[a-z]", word)]
    return [word for word in options if known and word not in known]


def _subcommands(current: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [action for action in current._actions if isinstance(action, argparse._SubParsersAction)]
    return actions[0].choices if actions else {}


def stand_in_sheet(text: str) -> str:
    """Return the drive sheet with virtual drives instead of the real ones, plus those of the demo."""
    for serial, virtual in REAL_DRIVES.items():
        text = re.sub(rf"/dev/disk/by-id/\S*{serial}", f"virtual:{virtual}", text)
        text = text.replace(f"\t{serial}\t", f"\tVIRTUAL-{virtual.upper()}\t")
    more = "\t" * (text.splitlines()[0].count("\t") - 4)
    for demo in ("op7", "op28"):
        text += f"{demo}\tvirtual:{demo}\tVIRTUAL-{demo.upper()}\tyes\tof the demo{more}\n"
    return text


def with_rows(text: str) -> str:
    """Return the shipped drive sheet with the rows of `text`, and empty fields for additional columns."""
    head, *rows = text.splitlines()
    shipped = (ROOT / "config/drives.tsv").read_text(encoding="utf-8").splitlines()[1:]
    filled = [row + "\t" * (head.count("\t") - row.count("\t")) for row in shipped]
    return "\n".join([head, *filled, *rows]) + "\n"


def shortened_study(text: str) -> str:
    """Return a study that takes seconds: simulated time, scale demo, and the settings in SHORTER.

    Its time budget is removed, because simulated time has none.
    """
    study = yaml.safe_load(text)
    study["clock"] = "virtual"
    study.get("budget", {}).pop("time", None)
    for measurement in study["measurements"]:
        measurement.setdefault("scale", "demo")
        if measurement["protocol"] in SHORTER:
            measurement["set"] = SHORTER[measurement["protocol"]]
    return yaml.safe_dump(study, sort_keys=False)


def named_test_exists(reason: str) -> bool:
    return (ROOT / Path(reason.rpartition(" run by ")[2])).exists()
