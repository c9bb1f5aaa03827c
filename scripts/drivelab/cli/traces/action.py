"""Declare the actions of `drivelab trace`, and the arguments that several have."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

Argument = Mapping[str, Any]
Answer = tuple[object, Iterable[str]]
"""What an action prints: a value as JSON, or lines for people."""
TRACE: Argument = {"metavar": "TRACE", "help": "trace in Parquet, or a name of the catalogue in traces/"}
FILE: Argument = {"type": Path, "metavar": "FILE", "help": "trace file in another format"}
FORMAT: Argument = {"metavar": "F", "help": "format of the file (default: detected from the content)"}


def output(metavar: str, words: str) -> Argument:
    """Return the file to write, for the option `--output`."""
    return {"type": Path, "required": True, "metavar": metavar, "help": words}


def add_action(
    actions: Any,
    name: str,
    answer: Callable[[argparse.Namespace], Answer],
    words: str,
    arguments: Mapping[str, Argument],
    more: str = "",
) -> None:
    """Register an action with the sub-parsers of `drivelab trace`; each has `--json`.

    Args:
        words: what the action does, for the list of actions.
        arguments: by name, as of add_argument; `--output` is also `-o`.
        more: description of the action, if `words` do not say all.
    """
    action = actions.add_parser(name, help=words, description=more or None)
    for argument, facts in arguments.items():
        action.add_argument(*(["-o"] if argument == "--output" else []), argument, **facts)
    action.add_argument("--json", action="store_true", help="print the result as JSON")
    action.set_defaults(handler=partial(_carry_out, answer))


def _carry_out(answer: Callable[[argparse.Namespace], Answer], options: argparse.Namespace) -> int:
    value, lines = answer(options)
    for line in [json.dumps(value, indent=1)] if options.json else lines:
        print(line)
    return 0
