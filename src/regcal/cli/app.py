"""The application: its commands, and what happens when one fails.

To add a command, write a function in a file of its own in `regcal.cli.commands` and name it in
`COMMANDS`; its name and docstring become the command's. What it works with is imported inside the
function, so that whoever asks for help waits for none of it. A group of commands is a `typer.Typer`
in such a file, added by ``app.add_typer(module.app, name="...")``.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Annotated, Any

import typer

import regcal
from regcal.cli._console import note, warnings_as_notes
from regcal.cli._errors import InputError, TerminatedError, missing_package
from regcal.cli.commands.calibrate import calibrate
from regcal.cli.commands.demo import demo
from regcal.cli.commands.evaluate import evaluate
from regcal.cli.commands.fit import fit
from regcal.cli.commands.info import info
from regcal.cli.commands.monitor import monitor
from regcal.cli.commands.predict import predict
from regcal.cli.commands.report import report
from regcal.cli.commands.reproduce import app as reproduce

COMMANDS = (calibrate, fit, predict, evaluate, report, monitor, info, demo)

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143

# Errors that are told in a sentence; any other is a mistake, ours or in code of users.
_TOLD = (ValueError, TypeError, ImportError, MemoryError, OSError)

app = typer.Typer(
    name="regcal",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _whatever_models_do(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that ends well or with an error, whatever code of users does in it."""

    @wraps(command)
    def run_command(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except (TerminatedError, typer.Exit):
            raise
        except SystemExit as end:
            msg = f"The code of the model has called sys.exit({end.code!r}), which ended this."
            raise InputError(msg) from end
        except _TOLD:
            raise
        except Exception as error:
            if not options.get("trust"):
                raise
            msg = f"The code of the model has failed: {type(error).__name__}: {error}."
            raise InputError(msg) from error

    return run_command


for command in COMMANDS:
    app.command()(_whatever_models_do(command))
app.add_typer(reproduce, name="reproduce")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regcal {regcal.__version__}")
        raise typer.Exit


@app.callback(epilog="Try it on real data: regcal demo --files regcal-demo")
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Calibrate predictive distributions: probabilities and quantiles that hold.

    Tables are CSV or Parquet files, or - for standard input and output.
    """


def run() -> int:
    """Run the command of this process; return its exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        with warnings_as_notes():
            app()
    except _interrupts():
        return INTERRUPTED
    except BrokenPipeError:
        # the reader of our output has seen enough; keep Python from complaining when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except _TOLD as error:
        note(missing_package(error) or f"Error: {_in_words(error)}")
        return BAD_INPUT
    return 0


def _interrupts() -> tuple[type[BaseException], ...]:
    """Return what an interrupt raises: Arrow, if it was at work, has an error of its own."""
    arrow = sys.modules.get("pyarrow")
    return (KeyboardInterrupt,) if arrow is None else (KeyboardInterrupt, arrow.ArrowCancelled)


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as after an interrupt, so that files are tidied up."""
    raise TerminatedError(TERMINATED)


def _in_words(error: Exception) -> str:
    """Return one line."""
    if isinstance(error, MemoryError):
        return "There is not enough memory. Pass fewer rows, or fewer columns."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'A file'}: {error.strerror}."
    return " ".join(str(error).split())
