# SPDX-License-Identifier: Apache-2.0
"""Every command in the tables of docs/coming-from.md is one of ours, with options that it takes.
What its `sh` blocks do is for test_docs.py."""

import re
import shlex
import subprocess

import pytest

from doc_blocks import ROOT
from world import BUILD

pytestmark = pytest.mark.gate

PAGE = (ROOT / "docs" / "coming-from.md").read_text()
SPANS = sorted(set(re.findall(r"`aliquot ([^`]+)`", PAGE)))
ROWS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]


def explain(*words):
    return subprocess.run([BUILD / "aliquot", *words], capture_output=True, text=True)


def verb_of(words):
    """How many words the longest command at their front has."""
    for count in (3, 2, 1):
        done = explain(*words[:count], "--help")
        if done.stdout.startswith(f"Usage: aliquot {' '.join(words[:count])} "):
            return count
    raise AssertionError(f"aliquot {' '.join(words)} is no command")


@pytest.mark.parametrize("span", SPANS)
def test_it_is_understood(span):
    words = shlex.split(span)
    if words[0] == "help":
        assert explain(*words).returncode == 0
        return
    count = verb_of(words)
    done = explain(*words[:count], "--help", *words[count:])
    assert done.returncode == 0 and done.stdout.startswith("Usage: "), done.stderr


def test_options_of_sbatch_are_those_of_submit():
    """The second column of that table, as submit takes it."""
    table = PAGE.split("### Options of sbatch")[1].split("###")[0]
    spans = [span for row in ROWS if "| " + row[0] in table
             for span in re.findall(r"`(-[^`]+)`", row[1])]
    assert len(spans) > 15
    for span in spans:
        done = explain("submit", "--help", *shlex.split(span))
        assert done.returncode == 0, (span, done.stderr)


def test_there_are_tables():
    assert len(SPANS) > 60 and all(len(row) == 3 for row in ROWS)
    with pytest.raises(AssertionError):
        test_it_is_understood("run --no-such-option CMD")
    with pytest.raises(AssertionError):
        test_it_is_understood("squeue")
