"""A Slurm of two hosts, and a project whose drives are spread over them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_project import DRIVES, ClusterProject
from emulation import host
from slurm import PROGRAMS, Slurm

ROOT = Path(__file__).resolve().parents[2]
host.end_by_signals()


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Start Slurm; end the session with COULD_NOT_RUN if that is not possible."""
    try:
        missing = sorted({package for program, package in PROGRAMS.items() if host.which(program) is None})
        if missing:
            host.install(missing)
        set_up = subprocess.run([ROOT / "drivelab", "setup", "cluster"], capture_output=True, text=True, check=False)
        if set_up.returncode != 0:
            raise host.UnavailableError((set_up.stderr.strip().splitlines() or ["the set-up printed nothing"])[-1])
        cluster = Slurm(tmp_path_factory.mktemp("slurm"), list(DRIVES))
    except host.UnavailableError as reason:
        pytest.exit(f"Slurm could not be tested here: {reason}", host.COULD_NOT_RUN)
    try:
        try:
            cluster.start()
        except host.UnavailableError as reason:
            pytest.exit(f"Slurm could not be tested here: {reason}", host.COULD_NOT_RUN)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def project(slurm: Slurm, tmp_path: Path) -> Iterator[ClusterProject]:
    """A project with a study that no other test runs."""
    cluster_project = ClusterProject(tmp_path / "project", slurm)
    yield cluster_project
    cluster_project.end()
