# SPDX-License-Identifier: Apache-2.0
"""graphql-js, from the registry of npm, for tests and benches that compare with it."""

import fcntl
import subprocess

from world import ROOT

HERE = ROOT / "tests" / "compat" / "graphql"


def install():
    """Once, however many ask at a time."""
    wanted, installed = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    with wanted.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime < wanted.stat().st_mtime:
            subprocess.run(["npm", "ci", "--silent"], cwd=HERE, check=True, capture_output=True)
