# SPDX-License-Identifier: Apache-2.0
"""README.md's commands, word for word, on a machine that has nothing; and ./demo after them."""

import json
import subprocess
import time

import pytest

from doc_blocks import ROOT, blocks, script, times_of

README = list(blocks(ROOT / "README.md"))


def line_of(text):
    return next(str(line) for line, _, block in README if text in block)


def birth_of(path):
    return float(subprocess.run(["stat", "-c", "%.3W", path], capture_output=True, text=True,
                                check=True).stdout)


class Pass:
    """One pass through README on a machine: when what was done, and what was said."""

    def __init__(self, version, machine):
        self.version, self.machine = version, machine
        started = time.time()
        machine.clone()
        cloned = time.time()
        done = machine.script('export PATH="$PWD/build:$PATH"\n' + script(README))
        self.said, self.is_good = done.stdout, done.returncode == 0
        if not self.is_good:
            return
        at = times_of(done.stdout)
        configured = birth_of(machine.root.folder / "root/aliquot/build")
        built, ready, first = (at[line_of(text)] for text in
                               ("meson setup", "up --dev", "hello from a session"))
        self.seconds = {name: round(value, 1) for name, value in {
            "clone": cloned - started, "packages": configured - cloned,
            "build": built - configured, "start": ready - built, "first_session": first - ready,
            "total": first - started}.items()}


@pytest.fixture(scope="module")
def readme(request, new_machine, record):
    done = Pass(request.param, new_machine(request.param))
    if done.is_good:
        record(f"debian-{request.param}", done.seconds)
    return done


def on_each(*versions):
    return pytest.mark.parametrize("readme", versions, indirect=True, scope="module")


@on_each("12", "13")
def test_commands_run(readme):
    assert readme.is_good, readme.said


@on_each("12", pytest.param("13", marks=pytest.mark.only_all))
def test_demo(readme, record):
    done = readme.machine.bash("./demo --exit", timeout=800)
    assert done.returncode == 0, done.stdout[-8000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["recovery"]["audit"] == "clean"
    assert set(said["runtimes"]) == {"3.9", "3.11", "3.13"}
    record(f"demo-{readme.version}", said["total_s"])
