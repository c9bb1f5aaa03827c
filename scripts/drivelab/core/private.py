"""Folders and files that no other user can change: run directory, caches, the code of a project.

drivelab runs programs and restores settings from them. Their modes are explicit, because a umask of 000 would let
every user write there. A folder that is there already is believed only if no other user can have made or changed it.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
import tempfile
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.files import real_path

_BASE = "/run/drivelab"
_NAMED = "Set DRIVELAB_RUN_DIR to a folder that you own"
OTHERS, GROUP_AND_OTHERS = stat.S_IWOTH, stat.S_IWGRP | stat.S_IWOTH


def run_directory() -> Path:
    """Return `$DRIVELAB_RUN_DIR`, or /run/drivelab; the folder may not exist yet.

    Raises UserError if another user can write there, who could make a command restore settings of their choice.
    """
    folder = Path(os.path.abspath(os.environ.get("DRIVELAB_RUN_DIR") or _BASE))  # noqa: PTH100 - follows no link
    refuse_shared(folder, _NAMED)
    return folder


def own_run_directory() -> Path:
    """Return `run_directory` if this user may write there, else a folder of this user for what others need not see."""
    folder = run_directory()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if os.access(existing, os.W_OK):
        return folder
    session = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(session if session.startswith("/") else tempfile.gettempdir())
    return make_private(base / f"drivelab-{os.geteuid()}", 0o700, remedy=_NAMED)


def make_private(folder: Path, mode: int = 0o755, *, remedy: str = _NAMED) -> Path:
    """Return a folder that only this user and root can write to; make it, and missing parents, with explicit modes.

    Raises UserError, which ends with `remedy`, if another user can write there; OSError if it cannot be made.
    """
    for path in (*reversed(folder.parents), folder):
        if not os.path.lexists(path):
            try:
                path.mkdir(mode)
            except FileExistsError:  # another process has made it meanwhile
                continue
            path.chmod(mode)  # mkdir(2) subtracts the umask
    refuse_shared(folder, remedy)
    return folder


def refuse_shared(folder: Path, remedy: str = _NAMED) -> None:
    """Raise UserError unless a folder is missing, or a real folder that only this user and root can write to."""
    try:
        status = folder.lstat()
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        fault = "is a symbolic link, which may lead anywhere" if stat.S_ISLNK(status.st_mode) else "is not a folder"
    elif status.st_uid not in (0, os.geteuid()):
        fault = f"belongs to user {user_name(status.st_uid)}, who could change what drivelab keeps there"
    elif status.st_mode & GROUP_AND_OTHERS:
        fault = (
            f"other users can write to it (mode {stat.S_IMODE(status.st_mode):04o}), and may have changed what "
            "drivelab keeps there. Remove it"
        )
    elif _is_open_to_all(folder.parent):
        fault = f"every user can replace it, because every user can write to {folder.parent}"
    else:
        return
    raise UserError(f"{folder}: {fault}. {remedy}.")


def _is_open_to_all(folder: Path) -> bool:
    """Return whether every user can rename the files of others in a folder: writable, and not sticky as /tmp is."""
    mode = folder.stat().st_mode
    return bool(mode & OTHERS) and not mode & stat.S_ISVTX


def trusted_users() -> Collection[int]:
    """Return the users whose code this process may run: this user, root, and who started it with sudo.

    The rule is git's (safe.directory): a user who may run commands as root with sudo needs no planted file.
    """
    started = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid()} | ({int(started)} if started.isascii() and started.isdecimal() else set())


def refuse_foreign_code(paths: Iterable[Path], alone: Iterable[Path] = ()) -> None:
    """Raise UserError if another user owns or can write to a file or folder whose content drivelab would run.

    Covers all files below `paths`, the targets of symbolic links, and the folders of the targets, and the folders
    `alone` without their files. The group may write, as for git. Missing paths are passed over.
    """
    trusted, seen = trusted_users(), set[Path]()
    folders = set(alone)
    todo = [*paths, *folders]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # what cannot be read is not run either
            continue
        is_link = stat.S_ISLNK(status.st_mode)
        if status.st_uid not in trusted:
            raise UserError(
                f"{path}: belongs to user {user_name(status.st_uid)}, and drivelab would run commands from it as user "
                f"{user_name(os.geteuid())}. Change to a folder of your own. If you trust this project, type: "
                f"chown -hR {os.geteuid()} {shlex.quote(str(path))}"
            )
        if not is_link and status.st_mode & OTHERS:
            raise UserError(
                f"{path}: every user can write to it, and drivelab would run commands from it. Check it for changes, "
                f"then type: chmod -R o-w {shlex.quote(str(path))}"
            )
        if is_link:
            target = real_path(path)
            _refuse_open_folder(target.parent)
            todo.append(target)
        elif stat.S_ISDIR(status.st_mode) and path not in folders:
            with suppress(PermissionError):
                todo += path.iterdir()


def _refuse_open_folder(folder: Path) -> None:
    if folder.is_dir() and (_is_open_to_all(folder) or folder.stat().st_uid not in trusted_users()):
        raise UserError(
            f"{folder}: other users can replace its files, and a symbolic link of the project points there. Copy the "
            "file into the project."
        )


def user_name(uid: int) -> str:
    """Return a user's name and number, or only the number if it has no name here."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)


def restrict_umask() -> None:
    """Keep every other user, and for root its group too, from writing to any file that this process will make."""
    least = GROUP_AND_OTHERS if os.geteuid() == 0 else OTHERS
    os.umask(os.umask(GROUP_AND_OTHERS) | least)
