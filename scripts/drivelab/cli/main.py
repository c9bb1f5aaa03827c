"""The `drivelab` command."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence

import drivelab
from drivelab.errors import UserError
from drivelab.terminal import escape_output

_PLACES = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.EEXIST, errno.ELOOP,
           errno.ENAMETOOLONG, errno.EINVAL, errno.EFBIG)  # fmt: skip
"""Errors that are the place's, not the program's."""


def parser() -> argparse.ArgumentParser:
    """All subcommands; each module of this package registers its own."""
    from drivelab.cli import (
        archive,
        capture,
        compare,
        doctor,
        drives,
        evidence,
        import_results,
        plan,
        protocol,
        query,
        replay,
        run,
        stage,
        steady_state,
        study,
        testing,
        trace,
        verify,
        virtual,
        watch,
    )

    top = argparse.ArgumentParser(
        prog="drivelab",
        description=drivelab.__doc__,
        epilog="'./drivelab setup' installs what all of them need, as every other command does where it is missing; "
        "'./drivelab setup cluster' what jobs are sent to Slurm with.",
    )
    top.add_argument("--version", action="version", version=f"drivelab {drivelab.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (
        run,
        watch,
        plan,
        study,
        protocol,
        drives,
        doctor,
        virtual,
        capture,
        trace,
        replay,
        steady_state,
        query,
        evidence,
        compare,
        import_results,
        verify,
        archive,
        testing,
        stage,
    ):
        module.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0 done, 1 something failed, 2 the user can mend it, 130 interrupted by a signal.

    The imports of the subcommands are part of it: signals are answered the same way from the beginning.
    """
    escape_output()
    try:
        from drivelab.termination import end_in_order

        end_in_order()
        options = parser().parse_args(arguments)
        return int(options.handler(options))
    except UserError as error:
        print(f"drivelab: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno in _PLACES and error.filename:
            print(f"drivelab: {error.filename}: {error.strerror}; name another place", file=sys.stderr)
            return 2
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(
            f"drivelab: {error.filename or 'a file of the results'} cannot be written: {error.strerror}; what is "
            "finished is kept, make room and run again to go on",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("drivelab: interrupted; what is finished is kept, run again to go on", file=sys.stderr)
        return 130
