"""A whole run in a folder that holds modules of common names, and its archive, which does not name the user."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from mini_project import STUDY, Project

NAMES = ("argparse", "contextlib", "json", "numpy", "pandas", "snakemake", "subprocess", "tempfile", "typst", "yaml")
USER = "zoe-user-name"
_STREAM = re.compile(rb"stream\r?\n(.*?)endstream", re.DOTALL)


def _text(path: Path) -> bytes:
    """Return all text of a file: that of Parquet with its metadata and columns, that of PDF with its streams."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return f"{table.schema.metadata} {table.to_pydict()}".encode()
    data = path.read_bytes()
    streams = _STREAM.findall(data) if path.suffix == ".pdf" else []
    return data + b"".join(zlib.decompressobj().decompress(part) for part in streams if part[:1] == b"x")


@pytest.mark.long
def test_planted_modules_do_not_run_and_the_archive_names_nobody(tmp_path: Path) -> None:
    project = Project(tmp_path / USER / "project")
    text = STUDY.replace("[op7, op28]", "[op7]").replace("basis: op7\n", "")
    (project.folder / "config/mini.yaml").write_text(text)
    here = tmp_path / "here"
    here.mkdir()
    for name in NAMES:
        (here / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nraise SystemExit('planted')\n"
        )
    names = {"HOME": str(tmp_path / USER), "USER": USER, "LOGNAME": USER}
    environment = {name: value for name, value in project.environment.items() if name != "PYTHONSAFEPATH"} | names
    archive = tmp_path / "study.tar.gz"
    for words in (["run", "config/mini.yaml"], ["archive", "create", "config/mini.yaml", "-o", str(archive)]):
        command = [str(Path(sys.executable).with_name("drivelab")), *words]
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert list(here.glob("*.ran")) == []

    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "out", filter="data")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {".parquet", ".pdf", ".html", ".json", ".log"} <= {path.suffix for path in files}
    assert [str(path) for path in files if USER.encode() in _text(path) or USER in str(path)] == []
