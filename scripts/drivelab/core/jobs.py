"""A script of the workflow: it ends with Snakemake, and its log says what went wrong."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.core.files import sync_file_system
from drivelab.core.terminal import visible
from drivelab.core.termination import end_with

SNAKEMAKE = "DRIVELAB_SNAKEMAKE"
"""Variable with the process ID of the Snakemake that runs the jobs on this host."""


@contextmanager
def reported(log: str) -> Iterator[None]:
    """Write an exception to the job's log and exit with status 1; `drivelab run` shows the first line.

    Otherwise the job's files are on disk when it ends: Snakemake believes them, also after a loss of power. The job
    ends when Snakemake is killed, or it would write the same files as the job of the next run.
    """
    end_with(os.getppid())
    if (snakemake := os.environ.get(SNAKEMAKE)) is not None and not Path(f"/proc/{snakemake}").exists():
        os._exit(1)  # it was killed while this job imported its modules
    try:
        yield
        sync_file_system(Path(log).parent)
    except Exception as error:
        message = f"drivelab: the job of {log} failed: {error}\n{traceback.format_exc()}"
        Path(log).write_text(visible(message), encoding="utf-8")
        sys.exit(1)
