"""The worked example of docs/how-to/purge-method.md: one file makes a purge method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doors import carried_out, example
from fake_drives import FakeNvme

from drivelab.core.errors import UserError
from drivelab.drives.purge import METHODS, purge

STEPS = """
from drivelab.plan.schema import load_schema
from drivelab.drives.purge import METHODS, methods_for
from drivelab.drives.purge.method import Drives
from drivelab.reference.json_schemas import sections
order = [name for name, method in METHODS.items() if Drives.NVME in method.drives]
assert order[-3:] == ["nvme-sanitize-overwrite", "write-zeroes", "overwrite"], order
assert methods_for("nvme0n1") == tuple(order)
assert "write-zeroes" not in methods_for("loop0")
assert "write-zeroes" in load_schema("study")["properties"]["purge"]["enum"]
assert "`write-zeroes`" in sections("study")
"""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names of the example, whose method is among the known ones."""
    names: dict[str, Any] = {}
    exec(compile(example("purge-method.md")[1], "write_zeroes.py", "exec"), names)
    (method,) = names["METHODS"]
    monkeypatch.setitem(METHODS, method.name, method)
    return names


def test_auto_and_studies_know_the_method(tmp_path: Path) -> None:
    carried_out("purge-method.md", tmp_path, STEPS)


def test_the_method_purges_and_is_verified(nvme: FakeNvme, module: dict[str, Any]) -> None:
    module["read_text"] = lambda path: "4096"
    result = purge(nvme.approved, "write-zeroes")
    assert (result["method"], result["leaves"]) == ("write-zeroes", "written once")
    assert "places read as zeros" in result["content"]
    assert result["evidence"]["command"][:2] == ["blkdiscard", "--zeroout"]


def test_a_drive_without_the_command_is_refused(nvme: FakeNvme, module: dict[str, Any]) -> None:
    module["read_text"] = lambda path: "0"
    with pytest.raises(UserError, match="cannot be purged by write-zeroes: the drive does not support Write Zeroes"):
        purge(nvme.approved, "write-zeroes")
