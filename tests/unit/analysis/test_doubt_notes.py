"""Collect doubts about many values in notes."""

from __future__ import annotations

from drivelab.analysis.deltas.doubts import numbered, taint_causes
from drivelab.criteria.taint import CAUSES

LOAD = "load: others used {} % of the host's CPU time at worst, in 5 cells"
HOT = "throttled: the drive reached 80 °C, it warns from 75 °C"


def test_each_reason_is_noted_once_with_its_worst_value() -> None:
    marks, notes = numbered(
        [
            [f"a: tainted ({LOAD.format(40)})", "b: not steady"],
            [],
            ["b: not steady", f"a: tainted ({LOAD.format(89)})", f"a: tainted ({HOT}, {LOAD.format(70)})"],
        ]
    )
    assert marks == [(1, 2), (), (1, 2, 3)]
    assert notes == [
        "a: tainted (load: others used 89 % of the host's CPU time at worst)",
        "b: not steady",
        f"a: tainted ({HOT}, {LOAD.format(70)})",
    ]


def test_taint_causes_are_recognised() -> None:
    assert taint_causes(f"a: tainted ({HOT}, {LOAD.format(70)})") == ["throttled", "load"]
    assert taint_causes(f"tainted ({LOAD.format(70)})") == ["load"]
    assert taint_causes(f"tainted ({', '.join(f'{cause}: it was so' for cause in CAUSES)})") == list(CAUSES)
    assert taint_causes("a: not steady") == taint_causes("a: tainted") == []
