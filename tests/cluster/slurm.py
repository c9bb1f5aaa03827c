"""A Slurm of two hosts on this machine: configuration, keys, ports and state of its own, in a folder."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from emulation import host
from waiting import wait_until

PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
"""Program and its Debian package."""
HOSTS = ("host0", "host1")


class Slurm:
    """Controller, two hosts, and what authenticates them; every host has every drive of the tests."""

    def __init__(self, folder: Path, drives: list[str]) -> None:
        """Raises UnavailableError where it does not come up."""
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
        (folder / "gres.conf").write_text("".join(f"NodeName={one} {kind}" for one in HOSTS for kind in kinds))
        # What a job starts a step with knows the configuration by its usual place alone.
        step = folder / "bin/srun"
        step.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {host.which("srun")} "$@"\n')
        step.chmod(0o755)

    def _configuration(self, drives: list[str]) -> str:
        # All ports are bound at the same time, so that they are different ones.
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        controller, *ports = [one.getsockname()[1] for one in listeners]
        for one in listeners:
            one.close()
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
SlurmdTimeout=15
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

    def start(self) -> None:
        """Raises UnavailableError, with the reason, where something does not come up."""
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
        """Start a host, and wait for the controller to give it jobs."""
        self._start(name, ["slurmd", "-D", "-N", name])
        self._until(lambda: self.state_of(name) == "idle", name)

    def kill_host(self, name: str) -> None:
        """As if its power were cut: nothing on it ends in order. Returns when the controller knows."""
        daemon = self._processes.pop(name)
        for pid in [daemon.pid, *self._on_host(name)]:
            os.kill(pid, signal.SIGKILL)
        daemon.wait()
        wait_until(lambda: self.state_of(name).startswith("down"), f"{name} to be down")

    def stop(self) -> None:
        """End all, jobs first."""
        for name in HOSTS:
            for pid in self._on_host(name):
                os.kill(pid, signal.SIGKILL)
        for process in reversed(self._processes.values()):
            process.terminate()
            process.wait()

    def ask(self, *command: str) -> str:
        """What one of Slurm's programs prints."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout

    def state_of(self, name: str) -> str:
        found = subprocess.run(["sinfo", "-h", "-n", name, "-o", "%T"], env=self.environment, capture_output=True,
                               text=True, check=False)  # fmt: skip
        return found.stdout.strip()

    def completed(self) -> list[dict[str, str]]:
        """Jobs that have ended, in the order of their submission, as Slurm's own record tells of them."""
        path = self.folder / "completed.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [dict(field.partition("=")[::2] for field in line.split(" ")) for line in lines]
        return sorted(found, key=lambda job: int(job["JobId"]))

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
        wait_until(lambda: condition() or process.poll() is not None, f"{name} to be up")
        if process.poll() is not None:
            words = (self.folder / f"{name}.output").read_text(errors="replace").strip().splitlines()
            raise host.UnavailableError(f"{name} does not start: {words[-1] if words else 'it says nothing'}")

    def _on_host(self, name: str) -> list[int]:
        """Processes of the jobs on a host, those first that watch the others and would tell of their end."""
        log, configuration = self.folder / f"{name}.log", f"SLURM_CONF={self.folder}/slurm.conf".encode()
        host_in_slurm = f"SLURMD_NODENAME={name}".encode()
        watchers, others = [], []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                words = (directory / "environ").read_bytes().split(b"\0")
                if (directory / "cmdline").read_bytes().startswith(b"slurmstepd"):
                    if log in (one.readlink() for one in (directory / "fd").iterdir()):
                        watchers.append(int(directory.name))
                elif host_in_slurm in words and configuration in words:
                    others.append(int(directory.name))
            except OSError:
                continue
        return watchers + others
