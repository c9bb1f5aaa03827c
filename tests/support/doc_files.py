"""Create the reader's files that the docs use: results of other tools, traces, captures."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import import_origins as origins
from trace_files import write_capture


def given(page: str, folder: Path) -> None:
    """Write the files that a page's commands read into the copy of the project."""
    for make in _OF.get(page, ()):
        make(folder)


def _tkperf(folder: Path) -> None:
    for name in ("old.xml", "s4600.xml"):
        origins.tkperf(folder / name)


def _fio(folder: Path) -> None:
    for second in range(3):
        job = origins.job(1000.0 + second, 0.0, origins.options())
        origins.write(folder / f"runs/{second}.json", origins.document(job, second=100 * second))


def _printed(folder: Path) -> None:
    (folder / "iops.csv").write_text("block_size,100/0,65/35,0/100\n4k,80928.6,66664.6,61265.2\n")


def _msr(folder: Path) -> None:
    lines = [f"{128166372003061629 + 10000 * i},usr,0,Read,{4096 * i},4096,{1000 + i}" for i in range(50)]
    for name in ("web.csv.gz", "usr_0.csv.gz"):
        with gzip.open(folder / name, "wt") as file:
            file.write("\n".join(lines) + "\n")


def _alibaba(folder: Path) -> None:
    with gzip.open(folder / "io_traces.csv.gz", "wt") as file:
        file.writelines(f"{419 + i % 2},R,{4096 * i},4096,{1577808000000000 + 100 * i}\n" for i in range(50))


def _capture(folder: Path) -> None:
    events = []
    for i in range(20):
        at, sector = 1_000_000 * i, 8 * i
        events += [(at + 1000 * step, letter, "R", sector, 4096) for step, letter in enumerate("QDC")]
    write_capture(folder / "raw", events)


def _demo_as_study(folder: Path) -> None:
    shutil.copy(folder / "config/demo.yaml", folder / "config/study.yaml")


_OF = {
    "README.md": (_tkperf, _msr, _capture),
    "docs/traces.md": (_capture,),
    "docs/archive.md": (_demo_as_study,),
    "docs/cluster.md": (_demo_as_study,),
    "docs/importing.md": (_tkperf, _fio, _printed),
    "docs/trace_formats.md": (_alibaba, _msr),
}
