"""Simulate drives by files, with fake nvme-cli, hdparm and sg3_utils that can also give false answers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from drivelab.drives.guard import HeldDevice
from drivelab.drives.identified import Identity
from drivelab.drives.node import Node
from drivelab.drives.purge.method import Drives
from drivelab.drives.tools import Output

MIB = 1 << 20
OK = Output(0, "", "")


class FakeDrive:
    """A drive whose medium is a file; `programs` replaces the programs that purge runs, `calls` logs them."""

    def __init__(self, file: Path, name: str) -> None:
        self.file, self.name = file, name
        self.capacity_bytes, self.logical_block_bytes = MIB, 512
        self.serial = "FAKE-1"
        self.trims = True
        self.clock_s = 0.0
        self.calls: list[list[str]] = []
        self.programs: dict[str, Callable[[list[str]], Output]] = {"blkdiscard": self._blkdiscard}
        file.write_bytes(os.urandom(MIB))

    @cached_property
    def approved(self) -> HeldDevice:
        node = Node(os.open(self.file, os.O_RDONLY), self.name, "99:0", "1")
        return HeldDevice(str(self.file), self.name, self.serial, None, node, identity=Identity(self.serial, MIB))

    def run(self, program: str, *arguments: str, timeout_s: float = 60.0) -> Output:
        self.calls.append([program, *arguments])
        return self.programs[program](list(arguments))

    def erase(self, byte: int = 0) -> None:
        with self.file.open("r+b") as file:
            file.write(bytes([byte]) * MIB)

    def scramble(self) -> None:
        with self.file.open("r+b") as file:
            file.write(os.urandom(MIB))

    def called(self, *words: str) -> list[list[str]]:
        """Return the calls that have all of these words."""
        return [call for call in self.calls if set(words) <= set(call)]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make all modules see this drive."""

        def advance(seconds: float) -> None:
            self.clock_s += seconds

        group = Drives.NVME if self.name.startswith("nvme") else Drives.SCSI_FLASH
        for target, value in {
            "drives.tools.run": self.run,
            "drives.erasing.run": lambda name, *words, **options: self.run(*words, **options),
            "drives.sysfs.capacity_bytes": lambda name: self.capacity_bytes,
            "drives.sysfs.logical_block_bytes": lambda name: self.logical_block_bytes,
            "drives.purge.verification.actual_serial": lambda device, name: self.serial,
            "drives.purge.canaries.drop_page_cache": lambda device: None,
            "drives.purge.canaries.reread_partition_table": lambda device: None,
            "drives.purge.by_host.discards": lambda name: self.trims,
            "drives.purge.drives_of": lambda name, sys_root: group,
            "drives.purge.method.now": lambda: self.clock_s,
            "drives.purge.method.pause": advance,
        }.items():
            monkeypatch.setattr(f"drivelab.{target}", value)

    def _blkdiscard(self, arguments: list[str]) -> Output:
        if not any(word.startswith("--offset") for word in arguments):
            self.erase()
        return OK


