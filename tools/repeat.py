# SPDX-License-Identifier: Apache-2.0
"""Run failed tests of ./check again, each alone, after all others have ended.

What passes then is counted as passed and named as unsteady; what it said the
first time is in check-results/unsteady/. Reports of sanitizers are no chance,
nor are so many failures that something else must be wrong.
"""

import dataclasses
import re

import results
from suites import RESULTS, SUITES

TRIES = 2
MOST = 30  # tests
FOLDER = RESULTS / "unsteady"
REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|: runtime error: ")


def repeatable(cases):
    """{(suite, name): its failed cases}; a unit test program has several."""
    found = {}
    for case in cases:
        if case.state == "failed" and case.task.is_repeated:
            found.setdefault((case.suite, case.word), []).append(case)
    return {key: of for key, of in found.items()
            if not any(REPORT.search(case.text) for case in of)}


def passes(suite, word, number):
    """Does it pass now? Its files are SUITE-again-NUMBER.* in check-results/unsteady."""
    task, = SUITES[suite]([word])
    task = dataclasses.replace(task, name=f"{suite}-again-{number}", folder=FOLDER)
    task.file("xml").unlink(missing_ok=True)
    with task.file("log").open("w") as log:
        is_good = task.run(task, log)
    states = {case.state for case in results.read([task])}
    return is_good and states == {"passed"}


def keep(cases, number):
    text = "\n\n".join(f"{case}\n{case.text}" for case in cases)
    (FOLDER / f"{cases[0].suite}-first-{number}.log").write_text(text + "\n")


def repeat(cases, say):
    """Mends the state of cases that pass when they are repeated."""
    again = repeatable(cases)
    if len(again) > MOST:
        say(f"{len(again)} tests failed: too many to be repeated")
        return
    for number, ((suite, word), failed) in enumerate(again.items(), 1):
        FOLDER.mkdir(exist_ok=True)
        keep(failed, number)
        say(f"repeating {failed[0]}")
        if any(passes(suite, word, number) for _ in range(TRIES)):
            for case in failed:
                case.state, case.is_unsteady = "passed", True
