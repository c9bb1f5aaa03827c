"""Errors within multi-line entries name the line of the field. That line ends with a comment `#!`."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve

TEXT = """\
name: lines
title: t
source: s
description: d
workloads:
  few:
    pattern: random
    access: {zipf: 1.2}
condition: {purge: none}
measure:
  - loop:
      cells:
        - pattern: random
          read_share: 0
          block_size:
            4KiB: 90%
            8KiB: 9%
            16KiB: 1%
          access:
            - range: 5%
              share: 50%
            - range: 95%
              share: 50%
          share: 50%
        - pattern: random
          read_share: 100
          block_size: 4KiB
          align: 4KiB
          share: 40%
      runtime: 60s
      until: {rounds: 1}
  - soak:
      workload: few
      read_share: 0
      block_size: 4KiB
      entropy: 50%
      slice: 1s
      until: {time: 5s}
sources: {condition: s, workloads: s, loop: s, soak: s}
"""


def resolved(folder: Path, text: str) -> None:
    path = folder / "lines.yaml"
    path.write_text(text)
    resolve(load(path), "client", None, {}, "test")


def test_the_text_is_valid(tmp_path: Path) -> None:
    resolved(tmp_path, TEXT)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("            16KiB: 1%", "            16KiB: 0%   #!", r"cells\[0\]\.block_size\.16KiB': one of the shares"),
        ("            16KiB: 1%", "            8192B: 1%   #!", r"block_size\.8192B': repeats a size"),
        ("            8KiB: 9%\n            16KiB: 1%", "            8KiB: 9.5%   #!\n            16KiB: 0.5%",
         r"block_size\.8KiB': .*whole percentages"),
        ("          block_size:\n            4KiB: 90%", "          block_size:   #!\n            4KiB: 80%",
         r"cells\[0\]\.block_size': the shares of the block sizes add up to 90%"),
        ("          block_size:\n            4KiB: 90%", "          block_size:   #!\n            3KiB: 90%",
         r"cells\[0\]\.block_size': .*multiples of the smallest block size, 3KiB"),
        ("            - range: 95%\n              share: 50%", "            - range: 95%\n              share: 0%   #!",
         r"cells\[0\]\.access\[1\]\.share': one of the shares of the zones is 0%"),
        ("            - range: 5%\n              share: 50%\n            - range: 95%",
         "            - range: 5.5%   #!\n              share: 50%\n            - range: 94.5%",
         r"cells\[0\]\.access\[0\]\.range': .*whole percentages"),
        ("          access:\n            - range: 5%", "          access:   #!\n            - range: 4%",
         r"cells\[0\]\.access': the ranges of the zones add up to 99%"),
        ("          read_share: 0\n          block_size:\n",
         "          read_share: 0\n          segments: 4   #!\n          block_size:\n",
         r"cells\[0\]\.segments': .*access by zones and access in segments"),
        ("          align: 4KiB", "          align: 513B   #!", r"cells\[1\]\.align': 513B is not a multiple"),
        ("          align: 4KiB", "          pattern_: random   #!", r"cells\[1\]': unknown key"),
        ("          share: 40%", "          share: 0%   #!",
         r"cells\[1\]\.share': a cell of the loop has a share of 0%; give it more"),
        ("          share: 40%", "          share: 40%\n          runtime: 1s   #!",
         r"cells\[1\]\.runtime': a cell has a 'runtime', but"),
        ("        - pattern: random\n          read_share: 100\n          block_size: 4KiB\n          align: 4KiB\n"
         "          share: 40%",
         "        - pattern: random   #!\n          read_share: 100\n          block_size: 4KiB\n          align: 4KiB",
         r"cells\[1\]': a cell of the loop has no 'share'; give one to all cells or to none"),
        ("      entropy: 50%", "      entropy: 45.5%   #!", r"measure\[1\]\.soak\.entropy': .* not support an entropy"),
        ("      entropy: 50%", "      align: 512B   #!", r"measure\[1\]\.soak\.align': .*Zipf's law"),
        ("      workload: few\n", "      workload: few   #!\n      pattern: sequential\n",
         r"measure\[1\]\.soak\.workload': .*access by Zipf's law needs random I/O"),
        ("      slice: 1s", "      slice: 6s   #!", r"measure\[1\]\.soak\.slice': a slice of 6 s is longer"),
    ],
)  # fmt: skip
def test_the_line_of_the_field_is_named(tmp_path: Path, before: str, after: str, reason: str) -> None:
    assert TEXT.count(before) == 1
    text = TEXT.replace(before, after)
    (line,) = (number for number, text_line in enumerate(text.splitlines(), 1) if text_line.endswith("#!"))
    with pytest.raises(UserError, match=reason) as refusal:
        resolved(tmp_path, text)
    assert str(refusal.value).startswith(f"{tmp_path / 'lines.yaml'} line {line}: ")
