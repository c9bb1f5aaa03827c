"""A Slurm of two hosts on this machine, with separate configuration, keys, ports and state in a folder."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from emulation import host
from waits import wait_until

PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
"""Programs and their Debian packages."""
HOSTS = ("host0", "host1")


class Slurm:
    """Controller, two hosts and munge; every host has every drive of the tests."""

    def __init__(self, folder: Path, drives: list[str]) -> None:
        """Write the configuration to a folder."""
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("bin", "state", "munge"):
            (folder / name).mkdir()
        folder.chmod(0o755)
        (folder / "munge").chmod(0o700)
        (folder / "munge/key").write_bytes(os.urandom(1024))
        (folder / "munge/key").chmod(0o600)
        (folder / "slurm.conf").write_text(self._configuration(drives))
        kinds = [f"Name=nvme Type={drive.replace('-', '_')} Count=1\n" for drive in drives]
        (folder / "gres.conf").write_text("".join(f"NodeName={host} {kind}" for host in HOSTS for kind in kinds))
        # srun within a job reads the configuration only from its default path.
        step = folder / "bin/srun"
        step.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {host.which("srun")} "$@"\n')
        step.chmod(0o755)

    def _configuration(self, drives: list[str]) -> str:
        # All ports are bound at the same time, so that they differ.
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        controller, *ports = [listener.getsockname()[1] for listener in listeners]
        for listener in listeners:
            listener.close()
        gres = ",".join(f"nvme:{drive.replace('-', '_')}:1" for drive in drives)
        nodes = "".join(
            f"NodeName={name} NodeHostname={platform.node()} NodeAddr=127.0.0.1 Port={port} CPUs={os.cpu_count()} "
            f"RealMemory=3000 Gres={gres}\n"
            for name, port in zip(HOSTS, ports, strict=True)
        )
        return f"""\
ClusterName=drivelab-test
SlurmctldHost={platform.node()}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge/socket
SlurmUser=root
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool.%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/%n.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/%n.log
JobCompType=jobcomp/filetxt
JobCompLoc={self.folder}/completed.txt
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=nvme
ReturnToService=2
SlurmdTimeout=60
MessageTimeout=60
MinJobAge=86400
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

    def start(self) -> None:
        """Start all daemons; raises UnavailableError, with the reason, if one does not start."""
        munge = self.folder / "munge"
        places = [f"--{kind}={munge}/{name}" for kind, name in (
            ("socket", "socket"), ("key-file", "key"), ("log-file", "log"), ("pid-file", "pid"), ("seed-file", "seed")
        )]  # fmt: skip
        self._start("munged", ["munged", "--foreground", "--force", *places])
        self._until(lambda: (munge / "socket").exists(), "munged")
        self._start("slurmctld", ["slurmctld", "-D", "-c"])
        for name in HOSTS:
            self.start_host(name)

    def start_host(self, name: str) -> None:
        """Start a host, and wait until the controller reports it idle."""
        self._start(name, ["slurmd", "-D", "-N", name])
        self._until(lambda: self.state_of(name) == "idle", name)

    def kill_host(self, name: str) -> None:
        """Kill a host as in a power failure; return when the controller reports it down."""
        daemon = self._processes.pop(name)
        for pid in [daemon.pid, *self._on_host(name)]:
            os.kill(pid, signal.SIGKILL)
        daemon.wait()
        wait_until(lambda: self.state_of(name).startswith("down"), tell=lambda: f"{name} is not down")

    def stop(self) -> None:
        """Stop everything, jobs first."""
        for name in HOSTS:
            for pid in self._on_host(name):
                os.kill(pid, signal.SIGKILL)
        for process in reversed(self._processes.values()):
            process.terminate()
            process.wait()

    def ask(self, *command: str) -> str:
        """Run a Slurm program and return its output."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout

    def state_of(self, name: str) -> str:
        answer = subprocess.run(["sinfo", "-h", "-n", name, "-o", "%T"], env=self.environment, capture_output=True,
                               text=True, check=False)  # fmt: skip
        return answer.stdout.strip()

    def completed(self) -> list[dict[str, str]]:
        """Return the ended jobs from Slurm's completion log, in the order of their submission."""
        path = self.folder / "completed.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        jobs = [dict(field.partition("=")[::2] for field in line.split(" ")) for line in lines]
        return sorted(jobs, key=lambda job: int(job["JobId"]))

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
        return {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": path}

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.output").open("wb") as output:
            self._processes[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def _until(self, condition: Callable[[], bool], name: str) -> None:
        process = self._processes[name]
        wait_until(lambda: condition() or process.poll() is not None, tell=lambda: f"{name} is not up")
        if process.poll() is not None:
            lines = (self.folder / f"{name}.output").read_text(errors="replace").strip().splitlines()
            raise host.UnavailableError(f"{name} does not start: {lines[-1] if lines else 'it printed nothing'}")

    def _on_host(self, name: str) -> list[int]:
        """Return the processes of the jobs on a host; first the supervisors, which would report the others' end."""
        log, configuration = self.folder / f"{name}.log", f"SLURM_CONF={self.folder}/slurm.conf".encode()
        host_in_slurm = f"SLURMD_NODENAME={name}".encode()
        watchers, others = [], []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                words = (directory / "environ").read_bytes().split(b"\0")
                if (directory / "cmdline").read_bytes().startswith(b"slurmstepd"):
                    if log in (path.readlink() for path in (directory / "fd").iterdir()):
                        watchers.append(int(directory.name))
                elif host_in_slurm in words and configuration in words:
                    others.append(int(directory.name))
            except OSError:
                continue
        return watchers + others
