# SPDX-License-Identifier: Apache-2.0
"""What tests fetch from package servers: tried again, kept outside the checkout, and a test that
cannot have it is skipped in words that ./check counts apart from failures."""

import contextlib
import fcntl
import os
import pathlib
import re
import subprocess
import sys
import time

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "aliquot")
PAUSES_SEC = (2, 10)
# How programs say that a server is away; all else that goes wrong is a failure.
AWAY = re.compile("cannot be reached|[Cc]ould not (connect|resolve)|[Tt]emporary failure|timed out"
                  "|new connection|from versions: none|[Nn]etwork is unreachable|EAI_AGAIN"
                  "|ENOTFOUND|ECONNRE|ETIMEDOUT|[Ff]ailed to fetch|dial tcp")


def attempt(command, **options):
    """Run a command that fetches, up to three times; what it said when it failed, else None."""
    for pause in (*PAUSES_SEC, None):
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        if not done.returncode:
            return None
        if pause is None or not AWAY.search(done.stdout):
            return done.stdout
        time.sleep(pause)


def missing(what, why):
    """End a test that cannot have 'what': it is skipped if a server is away, else it has failed."""
    import pytest  # benches fetch, too
    if AWAY.search(why):
        pytest.skip(f"could not be fetched: {what}: {why.strip()[-300:]}")
    pytest.fail(f"{what} cannot be installed: {why[-3000:]}", pytrace=False)


def run(what, command, **options):
    if why := attempt(command, **options):
        missing(what, why)


@contextlib.contextmanager
def folder(name):
    """CACHE/name, for one process at a time, and whether it still is to be filled."""
    path = CACHE / name
    path.mkdir(parents=True, exist_ok=True)
    with (path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path, not (path / "done").exists()
        (path / "done").touch()


def python_packages(*names):
    """The folder for PYTHONPATH with these packages (and options of pip), for this Python."""
    python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    with folder("-".join((python, *names)).replace(":", "")) as (path, is_new):
        if is_new:
            run(" ".join(names), [sys.executable, "-m", "venv", "--clear", path / "venv"])
            run(" ".join(names), [path / "venv/bin/pip", "-q", "install", "--upgrade", "--target",
                                  path / "site", *names])
    return path / "site"
