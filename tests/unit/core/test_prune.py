"""What `python -m drivelab.core.prune` removes, and where it refuses."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from drivelab.core import prune
from drivelab.core.errors import UserError


def test_tests_sources_and_solvers_leave_and_modules_stay(tmp_path: Path) -> None:
    leave = ["numpy/tests/test_a.py", "numpy/_core/include/a.h", "pulp/solverdir/cbc/cbc.exe",
             "pyarrow/libarrow_s3.so.2600", "pandas/__pycache__/a.pyc", "pyarrow/libarrow_python.so.2600.1.0",
             "a-1.dist-info/sboms/a.json"]  # fmt: skip
    stay = ["numpy/__init__.py", "pulp/__init__.py", "pyarrow/libarrow.so.2600", "pyarrow/libarrow_python.so.2600",
            "scipy/stats/a.py", "a-1.dist-info/METADATA", "numpy.libs/liba.so", "scipy.libs/liba.so",
            "drivelab/native/a.c", "drivelab/native/replay/a.h"]  # fmt: skip
    for name in (*leave, *stay):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    prune.prune(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(stay)
    assert (tmp_path / "numpy.libs/liba.so").samefile(tmp_path / "scipy.libs/liba.so")


def test_a_library_that_another_environment_links_stays_as_it_is(tmp_path: Path) -> None:
    library = next(Path(sys.prefix, "lib").glob("python3*/site-packages/kiwisolver/*.so"))
    (tmp_path / "package").mkdir()
    other, own = tmp_path / "a.so", tmp_path / "package/a.so"
    shutil.copy(library, other)
    os.link(other, own)
    before = other.read_bytes()
    prune.prune(tmp_path / "package")
    assert other.read_bytes() == before


def test_an_environment_with_other_packages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "prune", lambda folder: pytest.fail(f"pruned {folder}"))
    assert {"pytest", "mypy"} <= set(prune.strangers())
    with pytest.raises(UserError, match=r"also has .* Nothing was removed\. Install drivelab with pipx"):
        prune.main()
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(UserError, match="is not a virtual environment"):
        prune.main()


def test_packages_that_drivelab_needs_are_no_strangers() -> None:
    needed = {"drivelab", "numpy", "snakemake", "jinja2", "rpds-py", "typing-extensions", "sqlmodel"}
    assert not needed & set(prune.strangers())
