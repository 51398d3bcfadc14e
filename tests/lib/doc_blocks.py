# SPDX-License-Identifier: Apache-2.0
"""The `sh` blocks of README.md and docs/*.md: commands that tests run word for word.

The info string of a block may say more: "sh background=TEXT" starts it and goes on when TEXT
appears in its output; it is ended after the file's last block, or before one with
"sh after=ctrl-c". "sh terminal=TEXT" runs on a terminal, where TEXT is typed. Blocks for people to
read only are not fenced as `sh`.
"""

import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path):
    """Yield (line number, words of the info string, text) of each fenced sh block."""
    pattern = re.compile(r"^```(sh\b[^\n]*)\n(.*?)^```", re.M | re.S)
    text = path.read_text()
    for found in pattern.finditer(text):
        yield text[:found.start()].count("\n") + 1, found.group(1).split()[1:], found.group(2)


def word_of(words, name):
    """TEXT of "NAME=TEXT" in an info string, or None."""
    found = [word.split("=", 1)[1] for word in words if word.startswith(name + "=")]
    return found[0] if found else None


def background_text(words):
    """What a block that goes on in the background says when it is ready, or None."""
    return word_of(words, "background")


SCRIPT_START = """set -um  # each block in the background is a process group
logs=$(mktemp -d)
finish() {
    jobs -p | while read -r group; do kill -INT -- "-$group"; done
    wait
    echo "at $1 $(date +%s.%N)"
    exit "$2"
}
fail() {
    echo "line $1: $2"
    cat "$logs"/*
    finish failed 1
}
"""

SCRIPT_BLOCK = """bash -euo pipefail -c {text} >"$logs/{line}" 2>&1 </dev/null || fail {line} failed
echo "at {line} $(date +%s.%N)"
"""

SCRIPT_BACKGROUND = """bash -euc {text} >"$logs/{line}" 2>&1 </dev/null &
for i in $(seq 600); do grep -q {until} "$logs/{line}" && break; sleep 0.1; done
grep -q {until} "$logs/{line}" || fail {line} "is not ready"
echo "at {line} $(date +%s.%N)"
"""


def script(found):
    """A bash script that runs blocks in order, for machines that have nothing else yet.

    When one fails, it prints what all have said; times_of() has when each was done.
    """
    parts = [SCRIPT_START]
    for line, words, text in found:
        until = background_text(words)
        part = SCRIPT_BACKGROUND if until else SCRIPT_BLOCK
        parts.append(part.format(line=line, text=shlex.quote(text), until=shlex.quote(until or "")))
    return "".join(parts) + "finish finished 0\n"


def times_of(said):
    """{line of a block: seconds since the epoch when it was done} of what a script() printed."""
    found = (line.split() for line in said.splitlines())
    return {words[1]: float(words[2]) for words in found if len(words) == 3 and words[0] == "at"}