class FakeNvme(FakeDrive):
    """One namespace of an NVMe drive; its commands call `erases` on the medium."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, "nvme0n1")
        self.controller: dict[str, Any] = {"oacs": 0x2, "fna": 0x4, "sanicap": 0x7, "vwc": 1}
        self.namespace: dict[str, Any] = {"flbas": 0, "dps": 0, "nsze": MIB // 512, "dlfeat": 1, "lbafs": []}
        self.namespaces = [self.name]
        self.allocated: list[int] | None = [1]
        self.erases: Callable[[], None] = self.erase
        self.refused: set[str] = set()
        """Subcommands that fail, such as `format`."""
        self.steps: list[dict[str, Any]] = []
        """Next sanitize logs, one per query; the last one stays."""
        self.after_sanitize = [{"sprog": 65535, "status": "(1) Most Recent Sanitize Command Completed Successfully."}]
        self.programs["nvme"] = self._nvme

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().install(monkeypatch)
        monkeypatch.setattr("drivelab.drives.nvme.namespaces", lambda name: self.namespaces)
        monkeypatch.setattr("drivelab.drives.nvme.controller_of", lambda name, sys_root=None: "/dev/nvme0")

    def _nvme(self, arguments: list[str]) -> Output:
        if arguments[0] in self.refused:
            return Output(1, "", "NVMe status: Invalid Command Opcode(0x1)")
        answer: object = getattr(self, "_" + arguments[0].replace("-", "_"))(arguments)
        return answer if isinstance(answer, Output) else Output(0, json.dumps(answer), "")

    def _id_ctrl(self, arguments: list[str]) -> object:
        return self.controller

    def _id_ns(self, arguments: list[str]) -> object:
        return self.namespace

    def _list_ns(self, arguments: list[str]) -> object:
        return (
            Output(1, "", "failed") if self.allocated is None else {"nsid_list": [{"nsid": n} for n in self.allocated]}
        )

    def _format(self, arguments: list[str]) -> object:
        self.erases()
        return Output(0, "Success formatting namespace:1\n", "")

    def _sanitize(self, arguments: list[str]) -> object:
        action = int(next(word for word in arguments if word.startswith("--sanact")).partition("=")[2])
        if action != 1:
            self.erases()
            self.steps = [
                {
                    "sprog": step["sprog"],
                    "sstat": {"global_erased": 1, "no_cmplted_passes": 0, "status": step["status"]},
                    "cdw10_info": action | 8,
                }
                for step in self.after_sanitize
            ]
        return OK

    def _sanitize_log(self, arguments: list[str]) -> object:
        if not self.steps:
            return {"nvme0": {"sprog": 65535, "sstat": {"status": "(0) NVM Subsystem has never been sanitized."}}}
        return {"nvme0": self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]}


class FakeAta(FakeDrive):
    """A SATA drive; hdparm always exits with 0."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, "sdz")
        self.supported = self.enhanced = True
        self.frozen = False
        self.password: str | None = None
        self.takes_password = self.erase_works = self.gives_up_password = True
        self.zeros_after_trim = True
        self.programs |= {"hdparm": self._hdparm, "sg_requests": _not_scsi, "sg_opcodes": _not_scsi}

    def _hdparm(self, arguments: list[str]) -> Output:
        if arguments[0] == "-I":
            return Output(0, self._identity(), "")
        option, password = arguments[2], arguments[3]
        if option == "--security-set-pass" and self.takes_password and not self.frozen:
            self.password = password
        elif option.startswith("--security-erase") and self.erase_works and password == self.password:
            self.erase()
            self.password = None
        elif option == "--security-disable" and self.gives_up_password and password == self.password:
            self.password = None
        return Output(0, f'security_password: "{password}"\n', "")

    def _identity(self) -> str:
        zeros = "\t   *\tDeterministic read ZEROs after TRIM\n" if self.zeros_after_trim else ""
        security = "Security: \n\tMaster password revision code = 65534\n" + "".join(
            f"\t{'' if has else 'not'}\t{word}\n"
            for word, has in (
                ("supported", self.supported), ("enabled", self.password is not None), ("locked", False),
                ("frozen", self.frozen), ("expired: security count", False),
            )
        )  # fmt: skip
        if self.enhanced:
            security += "\t\tsupported: enhanced erase\n"
        return (
            "\n/dev/sdz:\n\nATA device, with non-removable media\n\tModel Number:       FAKE\n"
            "Commands/features:\n\tEnabled\tSupported:\n\t   *\tSMART feature set\n\t   *\tWrite cache\n"
            f"{zeros}{security}\t2min for SECURITY ERASE UNIT. 8min for ENHANCED SECURITY ERASE UNIT.\n"
        )


class FakeScsi(FakeDrive):
    """A SAS drive; `senses` are the next answers to REQUEST SENSE, and the last one stays."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, "sdz")
        self.supports = {"--opcode=0x48,1", "--opcode=0x48,2", "--opcode=0x48,3", "--opcode=0x4"}
        self.erases: Callable[[], None] = self.erase
        self.senses: list[str] = []
        self.ready = [OK]
        """Answers to TEST UNIT READY."""
        self.protection = "prot_en=0, p_type=0"
        self.programs |= {
            "hdparm": lambda arguments: OK, "sg_opcodes": self._opcodes, "sg_sanitize": self._start,
            "sg_format": self._start, "sg_turs": self._turs, "sg_requests": self._requests, "sg_readcap": self._readcap,
        }  # fmt: skip

    def _opcodes(self, arguments: list[str]) -> Output:
        known = bool(self.supports & set(arguments))
        words = "supported [conforming to SCSI standard]" if known else "NOT supported"
        return Output(0, f"\n  Opcode=0x48  Service_action=0x0002\n  Command is {words}\n", "")

    def _start(self, arguments: list[str]) -> Output:
        if "--fail" not in arguments:
            self.erases()
            self.senses = ["Progress indication: 0.00% done", "Progress indication: 49.99% done", ""]
        return OK

    def _requests(self, arguments: list[str]) -> Output:
        return Output(0, self.senses.pop(0) if self.senses else "No progress indication found, iteration 1", "")

    def _turs(self, arguments: list[str]) -> Output:
        return self.ready.pop(0) if len(self.ready) > 1 else self.ready[0]

    def _readcap(self, arguments: list[str]) -> Output:
        return Output(
            0,
            f"Read Capacity results:\n   Protection: {self.protection}, p_i_exponent=0\n"
            "   Logical block provisioning: lbpme=1, lbprz=1\n   Last LBA=2047 (0x7ff), Number of logical blocks=2048\n"
            "   Logical block length=512 bytes\n   Logical blocks per physical block exponent=3\n",
            "",
        )


def reasons(result: dict[str, Any]) -> dict[str, str]:
    """Return why `auto` skipped each method, from the result of purge."""
    return {attempt["method"]: attempt["reason"] for attempt in result["tried"]}


def _not_scsi(arguments: list[str]) -> Output:
    """Refuse, because libata translates neither SANITIZE nor progress."""
    return Output(0, "  Command is NOT supported\n", "")
