"""Errors in protocol files name the line. In these texts that line ends with a comment `#!`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve

TEXT = """\
name: lines
title: t
source: s
description: >
  two
  lines
workloads:
  web: {pattern: random, block_size: 4KiB}
class:
  enterprise: {threads: 2, queue_depth: 8, active_range: 100%}
  client: {threads: 2, queue_depth: 8, active_range: 100%}
condition:
  purge: none
  fill:
    - {pattern: random, block_size: 4KiB, capacity_multiple: 1}
    - {pattern: random, block_size: 4KiB, capacity_multiple: 2}
measure:
  - idle: {time: 1s}
  - loop:
      cells:
        - {workload: web, read_share: [0, 100]}
        - workload: web
          read_share: 50
          threads: [1, 4]
      runtime: 60s
      cold_rounds: 1
      until:
        steady_state:
          window: 5
          max_rounds: 25
          data_excursion: 20%
          slope_excursion: 10%
          track:
            - {read_share: 0, metric: iops}
            - {read_share: 100, metric: iops}
  - repeat:
      phase: again
      over:
        time: [1s, 2s]
      steps:
        - idle: {time: each}
        - soak:
            workload: web
            read_share: 0
            slice: 1s
            until: {time: each}
scale:
  demo:
    workloads:
      web: {block_size: 8KiB}
    fill:
      - {capacity_multiple: 1}
      - {capacity_multiple: 1}
    loop:
      runtime: 1s
    repeat:
      over: {time: [1s]}
      soak:
        slice: 100ms
