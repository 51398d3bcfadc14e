# SPDX-License-Identifier: Apache-2.0
"""Fresh machines for tests: bare roots with a clone of this checkout's commit."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
import commands  # noqa: E402
import fetched  # noqa: E402
from bare_root import Root  # noqa: E402

RESULTS = ROOT / "check-results" / "fresh.json"
VERSIONS = {"12": "bookworm", "13": "trixie"}
figures = {}


class Machine:
    """A root, and what a user on it does in the clone, as root or as another user."""

    def __init__(self, root):
        self.root = root

    def add_user(self, name):
        assert self.root.run(["useradd", "-m", "-s", "/bin/bash", name]).returncode == 0

    def home(self, user):
        return "/root" if user == "root" else f"/home/{user}"

    def clone(self, user="root"):
        """git clone of the commit; a bare machine has no git, so it is done from outside."""
        target = self.root.folder / self.home(user).lstrip("/") / "aliquot"
        subprocess.run(["git", "-c", "advice.detachedHead=false", "clone", "-q", "--no-hardlinks",
                        ROOT, target], check=True)
        assert self.root.run(["chown", "-R", f"{user}:", f"{self.home(user)}/aliquot"]
                             ).returncode == 0

    def bash(self, text, user="root", timeout=600, **kwargs):
        """Run lines of bash in the clone; returns the finished process, stderr in its stdout."""
        return self.root.run(["bash", "-c", f"cd ~/aliquot && {text}"], user=user, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                             **kwargs)

    def script(self, text, **kwargs):
        """The same with lines that are too many for a command's words."""
        name = f"/tmp/{time.monotonic_ns()}.sh"
        (self.root.folder / name.lstrip("/")).write_text(text)
        return self.bash(f". {name}", **kwargs)


def pytest_configure(config):
    config.addinivalue_line("markers", "only_all: long; only in ./check fresh all")


def pytest_collection_modifyitems(config, items):
    if "ALIQUOT_FRESH_ALL" in os.environ:
        return
    left = [item for item in items if item.get_closest_marker("only_all")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="module")
def new_machine(tmp_path_factory):
    """A function that makes a Machine of Debian '12' or '13'."""
    if os.geteuid() != 0:
        pytest.skip("bare roots need root")
    subprocess.run([ROOT / "tools" / "install-packages", "demo"], check=True)
    made = []

    def make(version):
        try:
            root = Root.make(VERSIONS[version], tmp_path_factory.mktemp("machine") / version)
        except commands.Failed as e:
            fetched.missing(f"a root of Debian {version}", f"{e}: {e.last_lines}")
        made.append(root)
        return Machine(root)

    yield make
    for root in made:
        root.remove()


@pytest.fixture(scope="session")
def record():
    """A function that keeps a figure for fresh.json."""
    return figures.__setitem__


def pytest_sessionfinish():
    if figures:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(figures) + "\n")


def pytest_terminal_summary(terminalreporter):
    if figures:
        terminalreporter.write_line(json.dumps(figures))
