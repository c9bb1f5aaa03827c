"""The `drivelab` command."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import drivelab
from drivelab.core.errors import UserError
from drivelab.core.terminal import escape_output, say

if TYPE_CHECKING:
    from drivelab.cli.parser import RootParser

_PLACES = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.EEXIST, errno.ELOOP,
           errno.ENAMETOOLONG, errno.EINVAL, errno.EFBIG)  # fmt: skip
"""Errors caused by the path that the user named, not by a defect."""


def parser() -> RootParser:
    """Return the parser with all subcommands; the modules of the folders register theirs."""
    from drivelab.cli import completion
    from drivelab.cli.look import compare, query, report
    from drivelab.cli.measure import plan, protocol, run, stage, study, virtual, watch
    from drivelab.cli.parser import RootParser
    from drivelab.cli.share import archive, import_results, verify
    from drivelab.cli.start import doctor, drives, init, quick
    from drivelab.cli.traces import capture, replay, trace

    root = RootParser(
        prog="drivelab",
        description=drivelab.__doc__,
        epilog="In a checkout, './drivelab setup' installs everything that the commands need. Every other command does "
        "so if something is missing. './drivelab setup cluster' also installs the packages that submit jobs to Slurm. "
        "'./drivelab test' runs drivelab's own tests.",
    )
    root.add_argument("--version", action="version", version=f"drivelab {drivelab.__version__}")
    for module in (
        archive, capture, compare, completion, doctor, drives, import_results, init, plan, protocol, query, quick,
        replay, report, run, stage, study, trace, verify, virtual, watch,
    ):  # fmt: skip
        module.add_parser(root.commands)
    return root


def _refuse_undecodable(arguments: Sequence[str]) -> None:
    """Raise UserError for a name that is not UTF-8, of the current folder or in the arguments.

    Recordings, tables and reports are UTF-8, and could not name the file.
    """
    try:
        folder = [str(Path.cwd())]
    except OSError:  # removed, or not readable
        folder = []
    for name in [*folder, *arguments]:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UserError(_undecodable(name)) from None


def _undecodable(name: str) -> str:
    return (
        f"{name}: the name is not UTF-8 text, so recordings and reports cannot hold it. Rename the file or folder "
        "(mv), then run the command again."
    )


def _word_at(text: str, place: int) -> str:
    """Return the word of a text with the character at `place`: a path within a longer text."""
    begin = max(text.rfind(end, 0, place) for end in _ENDS) + 1
    return text[begin : min((at for end in _ENDS if (at := text.find(end, place)) >= 0), default=len(text))]


_ENDS = " \n\t\"'<>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its status: 0 for success, 1 for failure, 2 for a user error, 130 if interrupted.

    141 if the reader of its output closes the pipe.

    The subcommands are imported within, so that signals are handled in the same way from the start.
    """
    escape_output()
    try:
        from drivelab.cli.completion import complete
        from drivelab.core.private import restrict_umask
        from drivelab.core.programs import keep_safe_path_private
        from drivelab.core.termination import end_in_order
        from drivelab.plan.places import ROOT, refuse_foreign_project

        end_in_order()
        restrict_umask()
        keep_safe_path_private()
        commands = parser()
        complete(commands)
        _refuse_undecodable(sys.argv[1:] if arguments is None else arguments)
        options = commands.parse_args(arguments)
        refuse_foreign_project(ROOT)
        return int(options.handler(options))
    except UserError as error:
        say(f"drivelab: {error}", stderr=True)
        return 2
    except UnicodeEncodeError as error:
        if error.encoding != "utf-8":
            raise
        say(f"drivelab: {_undecodable(_word_at(error.object, error.start))}", stderr=True)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE  # as programs that the signal ends
    except OSError as error:
        if error.errno in _PLACES and error.filename:
            say(f"drivelab: {error.filename}: {error.strerror}; name another path", stderr=True)
            return 2
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        say(
            f"drivelab: {error.filename or 'a file of the results'} cannot be written: {error.strerror}; "
            "finished measurements are kept, free some space and run again to continue",
            stderr=True,
        )
        return 2
    except KeyboardInterrupt:
        say("drivelab: interrupted; finished measurements are kept, run again to continue", stderr=True)
        return 130
