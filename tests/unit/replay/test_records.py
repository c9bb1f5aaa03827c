"""Schedule and results files: same layout in C and Python, refused if cut."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_files import BLOCK, make_records, write_schedule

from drivelab.core.errors import UserError
from drivelab.native import ENGINE_SOURCES
from drivelab.plan.replay_choice import MOST_IN_FLIGHT
from drivelab.replay import engine_records
from drivelab.replay.engine_records import (
    RESULT_RECORD,
    RESULTS_HEADER,
    SCHEDULE_HEADER,
    SCHEDULE_RECORD,
    ScheduleWriter,
    checksum,
    make_results,
    open_results,
    open_schedule,
)

STRUCTURES = {
    "schedule_header": SCHEDULE_HEADER,
    "schedule_record": SCHEDULE_RECORD,
    "results_header": RESULTS_HEADER,
    "result_record": RESULT_RECORD,
}
NUMBERS = {
    "FUA": engine_records.FUA, "LONGEST_TRANSFER_BYTES": engine_records.LONGEST_TRANSFER_BYTES,
    "MOST_IN_FLIGHT": MOST_IN_FLIGHT, "RESULTS_HEADER_BYTES": engine_records.RESULTS_HEADER_BYTES,
    **{name.upper().replace("-", "_"): code for name, code in engine_records.OPERATION_CODES.items()},
    "OPERATIONS": len(engine_records.OPERATION_CODES),
    **{name.upper().replace(" ", "_"): code for code, name in enumerate(engine_records.STATES)},
    "NOT_ISSUED": engine_records.NOT_ISSUED, "ISSUED": engine_records.ISSUED, "COMPLETED": engine_records.COMPLETED,
    "NOT_WAITED": engine_records.WAITED_FOR.index(""), "WAITED_FOR_DEPTH": engine_records.WAITED_FOR.index("depth"),
    "WAITED_FOR_DEPENDENCY": engine_records.WAITED_FOR.index("dependency"),
}  # fmt: skip


def test_the_layout_in_c_is_the_same(tmp_path: Path) -> None:
    """Compare names, offsets, sizes and constants with the C compiler's."""
    lines, expected = ['printf("%s %s\\n", SCHEDULE_MAGIC, RESULTS_MAGIC);'], ["DLSCHED1 DLRESLT1"]
    for structure, layout in STRUCTURES.items():
        lines.append(f'printf("{structure} %zu\\n", sizeof(struct {structure}));')
        expected.append(f"{structure} {layout.itemsize}")
        fields = layout.fields
        assert fields is not None
        for name, (kind, offset, *_) in fields.items():
            member = f"((struct {structure} *)0)->{name}"
            lines.append(f'printf("{name} %zu %zu\\n", offsetof(struct {structure}, {name}), sizeof({member}));')
            expected.append(f"{name} {offset} {kind.itemsize}")
    for name, value in NUMBERS.items():
        lines.append(f'printf("{name} %lu\\n", (unsigned long){name});')
        expected.append(f"{name} {value}")
    source = tmp_path / "layout.c"
    source.write_text(
        '#include <stddef.h>\n#include <stdio.h>\n#include "records.h"\n'
        "int main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
    )
    program = tmp_path / "layout"
    subprocess.run(["cc", "-std=c11", f"-I{ENGINE_SOURCES}", "-o", str(program), str(source)], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed == expected


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=10, max_size=40).map(lambda words: words[: len(words) // 5 * 5]),
    st.data(),
)
def test_the_checksum_detects_altered_and_moved_words(words: list[int], data: st.DataObject) -> None:
    whole = np.array(words, "<u8").view(SCHEDULE_RECORD)
    cut = data.draw(st.integers(0, len(whole)))
    assert checksum(whole[cut:], cut, checksum(whole[:cut])) == checksum(whole)
    place, other = data.draw(st.integers(0, len(words) - 1)), data.draw(st.integers(0, len(words) - 1))
    altered = list(words)
    altered[place], altered[other] = altered[other], altered[place]
    # Swapping words that differ by 2^63 can keep the sum; any other swap changes it.
    if altered != words and ((words[place] - words[other]) * 2 * (place - other)) % 2**64:
        assert checksum(np.array(altered, "<u8").view(SCHEDULE_RECORD)) != checksum(whole)
    altered = list(words)
    altered[place] ^= 1 << data.draw(st.integers(0, 63))
    assert checksum(np.array(altered, "<u8").view(SCHEDULE_RECORD)) != checksum(whole)


def test_a_schedule_can_be_written_in_parts(tmp_path: Path) -> None:
    whole = make_records({"deadline_ns": 10 * i, "offset_bytes": i * BLOCK} for i in range(100))
    path = tmp_path / "s.schedule"
    with ScheduleWriter(path, 1 << 20, BLOCK) as writer:
        for first in range(0, 100, 30):
            writer.write(whole[first : first + 30])
        assert not path.exists()
    mapped = open_schedule(path)
    assert (mapped.records == whole).all()
    assert mapped.header["checksum"] == checksum(whole)
    assert mapped.header["longest_bytes"] == BLOCK
    assert [file.name for file in tmp_path.iterdir()] == ["s.schedule"]


def test_a_schedule_that_fails_midway_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with ScheduleWriter(tmp_path / "s.schedule", 1 << 20, BLOCK) as writer:
            writer.write(make_records([{}]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_only_transfers_count_as_longest(tmp_path: Path) -> None:
    mixed = make_records([{"operation": "discard", "length_bytes": 1 << 19}, {"operation": "write"}])
    assert open_schedule(write_schedule(tmp_path / "s", mixed)).header["longest_bytes"] == BLOCK


def test_results_begin_empty(tmp_path: Path) -> None:
    make_results(tmp_path / "r", 1000, 77)
    mapped = open_results(tmp_path / "r")
    assert (mapped.header["capacity"], mapped.header["schedule_checksum"], mapped.header["state"]) == (1000, 77, 0)
    assert len(mapped.records) == 1000
    assert not mapped.records["state"].any()


@pytest.mark.parametrize("kept", [0, 7, 63, 64, 100, -1])
def test_truncated_files_are_refused(tmp_path: Path, kept: int) -> None:
    whole = write_schedule(tmp_path / "s", make_records([{}, {}])).read_bytes()
    (tmp_path / "cut").write_bytes(whole[:kept])
    with pytest.raises(UserError, match="replay again"):
        open_schedule(tmp_path / "cut")
    make_results(tmp_path / "r", 2, 0)
    (tmp_path / "cut").write_bytes((tmp_path / "r").read_bytes()[:kept])
    with pytest.raises(UserError, match="replay again"):
        open_results(tmp_path / "cut")
