# SPDX-License-Identifier: Apache-2.0
"""What a run of ./check has found: read from the JUnit files in check-results/.

A skipped case must match a line of tests/SKIPS ("PATTERN  reason", shell
patterns on "suite:name"), else the run fails; what could not be fetched is
named instead.
"""

import dataclasses
import fnmatch
import re
import shlex
import typing
import xml.etree.ElementTree as ET

from suites import ROOT

BAD_END = "(test program exited with"  # as meson says it, on standard error
FIRST, LAST = 15, 40  # lines shown of a failure: where pytest begins to say what, and the end


@dataclasses.dataclass
class Case:
    suite: str
    place: str
    name: str
    state: str  # "passed", "failed" or "skipped"
    text: str
    seconds: float
    task: typing.Any
    is_unsteady: bool = False  # failed, and passed when it was repeated

    @property
    def is_missing(self):
        """Is it skipped because a package server is away (tests/lib/fetched.py)?"""
        return self.state == "skipped" and "could not be fetched" in self.text

    @property
    def file(self):
        """"tests.api.test_auth" is test_auth, "aliquot.aliquot:unit / base/base" base/base."""
        return re.split(r" / |\.", self.place)[-1]

    @property
    def word(self):
        """What names it in ./check SUITE NAME."""
        return self.task.name_of(self)

    @property
    def command(self):
        return f"./check {self.suite} {shlex.quote(self.word)}"

    @property
    def is_contained(self):
        """Does it run real containers?"""
        return (".test_container" in "." + self.place
                or re.search(r"[\[-](crun|runc)\b", self.name) is not None)

    def __str__(self):
        return f"{self.suite}: {self.file}::{self.name}"


def read_case(task, element):
    for kind, state in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        if (found := element.find(kind)) is not None:
            text = found.text or found.get("message", "")
            break
    else:
        state, text = "passed", ""
    return Case(task.suite, element.get("classname", ""), element.get("name"), state, text,
                float(element.get("time", 0)), task)


def read_cases(task):
    """meson times a program, not its cases: such a program's time goes to its first one. And one
    that ends badly after cases that have passed, as by a sanitizer's report, has failed in none."""
    cases = []
    for group in ET.parse(task.file("xml")).iter("testsuite"):
        found = [read_case(task, element) for element in group.iter("testcase")]
        if found and not any(case.seconds for case in found):
            found[0].seconds = float(group.get("time", 0))
        if output := group.findtext("system-err") or group.findtext("system-out"):
            for case in found:
                case.text = case.text or output * (case.state == "failed")
            if BAD_END in output and found and not any(case.state == "failed" for case in found):
                found.append(dataclasses.replace(found[0], name="end", state="failed",
                                                 text=output, seconds=0))
        cases += found
    return cases


def read(tasks):
    return [case for task in tasks if task.file("xml").exists() for case in read_cases(task)]


def unlisted_skips(cases):
    lines = (ROOT / "tests" / "SKIPS").read_text().splitlines()
    allowed = [line.split(None, 1)[0] for line in lines
               if line.strip() and not line.startswith("#")]
    names = [f"{case.suite}:{case.name}".replace(" ", "_") for case in cases
             if case.state == "skipped" and not case.is_missing]
    return [name for name in names
            if not any(fnmatch.fnmatch(name, pattern) for pattern in allowed)]


def show_slowest(cases, number):
    """Those that took longest, fixtures included."""
    slow = sorted((case for case in cases if case.seconds >= 1), key=lambda case: -case.seconds)
    for case in slow[:number]:
        print(f"{case.seconds:6.1f} s  {case}")


def excerpt(text):
    """The first lines that pytest marks as the error, which logs may follow, and the last ones."""
    lines = text.rstrip().splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("E  ")), len(lines))
    if first >= len(lines) - LAST:
        return lines[-LAST:]
    return [*lines[first:min(first + FIRST, len(lines) - LAST)], "[...]", *lines[-LAST:]]


def show_failures(cases, with_text=True):
    for case in cases:
        if case.state == "failed":
            print(f"\nFAILED {case}")
            if with_text:
                print("\n".join(excerpt(case.text)))
            print(f"to repeat it: {case.command}")


def close(cases, broken):
    """The last lines; returns the exit status. 'broken' tasks ended badly without such a case."""
    if unsteady := [str(case) for case in cases if case.is_unsteady]:
        print(f"unsteady: {len(unsteady)} ({', '.join(unsteady)})")
    if missing := [str(case) for case in cases if case.is_missing]:
        print(f"could not be fetched: {len(missing)} ({', '.join(missing)})")
    unlisted = unlisted_skips(cases)
    for name in unlisted:
        print(f"skipped but not in tests/SKIPS: {name}")
    passed, failed, skipped = (sum(case.state == state for case in cases)
                               for state in ("passed", "failed", "skipped"))
    contained = sum(case.state == "passed" and case.is_contained for case in cases)
    failed += len(unlisted) + broken
    print(f"{passed} passed, {failed} failed, {skipped} skipped"
          f" ({contained} of the passed with real containers)", flush=True)
    return 1 if failed or not passed else 0
