# SPDX-License-Identifier: Apache-2.0
"""A wall clock of a program's own, by libfaketime. Monotonic time, timers and the times of files are
the machine's."""

import os
import pathlib

import pytest


def library():
    """For programs with threads."""
    found = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if not found:
        pytest.skip("libfaketime is not installed: tools/install-packages ha")
    return found


class WallClock:
    """'file' has by how much it differs from the machine's; it may change while programs run."""

    def __init__(self, file):
        self.file, self.ahead = file, 0
        self.env = {"LD_PRELOAD": str(library()), "FAKETIME_TIMESTAMP_FILE": str(file),
                    "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                    "NO_FAKE_STAT": "1",
                    "ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"),
                                                           "verify_asan_link_order=0"]))}
        self.set(0)

    def set(self, ahead):
        """In seconds."""
        self.ahead = ahead
        fresh = self.file.with_name(self.file.name + ".new")
        fresh.write_text(f"{ahead:+d}s\n")
        fresh.chmod(0o644)
        fresh.rename(self.file)

    def words(self, *words):
        """The command under this clock."""
        return ["env", *(f"{name}={value}" for name, value in self.env.items()), *words]