sources: {class: s, workloads: s, condition: s, idle: s, loop: s, repeat: s}
"""


def mistaken(folder: Path, before: str, after: str, text: str = TEXT) -> tuple[Path, int]:
    """Return a file with one change, and the number of its line that ends with `#!`."""
    assert text.count(before) == 1, before
    path = folder / "lines.yaml"
    path.write_text(text.replace(before, after))
    (line,) = (number for number, text_line in enumerate(path.read_text().splitlines(), 1) if text_line.endswith("#!"))
    return path, line


def resolved_at_every_scale(path: Path) -> list[int]:
    """Return the number of steps at full length and at each scale."""
    protocol = load(path)
    scales = [None, *protocol.body["scale"]]
    return [len(resolve(protocol, "client", scale, {}, "test")[0].steps["measure"]) for scale in scales]


def test_the_text_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "lines.yaml"
    path.write_text(TEXT)
    assert resolved_at_every_scale(path) == [6, 4]
    path.write_text(CELLS)
    resolve(load(path), "client", None, {}, "test")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("name: lines", "name: other   #!", "key 'name': is 'other'"),
        ("title: t", "titel: t   #!", "unknown key 'titel'; did you mean 'title'"),
        ("source: s", "source: s\nsource: t   #!", "duplicate key"),
        ("    - {pattern: random, block_size: 4KiB, capacity_multiple: 2}",
         "    - {pattern: random, block_size: 4KiB}   #!", r"condition\.fill\[1\]': needs either"),
        ("active_range: 100%}\ncondition", "active_range: 0%}   #!\ncondition", r"class\.client\.active_range'"),
        ("idle: {time: 1s}", "idle: {time: 1}   #!", r"measure\[0\]\.idle\.time': 1 is not of type"),
        ("idle: {time: 1s}", "idle: {time: 0s}   #!", r"measure\[0\]\.idle\.time': the duration '0s' is zero"),
        ("idle: {time: 1s}", "idle: {time: each}   #!", r"measure\[0\]\.idle\.time': is 'each'"),
        ("{pattern: random, block_size: 4KiB}\n", "{pattern: random, block_size: 8KiB-4KiB}   #!\n",
         r"workloads\.web\.block_size': block size 8KiB-4KiB is not a valid range"),
        ("{workload: web, read_share: [0, 100]}", "{workload: wbe, read_share: [0, 100]}   #!", "'wbe' does not exist"),
        ("read_share: [0, 100]}", "read_share: [0, 101]}   #!", r"read_share\[1\]': 101 is above 100"),
        ("          threads: [1, 4]", "          threads: [4, 4]   #!", r"threads': \[4, 4\] contains a duplicate"),
        ("        - workload: web\n          read_share: 50", "        - workload: web   #!",
         r"loop\.cells\[1\]': 'read_share' is missing"),
        ("          threads: [1, 4]",
         "          threads: [1, 4]\n        - {workload: web, read_share: 50, threads: 4}   #!",
         r"loop\.cells\[2\]': the loop has RND 4KiB 50/50 T4Q8 twice"),
        ("      cold_rounds: 1", "      cold_runs: 1   #!", "unknown key 'cold_runs'; did you mean 'cold_rounds'"),
        ("      cold_rounds: 1", "      duty_cycle: 120%   #!", r"loop\.duty_cycle': 120% is out of bounds"),
        ("max_rounds: 25", "max_rounds: 4   #!", r"steady_state\.max_rounds': 'max_rounds' is less than 'window'"),
        ("{read_share: 100, metric: iops}", "{read_share: 7, metric: iops}   #!",
         r"steady_state\.track\[1\]': tracks read share 7"),
        ("{read_share: 100, metric: iops}", "{read_share: 50, metric: iops}   #!", "which matches 2 cells"),
        ("        time: [1s, 2s]", "        time: [1s, 2]   #!", r"measure\[2\]\.repeat\.over\.time\[1\]'"),
        ("      over:\n        time: [1s, 2s]", "      over:   #!\n        time: [1s]\n        threads: [1]",
         r"repeat\.over': needs values of exactly one key"),
        ("            slice: 1s", "            slice: 0s   #!", r"repeat\.steps\[1\]\.soak\.slice'"),
        ("      runtime: 1s", "      runtimes: 1s   #!", r"scale\.demo\.loop': unknown key 'runtimes'"),
        ("      runtime: 1s", "      runtime: 1   #!", r"scale\.demo\.loop\.runtime': 1 is not of type"),
        ("      runtime: 1s", "      runtime: 0s   #!", r"scale\.demo\.loop\.runtime': the duration '0s' is zero"),
        ("      runtime: 1s", "      cells: [{workload: web, read_share: 0}]   #!",
         r"scale\.demo\.loop\.cells': tracks read share 100, which matches no cell"),
        ("{block_size: 8KiB}", "{block_size: 8}   #!", r"scale\.demo\.workloads\.web\.block_size': 8 is not of type"),
        ("{block_size: 8KiB}", "{block_size: {8KiB: 99%}}   #!", r"demo\.workloads\.web\.block_size': the shares"),
        ("    loop:\n      runtime: 1s", "    purge: none   #!\n    loop:\n      runtime: 1s", "unknown key 'purge'"),
        ("    loop:\n      runtime: 1s", "    replay: {cold_runs: 1}   #!", "changes a step that the protocol"),
        ("    fill:\n      - {capacity_multiple: 1}\n", "    fill:   #!\n", r"demo\.fill': lists 1 changes for 2"),
        ("        slice: 100ms", "        slcie: 100ms   #!", "unknown key 'slcie'; did you mean 'slice'"),
        ("      over: {time: [1s]}", "      phase: x   #!\n      over: {time: [1s]}", "'phase' of a repeat cannot be"),
    ],
)  # fmt: skip
def test_the_line_is_named(tmp_path: Path, before: str, after: str, reason: str) -> None:
    path, line = mistaken(tmp_path, before, after)
    with pytest.raises(UserError, match=reason) as refusal:
        resolved_at_every_scale(path)
    assert str(refusal.value).startswith(f"{path} line {line}: ")


def test_an_each_without_values_is_named_with_its_line(tmp_path: Path) -> None:
    text = TEXT.replace("        - idle: {time: each}", "        - idle: {time: each}   #!")
    path, line = mistaken(
        tmp_path,
        "        - soak:\n            workload: web\n",
        "        - soak:\n            workload: web\n            threads: each\n",
        text,
    )
    path.write_text(path.read_text().replace("        time: [1s, 2s]", "        threads: [1, 2]"))
    with pytest.raises(UserError, match=f"line {line}: key 'measure\\[2\\].repeat.steps\\[0\\].idle.time': is 'each'"):
        resolve(load(path), "client", None, {}, "test")


def test_a_parameter_without_a_source(tmp_path: Path) -> None:
    path, line = mistaken(tmp_path, "sources: {class: s, workloads: s, condition: s, idle: s, loop: s, repeat: s}",
                          "sources: {class: s}   #!")  # fmt: skip
    with pytest.raises(UserError, match=f"line {line}: key 'sources': has no entry for 'condition.fill'"):
        load(path)


def test_invalid_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    path, line = mistaken(tmp_path, "title: t", "title: [t   #!")
    with pytest.raises(UserError, match=rf"lines\.yaml line {line + 1}: .*; correct the YAML"):
        load(path)


STUDY = """\
name: mine
measurements:
  - {protocol: other}
  - protocol: lines
    set:
      idle: {time: 2s}
      loop:
        runtime: 5s
