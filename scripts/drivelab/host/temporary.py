"""Change settings temporarily, and put them back even after kill -9.

A journal holds the original value of each setting. Claims record which processes use the changes. When the last claim
ends, the originals are restored. If a process was killed, the next process restores its settings (`recover`).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import write_atomic
from drivelab.core.private import make_private, run_directory
from drivelab.core.programs import process_state
from drivelab.core.termination import deferred
from drivelab.drives.sysfs import read_text
from drivelab.drives.undo import Command, Undo, from_mapping, perform

_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_JOURNAL = "originals.json"
_BY_HAND = "by-hand"


class Temporary:
    """Changed settings of one scope, `host` or a drive. Several processes may call all methods at once."""

    def __init__(self, scope: str, proc_root: Path = Path("/proc")) -> None:
        if not _SCOPE.fullmatch(scope):
            raise ValueError(f"'{scope}' is not a scope of settings")
        self.folder = run_directory() / "settings" / scope
        self._claims = self.folder / "claims"
        self._proc_root = proc_root

    def remember(self, name: str, undo: Undo) -> None:
        """Record durably, before a change, how to put a setting back.

        The first record of a name is kept: a later value is not the original.
        """
        self.remember_all({name: undo})

    def remember_all(self, undos: Mapping[str, Undo]) -> list[str]:
        """Record many settings at once; return the names that were not recorded before."""
        with self._locked():
            journal = self._read()
            new = {name: undo for name, undo in undos.items() if name not in journal}
            if new:
                self._write(journal | new)
            return list(new)

    def forget(self, names: Sequence[str]) -> None:
        """Remove records of `remember_all` for settings that were not changed."""
        if names:
            with self._locked():
                self._write({name: undo for name, undo in self._read().items() if name not in names})

    @contextmanager
    def claim(self, say: Callable[[str], None] = lambda text: None) -> Iterator[Temporary]:
        """Put changes back at the end of the last overlapping claim.

        `say` receives sentences on restored settings and on failures. Raises UserError without a run directory.
        """
        with self._locked():
            sentences = self._recover()
            self._count(+1)
        try:
            for sentence in sentences:
                say(sentence)
            yield self
        finally:
            with deferred():
                sentences = self._release()
            for sentence in sentences:
                say(sentence)

    def claim_by_hand(self) -> bool:
        """Keep changes until the end of the next study on this host, or `restore`. Return whether the claim is new."""
        with self._locked():
            self._recover()
            is_new = not (self._claims / _BY_HAND).exists()
            (self._claims / _BY_HAND).touch()
            return is_new

    def end_by_hand(self) -> list[str]:
        """End a claim by hand and restore all settings unless a study still runs. Return sentences on them."""
        if not self._exists():
            return []
        with self._locked():
            (self._claims / _BY_HAND).unlink(missing_ok=True)
            return [] if self._living() else self._restore()

    def recover(self) -> list[str]:
        """Restore settings of ended processes if no claim remains.

        Return sentences on them. A setting that cannot be restored is reported and stays in the journal. Other users'
        settings are not touched.
        """
        if not self._exists():
            return []
        with self._locked():
            return self._recover()

    def restore(self) -> list[str]:
        """Restore all settings now; return sentences on them.

        Raises UserError while another process has a claim: its measurements depend on the settings.
        """
        if not self._exists():
            return []
        with self._locked():
            others = [name for name in self._living() if name != _own_claim()]
            if others:
                process = others[0].partition("-")[0]
                raise UserError(
                    f"a study (process {process}) uses the changed settings of {self.folder.name}; drivelab puts them "
                    "back when the study ends; wait for it or end it"
                )
            (self._claims / _BY_HAND).unlink(missing_ok=True)
            return self._restore()

    def remembered(self) -> list[str]:
        """Return the names of the settings to put back."""
        if not self._exists():
            return []
        with self._locked():
            return list(self._read())

    def _exists(self) -> bool:
        return os.access(self.folder, os.R_OK | os.W_OK | os.X_OK)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Create the folder if needed and lock it. Flock(2) ends with the process that holds it."""
        try:
            make_private(self.folder.parent)
            # drivelab runs commands from the journal, so no other user may write to it.
            make_private(self.folder, 0o700)
            make_private(self._claims, 0o700)
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise UserError(
                f"cannot change settings temporarily: {self.folder} is not usable ({error.strerror}); run as root"
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._forget_other_boots()
            yield
        finally:
            os.close(descriptor)

    def _forget_other_boots(self) -> None:
        """Drop journal and claims of an earlier boot.

        A reboot resets sysfs, timers and swap, and reuses process numbers. Restoring old values would change settings.
        """
        journal = self.folder / _JOURNAL
        if journal.exists() and self._body().get("boot_id") == self._boot_id():
            return
        for claim in self._claims.iterdir():
            claim.unlink()
        self._write({})

    def _boot_id(self) -> str:
        return read_text(self._proc_root / "sys/kernel/random/boot_id") or "unknown"

    def _body(self) -> dict[str, Any]:
        path = self.folder / _JOURNAL
        try:
            body = json.loads(path.read_text())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise UserError(
                f"{path} is not a journal of settings; remove it, and restart the host to reset its settings"
            )
        return body

    def _read(self) -> dict[str, Undo]:
        return {name: from_mapping(body) for name, body in self._body()["originals"].items()}

    def _write(self, originals: Mapping[str, Undo]) -> None:
        """Replace the journal atomically."""
        body = {"boot_id": self._boot_id(), "originals": {name: asdict(undo) for name, undo in originals.items()}}
        write_atomic(self.folder / _JOURNAL, json.dumps(body, indent=0))

    def _living(self) -> list[str]:
        """Return the claims of running processes; remove those of ended processes."""
        living = []
        for claim in self._claims.glob("[0-9]*-[0-9]*"):
            pid, _, ticks = claim.name.partition("-")
            if process_state(int(pid))[1] == int(ticks):
                living.append(claim.name)
            else:
                claim.unlink()
        return living

    def _count(self, step: int) -> None:
        """Change the number of claims of this process. Claims may overlap within a process."""
        path = self._claims / _own_claim()
        count = int(read_text(path) or 0) + step
        if count > 0:
            path.write_text(str(count))
        else:
            path.unlink(missing_ok=True)

    def _release(self) -> list[str]:
        with self._locked():
            self._count(-1)
            if self._living():
                return []
            (self._claims / _BY_HAND).unlink(missing_ok=True)
            return self._restore()

    def _recover(self) -> list[str]:
        return [] if self._living() or (self._claims / _BY_HAND).exists() else self._restore()

    def _restore(self) -> list[str]:
        """Restore the last change first; retry failures, as settings can need each other."""
        originals = self._read()
        pending, failed, restored = list(reversed(originals)), dict[str, str](), list[str]()
        while pending:
            failed = {}
            for name in pending:
                undo = originals[name]
                reason = perform(undo)
                if reason is not None:
                    failed[name] = reason
                    continue
                restored.append(name)
                if isinstance(undo, Command):  # unlike a write, it must not be repeated after a crash
                    self._write({n: u for n, u in originals.items() if n not in restored})
            if len(failed) == len(pending):
                break
            pending = list(failed)
        if originals:
            self._write({name: undo for name, undo in originals.items() if name in failed})
        return _sentences(restored, failed)


def _sentences(restored: list[str], failed: Mapping[str, str]) -> list[str]:
    """Return one sentence per setting, which can have hundreds of `setting: place`."""
    places: dict[str, int] = {}
    for name in restored:
        setting = name.partition(": ")[0]
        places[setting] = places.get(setting, 0) + 1
    sentences = [f"{setting}: put back" + (f" ({n} places)" if n > 1 else "") for setting, n in places.items()]
    reasons: dict[str, list[str]] = {}
    for name, reason in failed.items():
        reasons.setdefault(name.partition(": ")[0], []).append(reason)
    for setting, failures in reasons.items():
        more = f", and {len(failures) - 1} more places" if len(failures) > 1 else ""
        sentences.append(f"{setting}: could not be put back: {failures[0]}{more}; the next study tries again")
    return sentences


def recover_all() -> list[str]:
    """Call `Temporary.recover` for every scope with a journal; return all sentences."""
    base = run_directory() / "settings"
    return [sentence for folder in sorted(base.glob("*")) for sentence in Temporary(folder.name).recover()]


def _own_claim() -> str:
    return f"{os.getpid()}-{process_state(os.getpid())[1]}"
