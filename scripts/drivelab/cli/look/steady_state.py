"""`drivelab steady-state`: determine steady state for given values or for columns of a CSV file."""

from __future__ import annotations

import argparse
import csv
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError
from drivelab.core.units import parse_share
from drivelab.criteria.steady_state import SteadyState, determine

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(subparsers: Subparsers) -> None:
    """Register `steady-state`; its handler returns the exit status, 0 whether steady or not."""
    parser = subparsers.add_parser(
        "steady-state",
        help="determine whether values are in steady state by the SNIA PTS",
        description="Prints as JSON whether the last rounds are in steady state by the SNIA PTS, with the figures.",
    )
    parser.add_argument("values", nargs="*", metavar="VALUE", help="one value per round, in order")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="CSV file with a column per variable and a row per round"
    )
    parser.add_argument("--window", default="5", metavar="N", help="rounds in the measurement window (default: 5)")
    parser.add_argument(
        "--data-excursion", default="20%", metavar="SHARE", help="largest range, share of the average (default: 20%%)"
    )
    parser.add_argument(
        "--slope-excursion", default="10%", metavar="SHARE", help="largest drift of the best linear fit (default: 10%%)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, as it always does")
    parser.set_defaults(handler=steady_state)


def steady_state(options: argparse.Namespace) -> int:
    """Print the determination; raises UserError for values that are not positive numbers."""
    if bool(options.values) == (options.csv is not None):
        raise UserError(
            "steady-state takes either values or --csv FILE; give one of them, such as 5 values, one per round"
        )
    rule: dict[str, Any] = {
        "window": _window(options.window),
        "data_excursion": _share("--data-excursion", options.data_excursion),
        "slope_excursion": _share("--slope-excursion", options.slope_excursion),
    }
    if options.csv is None:
        values = [_number(text, f"value {number}") for number, text in enumerate(options.values, 1)]
        answer = _block(determine(values, **rule))
    else:
        columns = _columns(options.csv)
        states = {name: determine(values, **rule) for name, values in columns.items()}
        rounds = len(next(iter(columns.values())))
        answer = {
            "variables": {name: _block(state) for name, state in states.items()},
            "steady": all(state.steady for state in states.values()),
            "window": [max(rounds - rule["window"] + 1, 1), rounds],
        }
    print(json.dumps(answer, indent=2, ensure_ascii=False))
    return 0


def _block(state: SteadyState) -> dict[str, Any]:
    return {key: value for key, value in asdict(state).items() if key != "residual_drift_pct"}


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise UserError(f"{where} is '{text}', which is not a positive number; correct it")
    return number


def _window(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 2 <= int(text) <= 1000):
        raise UserError(f"--window is '{text}'; give a whole number of rounds from 2 to 1000")
    return int(text)


def _share(option: str, text: str) -> float:
    try:
        share = parse_share(text)
    except UserError as error:
        raise UserError(f"{option}: {error}") from None
    if share <= 0:
        raise UserError(f"{option} is '{text}'; give a share above 0%, such as 20%")
    return share


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _columns(path: Path) -> dict[str, list[float]]:
    """Return the values of each column by name; raises UserError with line and column for invalid cells."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, [cell.strip() for cell in line]) for line in reader if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path}: cannot be read as CSV ({reason}); give comma-separated values") from None
    if len(lines) < 2:
        raise UserError(f"{path}: has no rounds; the first line names the variables, each further line is a round")
    (first, names), *rounds = lines
    if not all(names) or len(set(names)) < len(names):
        raise UserError(f"{path} line {first}: names are missing or repeated; give every column a different name")
    if all(_is_number(name) for name in names):
        raise UserError(
            f"{path} line {first}: holds numbers where the names of the variables should be; add a line of names"
        )
    for number, line in rounds:
        if len(line) != len(names):
            raise UserError(f"{path} line {number}: has {len(line)} cells for {len(names)} columns; correct the line")
    return {
        name: [_number(line[i], f"{path} line {number}, column '{name}'") for number, line in rounds]
        for i, name in enumerate(names)
    }
