# SPDX-License-Identifier: Apache-2.0
"""The tests of Backend.AI's command line that its tester brings (cli_integration). The result of each
is a line of JSON in the file that the word names: [test, why it has failed].
"""

import importlib.resources
import json
import os
import sys

import pexpect
import pytest
from faker import Faker

from ai.backend.test.utils import cli

LIMIT_SEC = 120  # they wait 5, in which a busy machine has not loaded the client


class Exporter:
    def __init__(self, file):
        self.file = file

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or not report.passed:
            why = None if report.passed else str(report.longrepr)[-6000:]
            print(json.dumps([report.nodeid.rpartition("/")[2], why]), file=self.file, flush=True)


class Patient:
    EOF, TIMEOUT = pexpect.EOF, pexpect.TIMEOUT

    @staticmethod
    def spawn(*words, **more):
        return pexpect.spawn(*words, **{**more, "timeout": LIMIT_SEC})


def main(output):
    os.chdir(os.environ["HOME"])
    cli.pexpect = Patient
    Faker.seed(1)  # the same users in each run
    tests = importlib.resources.files("ai.backend.test") / "cli_integration"
    with open(output, "w", encoding="utf-8") as file:
        return pytest.main(["-p", "no:cacheprovider", str(tests)], plugins=[Exporter(file)])


sys.exit(main(*sys.argv[1:]) not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED))
