# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/growing.md: a section has a table of files and one diff of them."""

import dataclasses
import re

from world import ROOT

PAGE = ROOT / "docs" / "growing.md"


@dataclasses.dataclass
class Example:
    title: str
    claimed: list  # files of the table
    diff: str

    @property
    def files(self):
        return sorted(re.findall(r"^\+\+\+ b/(\S+)", self.diff, re.M))

    @property
    def added(self):
        return sorted(re.findall(r"^--- /dev/null\n\+\+\+ b/(\S+)", self.diff, re.M))


def examples():
    """All sections that have a diff."""
    found = []
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        diffs = re.findall(r"^```diff\n(.*?)^```$", text, re.M | re.S)
        if diffs:
            diff, = diffs
            found.append(Example(title, sorted(re.findall(r"^\| `([^`]+)` \|", text, re.M)), diff))
    return found
