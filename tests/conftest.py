# SPDX-License-Identifier: Apache-2.0
"""The shared helpers of tests/lib are there however pytest is started, and so is what is tested."""

import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
import world  # noqa: E402

WITHOUT_BUILD = ("layers", "fresh", "packages")  # they need none, or make their own


def pytest_configure(config):
    os.environ["no_proxy"] = "localhost,127.0.0.1"  # what is tested is here, wherever packages are
    config.addinivalue_line("markers", "gate: the main path of a feature, part of ./check gate")
    config.addinivalue_line("markers", "exhaustive: every value of every field; not in ./check gate")
    config.addinivalue_line("markers", "engines: runs on PostgreSQL, too")
    config.addinivalue_line("markers", "file_database: but this one is about the file")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a shell's background job
        signal.signal(signal.SIGINT, signal.default_int_handler)  # for what tests interrupt
    needs_build = any(not set(WITHOUT_BUILD) & set(pathlib.Path(arg.partition("::")[0]).parts)
                      for arg in config.args)
    if needs_build and (why := world.why_not_built()):
        raise pytest.UsageError(why)
