"""Tables of cases in `tests/unit/cases`: inputs of many kinds, and what was approved for each.

A case has the input `given`, and either the value that it `becomes` or the sentence by which it is `refused`. A kind
with dots is a function of the library, and its cases are lists of arguments. After a meant change:
`PYTHONPATH=tests/support .venv/bin/python -m cases`, and read what git shows.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml
from case_kinds import FOLDER, KINDS

from drivelab.core.errors import UserError

Case = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
TABLES = ("refusals", "outcomes", "functions")
PROTOCOLS_OF_CASES = ("lines.yaml", "cells.yaml")
"""Protocols in FOLDER, which cases change by a line."""
MEASUREMENTS = """measurements:
  - {protocol: pts-iops, scale: demo}
  - {protocol: pts-write-saturation, scale: demo}
  - {protocol: trace-replay, scale: demo, trace: sqlite}
"""


def table(name: str) -> list[Case]:
    """Return the cases of a table, each with its `kind`."""
    groups = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return [{"kind": group["kind"], **case} for group in groups for case in group["cases"]]


def make_project(folder: Path) -> None:
    """Copy the configuration and traces, the demo study with measurements as most studies write them."""
    for name in ("config", "traces"):
        shutil.copytree(ROOT / name, folder / name)
    for name in PROTOCOLS_OF_CASES:
        shutil.copy(FOLDER / name, folder)
    demo = folder / "config/demo.yaml"
    demo.write_text(demo.read_text().partition("measurements:")[0] + MEASUREMENTS)


def outcome(case: Case) -> Case:
    """Return what a case becomes, or the sentence that refuses it; the current folder is such a project."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            if "." in case["kind"]:
                value = resolve_name(f"drivelab.{case['kind']}")(*case["given"])
            else:
                value = KINDS[case["kind"]](case["given"], Path(folder))
        except UserError as error:
            return {"refused": str(error).replace(folder, "FOLDER")}
    return {"becomes": json.loads(json.dumps(value, default=asdict))}


def _dumped(groups: list[dict[str, Any]]) -> str:
    lines = []
    for group in groups:
        lines.append(f"- about: {_flow(group['about'])}\n  kind: {group['kind']}\n  cases:")
        for case in group["cases"]:
            for number, (key, value) in enumerate(case.items()):
                lines.append(f"  {' ' if number else '-'} {key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """Return a value as YAML in brackets, whose further lines are indented."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=105)
    return text.removesuffix("\n").removesuffix("\n...").replace("\n", "\n      ")


def approve() -> None:
    """Write the present outcome of every case."""
    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder))
        os.chdir(folder)
        for path in (FOLDER / f"{name}.yaml" for name in TABLES):
            groups = yaml.safe_load(path.read_text())
            for group in groups:
                group["cases"] = [
                    {"given": case["given"]} | outcome({"kind": group["kind"], **case}) for case in group["cases"]
                ]
            path.write_text(_dumped(groups))


if __name__ == "__main__":
    approve()
