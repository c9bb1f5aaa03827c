"""The code digest covers a script and all that it imports, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab.workflow import code_digest as module
from drivelab.workflow.code_digest import code_digest


def _tampered(monkeypatch: pytest.MonkeyPatch, wanted: Path) -> None:
    """Pretend that one file has an additional statement."""
    read = module._read
    monkeypatch.setattr(module, "_read", lambda path: (read(path)[0] + "changed" * (path == wanted), read(path)[1]))


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("scripts/summary.py", True),
        ("scripts/drivelab/analysis/values/summary.py", True),
        ("scripts/drivelab/tables/schemas.py", True),  # imported through tables.io
        ("scripts/deltas.py", False),
        ("scripts/drivelab/analysis/deltas/deltas.py", False),
        ("scripts/drivelab/run/measure.py", False),
    ],
)
def test_a_script_counts_with_all_that_it_imports(monkeypatch: pytest.MonkeyPatch, file: str, counts: bool) -> None:
    before = code_digest("summary.py")
    _tampered(monkeypatch, module._LIBRARY.parents[1] / file)
    assert (code_digest("summary.py") != before) is counts


def test_an_unknown_module_is_refused() -> None:
    with pytest.raises(ValueError, match=r"analysis\.sumary"):
        code_digest("summary.py", "analysis.sumary")


def test_a_package_that_looks_for_its_modules_counts_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_digest("findings.py")
    _tampered(monkeypatch, module._LIBRARY / "analysis/detectors/knee.py")
    assert code_digest("findings.py") != before


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of what was parsed, which does not exist yet."""
    path = tmp_path / "kept/code.json"
    monkeypatch.setattr(module, "_place", lambda: path)
    _forget()
    yield path
    _forget()


def _forget() -> None:
    module._kept.cache_clear()
    module._read.cache_clear()


def test_what_was_parsed_is_kept_for_the_next_process(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = code_digest("summary.py")
    _forget()
    monkeypatch.setattr(module, "_parse", None)
    assert code_digest("summary.py") == parsed
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_damaged_file_of_what_was_parsed_is_replaced(kept: Path) -> None:
    parsed = code_digest("summary.py")
    whole = kept.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"[]", b""):
        kept.write_bytes(damaged)
        _forget()
        assert code_digest("summary.py") == parsed
        assert kept.read_bytes() == whole


def test_without_a_folder_for_it_everything_is_parsed(kept: Path) -> None:
    kept.parent.write_bytes(b"")
    assert code_digest("summary.py")
    assert not kept.exists()


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ("\n# A comment.\n", False),
        ('\n\ndef more() -> None:\n    """Do nothing."""\n', True),
        ("\nfrom drivelab.core import units\n", True),
    ],
)
def test_changes_of_a_kept_file_count_unless_nothing_runs_differently(
    kept: Path, tmp_path: Path, change: str, counts: bool
) -> None:
    path = tmp_path / "made.py"
    path.write_text('"""A module."""\n\nfrom drivelab.core.files import read_text\n')
    before = module._read(path)
    path.write_text(path.read_text().replace("A module", "The module") + change)
    module._read.cache_clear()
    assert (module._read(path) != before) is counts
