"""What the commands of this product share: verbs with examples, `--json`, and exit codes a script can rely on."""

from __future__ import annotations

import json
import os
import sys
from argparse import RawDescriptionHelpFormatter
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, DjangoHelpFormatter
from django.core.management.color import no_style
from django.utils import translation

from engine.text import clean, clean_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from django.core.management.base import CommandParser


class Exit(IntEnum):
    """How a command ends; 2, a wrong command line, is argparse's own."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4


def in_terminals_language() -> AbstractContextManager[None]:
    """Speak as the terminal's locale (LC_ALL, LC_MESSAGES, LANG) asks, where there is a translation."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    try:
        language = translation.get_supported_language_variant(locale.partition(".")[0].replace("_", "-").lower())
    except LookupError:
        language = settings.LANGUAGE_CODE
    return translation.override(language)


class _Help(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Django's order of options; examples keep their lines."""


class VerbCommand(BaseCommand):
    """A command with verbs: `manage.py <command> <verb>`. The method `do_<verb>` carries one out.

    Data goes to stdout, as words or with `--json` as one JSON value; messages go to stderr.
    """

    examples: Mapping[str, str] = {}  # verb → a command line without `manage.py`, several on lines of their own
    requires_system_checks: list[str] = []  # whoever wants to know what is wrong asks `check`

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        everything = "\n".join(self.examples.values())
        return super().create_parser(
            prog_name, subcommand, **{"epilog": _epilog(everything), "formatter_class": _Help, **kwargs}
        )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")

        def add(verb: str, **options: Any) -> CommandParser:
            words = {"description": options["help"], "epilog": _epilog(self.examples[verb]), "formatter_class": _Help}
            added: CommandParser = verbs.add_parser(verb, **words, **options)
            added.add_argument("--json", action="store_true", help="one JSON value on stdout, nothing else")
            return added

        self.add_verbs(add)

    def add_verbs(self, add: Any) -> None:
        """Declare each verb with `add(verb, help=…)`, which returns its parser."""
        raise NotImplementedError

    def execute(self, *args: Any, **options: Any) -> Any:
        if os.environ.get("NO_COLOR") and not options.get("force_color"):
            options["no_color"] = True
        try:
            return super().execute(*args, **options)
        except BrokenPipeError:
            # Whoever reads has seen enough, as with `| head`; nothing may be written to it at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(Exit.FAILED)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["json"]:
            self.style = no_style()
        getattr(self, f"do_{options['verb']}")(options)

    def answer(self, value: object) -> None:
        """Write the one JSON value of a command that was asked for `--json`."""
        self.stdout.write(json.dumps(clean_json(value), ensure_ascii=False, allow_nan=False))

    def lines(self, *lines: str) -> None:
        """Write lines without what a terminal would obey: names and texts are whatever somebody wrote."""
        for line in lines:
            self.stdout.write(_one_line(line))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write columns as wide as their widest cell, the last one open-ended."""
        cells = [[_one_line(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        for number, row in enumerate([list(head), *cells]):
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            self.stdout.write(self.style.MIGRATE_HEADING(line) if number == 0 else line)

    def tell(self, message: str) -> None:
        """Say something to the person, not to the program that reads stdout."""
        self.stderr.write(clean(message), style_func=lambda text: text)


def _epilog(commands: str) -> str:
    lines = [f"  manage.py {line}" for line in commands.splitlines()]
    codes = "exit status: 0 done, 1 failed, 2 wrong command line, 3 not found, 4 conflict"
    return "\n".join(["examples:", *lines, "", codes])


def _one_line(text: str) -> str:
    """The text without line breaks and escape sequences."""
    return "".join(letter if letter.isprintable() else " " for letter in clean(text))
