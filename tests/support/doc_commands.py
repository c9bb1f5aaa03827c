"""How the commands of the documentation are run: which are not, and why; what stands in for what nobody has here."""

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
    # Command, and the tests that run it. Its words are held against the real parser all the same.
    (r"drivelab capture /dev/", "tests/drives/test_capture.py", "traces a device of this machine"),
    (r"drivelab replay .*--target", "tests/drives/test_replay_command.py", "writes to a device"),
    (r"drivelab virtual (start|stop)", "tests/drives/test_virtual_drive.py", "makes a device of this machine"),
    (r"drivelab doctor .*--(apply|restore)", "tests/drives/test_host_settings.py", "changes this machine"),
    (r"drivelab doctor --json nvme0n1", "tests/unit/host/test_doctor.py", "a drive that is not here"),
    (r"drivelab test\b", "tests", "these tests"),
    (r"drivelab compare .*(until=|op7,firmware=)", "tests/unit/explore", "recordings of other days and firmwares"),
    (r"drivelab compare results/old:op7", "tests/unit/explore", "results of another time"),
    (r"drivelab run config/mine.yaml", "tests/drives/faults", "takes real drives, and a day"),
    (r"drivelab evidence metric=p99", "tests/workflow/test_evidence.py", "a measurement that the demo does not have"),
    (r"drivelab .*(config/many.yaml|results/many)", "tests/workflow/test_fleet.py", "takes a fleet"),
    (r"drivelab (run|demo)\b.*--profile", "tests/cluster", "needs a cluster"),
)  # fmt: skip
ELSEWHERE = (
    # What is no command of drivelab, and why it is not run.
    (r"\./drivelab setup", "tests/fresh runs it in new systems; it is the script's own word, no command"),
    (r"rsync ", "needs another host"),
    (r"snakemake .*config/many.yaml", "takes a fleet; tests/workflow/test_fleet.py has one"),
)
REAL_DRIVES = {"S4EVNX0K": "op7-512e", "S5Y3NX0M": "op28-512e"}
"""Serial of each drive that the pages speak of, and the virtual drive that stands in for it, in simulated time."""
SHORTER: dict[str, dict[str, Any]] = {
    "pts-iops": {
        "loop": {
            "runtime": "100ms",
            "cells": {"read_share": [100, 0], "block_size": ["4KiB"]},
            "until": {"steady_state": {"track": [{"read_share": 0, "block_size": "4KiB", "metric": "iops"}]}},
        }
    },
    "pts-write-saturation": {"soak": {"slice": "1s", "until": {"time": "5s"}}},
}
"""What a study of the pages is shortened by, beyond the scale demo, so that it takes seconds."""


@dataclass(frozen=True)
class Command:
    """One line of a block of sh, and what becomes of it: run, parsed, or neither, as it is no command of ours."""

    line: str
    kind: str
    reason: str = ""


def classified(line: str) -> Command:
    """What the tables say of a line; what they do not name is run."""
    for pattern, test, why in NOT_RUN:
        if re.search(pattern, line):
            return Command(line, "parsed", f"{why}; run by {test}")
    for pattern, why in ELSEWHERE:
        if re.match(pattern, line):
            return Command(line, "elsewhere", why)
    return Command(line, "run")


def arguments(line: str) -> list[str]:
    """Words after `drivelab` in a line of sh."""
    words = shlex.split(line, comments=True)
    at = next((i for i, word in enumerate(words) if word in ("./drivelab", "drivelab")), None)
    if at is None:
        raise ValueError(f"no command of drivelab: {line}")
    return words[at + 1 :]


def parse(line: str) -> argparse.Namespace:
    """What the real parser makes of a line; raises SystemExit if it refuses."""
    return parser().parse_args(arguments(line))


def unknown_words(mention: str) -> list[str]:
    """Words of a command within a sentence that the real parser does not have: commands, actions and options."""
    one = parser()
    words = mention.split()[1:]
    while words and (below := _below(one)):
        if words[0] not in below:
            return [] if words[0] in ("setup", "…") or words[0].startswith("--") else [words[0]]
        one = below[words.pop(0)]
    known = set(one._option_string_actions)
    asked = words[: words.index("--")] if "--" in words else words
    options = [re.split(r"[=|,)\]]", word.lstrip("["))[0] for word in asked if re.match(r"\[?--?[a-z]", word)]
    return [word for word in options if known and word not in known]


def _below(one: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [action for action in one._actions if isinstance(action, argparse._SubParsersAction)]
    return actions[0].choices if actions else {}


def stand_in_sheet(text: str) -> str:
    """The drive sheet with virtual drives in the place of the real ones, and those of the demo."""
    for serial, virtual in REAL_DRIVES.items():
        text = re.sub(rf"/dev/disk/by-id/\S*{serial}", f"virtual:{virtual}", text)
        text = text.replace(f"\t{serial}\t", f"\tVIRTUAL-{virtual.upper()}\t")
    more = "\t" * (text.splitlines()[0].count("\t") - 4)
    for demo in ("op7", "op28"):
        text += f"{demo}\tvirtual:{demo}\tVIRTUAL-{demo.upper()}\tyes\tof the demo{more}\n"
    return text


def with_rows(text: str) -> str:
    """The shipped drive sheet with the rows of `text`, and empty columns where `text` has more of them."""
    head, *rows = text.splitlines()
    shipped = (ROOT / "config/drives.tsv").read_text(encoding="utf-8").splitlines()[1:]
    filled = [row + "\t" * (head.count("\t") - row.count("\t")) for row in shipped]
    return "\n".join([head, *filled, *rows]) + "\n"


def shortened_study(text: str) -> str:
    """A study that takes seconds: in simulated time, of the scale demo, and shorter still where SHORTER says so.

    What is simulated has no budget of time.
    """
    study = yaml.safe_load(text)
    study["clock"] = "virtual"
    study.get("budget", {}).pop("time", None)
    for one in study["measurements"]:
        one.setdefault("scale", "demo")
        if one["protocol"] in SHORTER:
            one["set"] = SHORTER[one["protocol"]]
    return yaml.safe_dump(study, sort_keys=False)


def named_test_exists(reason: str) -> bool:
    return (ROOT / Path(reason.rpartition(" run by ")[2])).exists()
