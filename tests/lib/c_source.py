# SPDX-License-Identifier: Apache-2.0
"""C sources read with a few patterns: definitions and tags, without comments and strings."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SRC = ROOT / "src"

_NOISE = re.compile(r"""/\*.*?\*/ | //[^\n]*                          # comments
                      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'     # strings
                      | ^[ \t]*\#(?:\\\n|[^\n])*                      # lines of the preprocessor
                    """, re.X | re.S | re.M)
_FUNCTION = re.compile(r"""^(?!(?:return|else|if|for|while|do|switch|typedef|extern)\b)
                           [A-Za-z_][^;{}=()]*?\b(\w+)\s*             # type, name
                           \((?:[^;{}()]|\([^()]*\))*\)\s*\{          # parameters, body
                        """, re.X | re.M)
_TAG = re.compile(r"\b(?:struct|union|enum)\s+(?:\w+\s+)?(\w+)\s*\{")


def sources(*suffixes, below=(SRC,)):
    return sorted(path for folder in below for path in folder.rglob("*")
                  if path.suffix in (suffixes or (".c", ".h", ".cc")))


def code(path):
    """The text with nothing but code: "" in place of strings, nothing in place of the rest."""
    return _NOISE.sub(lambda found: '""' if found[0][0] in "\"'" else "", path.read_text())


def functions(path):
    """Names of the functions that a file defines."""
    return {found[1] for found in _FUNCTION.finditer(code(path))}


def statics(path):
    """Those of them that no other file can call."""
    return {found[1] for found in _FUNCTION.finditer(code(path)) if found[0].startswith("static ")}


def tags(path):
    """Tags of the structs, unions and enums that a file defines."""
    return set(_TAG.findall(code(path)))


def includes(path):
    """Files of ours that a file includes, as it names them."""
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)
