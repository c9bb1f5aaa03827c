#!/usr/bin/env python3
"""Print for each tier how many tests passed, failed, or passed only when they ran once more, alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

KEPT = Path(__file__).resolve().parents[1] / ".pytest_cache"


def outcomes(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield each test of a JUnit file with the first line of its failure, if it failed."""
    for case in ElementTree.parse(path).iter("testcase"):
        fault = next((child for child in case if child.tag in ("failure", "error")), None)
        lines = None if fault is None else ((fault.get("message") or fault.text or "no message").splitlines() or [""])
        yield f"{case.get('classname')}::{case.get('name')}", lines and lines[0]


def main() -> None:
    unstable = []
    print(f"\n{'tier':<16}{'passed':>8}{'failed':>8}{'unstable':>10}{'seconds':>9}")
    for path in sorted(KEPT.glob("*.xml")):
        if path.name.endswith(".again.xml"):
            continue
        first = dict(outcomes(path))
        second_path = path.with_suffix(".again.xml")
        second = dict(outcomes(second_path)) if second_path.exists() else {}
        faults = {name: fault for name, fault in first.items() if fault is not None}
        moments = [name for name in faults if second.get(name, "not run") is None]
        seconds = sum(float(suite.get("time", 0)) for suite in ElementTree.parse(path).iter("testsuite"))
        counts = (len(first) - len(faults), len(faults) - len(moments), len(moments))
        print(f"{path.stem:<16}{counts[0]:>8}{counts[1]:>8}{counts[2]:>10}{seconds:>9.0f}")
        unstable += [f"unstable: {name}: {faults[name]}" for name in moments]
    print(*unstable, sep="\n")


if __name__ == "__main__":
    main()