"""


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("        runtime: 5s", "        runtime: 5   #!", r"key 'measurements\[1\]\.set\.loop\.runtime': 5 is not of"),
        ("        runtime: 5s", "        runtme: 5s   #!", r"key 'measurements\[1\]\.set\.loop': unknown key 'runtme'"),
        ("        runtime: 5s", "        until: {steady_state: {max_rounds: 3}}   #!", "'max_rounds' is less than"),
        ("      idle: {time: 2s}", "      idel: {time: 2s}   #!", r"measurements\[1\]\.set': 'idel' cannot be changed"),
    ],
)
@pytest.mark.parametrize("scale", [None, "demo"])
def test_the_line_of_the_study_is_named(
    tmp_path: Path, before: str, after: str, reason: str, scale: str | None
) -> None:
    protocol = tmp_path / "lines.yaml"
    protocol.write_text(TEXT)
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.replace(before, after))
    (line,) = (number for number, text_line in enumerate(study.read_text().splitlines(), 1) if text_line.endswith("#!"))
    settings: dict[str, Any] = yaml.safe_load(study.read_text())["measurements"][1]["set"]
    with pytest.raises(UserError, match=reason) as refusal:
        resolve(load(protocol), "client", scale, settings, f"{study}: key 'measurements[1]'")
    assert str(refusal.value).startswith(f"{study} line {line}: ")


def test_a_setting_without_a_file_is_named_by_its_key(tmp_path: Path) -> None:
    protocol = tmp_path / "lines.yaml"
    protocol.write_text(TEXT)
    with pytest.raises(UserError, match=r"^the command: key 'set\.loop\.runtime': 5 is not of type string"):
        resolve(load(protocol), "client", None, {"loop": {"runtime": 5}}, "the command")


def test_the_scale_is_not_blamed_for_the_protocol(tmp_path: Path) -> None:
    path, line = mistaken(tmp_path, "{read_share: 100, metric: iops}", "{read_share: 7, metric: iops}   #!")
    with pytest.raises(UserError, match=f"line {line}: key 'measure"):
        resolve(load(path), "client", "demo", {"loop": {"cold_rounds": 2}}, "test")


def test_each_scale_names_its_own_lines(tmp_path: Path) -> None:
    path, line = mistaken(tmp_path, "      runtime: 1s", "      runtime: 0s   #!")
    with pytest.raises(UserError, match=f"line {line}: key 'scale.demo.loop.runtime'"):
        resolve(load(path), "client", "demo", {"idle": {"time": "3s"}}, "test")


CELLS = """\
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
def test_the_line_of_a_field_within_an_entry_is_named(tmp_path: Path, before: str, after: str, reason: str) -> None:
    path, line = mistaken(tmp_path, before, after, CELLS)
    with pytest.raises(UserError, match=reason) as refusal:
        resolve(load(path), "client", None, {}, "test")
    assert str(refusal.value).startswith(f"{path} line {line}: ")
