# SPDX-License-Identifier: Apache-2.0
"""Run by the interpreter of Backend.AI's client 26: types each command of its tree "v2" with words
that its arguments accept, and prints [command, exit status, what it says] of each as JSON.
"""

import contextlib
import io
import json

import click
from ai.backend.cli.loader import load_entry_points

ID = "00000000-0000-4000-8000-000000000001"
TEXTS = (ID, "{}", "[]", f"user:{ID}", f"{ID}:{ID}")  # some arguments are JSON


def word_of(param, text):
    kind = param.type
    if isinstance(kind, click.Choice):
        return str(getattr(kind.choices[0], "value", kind.choices[0]))
    for kinds, word in (((click.types.IntParamType, click.types.FloatParamType), "1"),
                        (click.types.BoolParamType, "true"), (click.DateTime, "2026-01-01"),
                        ((click.Path, click.File), "/etc/hostname")):
        if isinstance(kind, kinds):
            return word
    return text


def words_of(command, text):
    for param in command.params:
        if param.required:
            is_option = isinstance(param, click.Option)
            yield from [param.opts[0]] * is_option
            if not (is_option and param.is_flag):
                yield from [word_of(param, text)] * max(param.nargs, 1)


def run(words):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(words)
            code = 0
        except SystemExit as e:
            code = e.code
        except BaseException as e:
            print(repr(e))
            code = 1
    return code, said.getvalue()


def walk(command, words=()):
    if not isinstance(command, click.Group):
        tries = ([*words, *words_of(command, text)] for text in TEXTS)
        outcomes = (run(line) for line in tries)
        outcome = next((outcome for outcome in outcomes if "URL path" in outcome[1]), None)
        return print(json.dumps([" ".join(words), *(outcome or run([*words, *words_of(command, ID)]))]))
    context = click.Context(command)
    for name in command.list_commands(context):
        walk(command.get_command(context, name), (*words, name))


main = load_entry_points()
walk(main.commands["v2"], ("v2",))
