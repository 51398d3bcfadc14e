# SPDX-License-Identifier: Apache-2.0
"""Each example of docs/growing.md fits the sources, and touches the files that the page names."""

import subprocess

import pytest

from growing import ROOT, examples

EXAMPLES = examples()


def test_the_page_has_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_an_example_fits(example):
    assert example.files == example.claimed
    done = subprocess.run(["git", "apply", "--check", "-"], input=example.diff, cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, f"correct the diff in docs/growing.md:\n{done.stderr}"
    assert not [name for name in example.added if (ROOT / name).exists()]
