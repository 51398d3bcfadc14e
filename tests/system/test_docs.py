# SPDX-License-Identifier: Apache-2.0
"""Every `sh` block of README.md and docs/*.md runs, in order, file by file (doc_blocks.py)."""

import os
import signal
import subprocess
import time

import pytest

from doc_blocks import DOCS, background_text, blocks, word_of
from terminal import Terminal
from world import ROOT, World, own_network

pytestmark = pytest.mark.gate


def start_background(command, until, env, log):
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log.open("w"),
                               stderr=subprocess.STDOUT, start_new_session=True)
    deadline = time.monotonic() + 60
    while until not in log.read_text():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return process


def end_background(process):
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=60)


def run_on_terminal(command, typed, env):
    """The exit status. What is typed too early waits in the terminal."""
    terminal = Terminal("/usr/bin/env", "-C", str(ROOT), *command, env=env)
    terminal.send(typed.encode() + b"\r")
    return terminal.wait()


def run_blocks(path, world, inside, background):
    env = {**world.env, "PATH": f"{ROOT / 'build'}:{world.env['PATH']}"}
    for line, words, text in blocks(path):
        if until := background_text(words):
            background.append(start_background(inside("bash", "-euc", text), until, env,
                                               world.folder / f"line-{line}.log"))
            continue
        if typed := word_of(words, "terminal"):
            status = run_on_terminal(inside("bash", "-euc", text), typed, env)
            assert status == 0, f"{path.name}:{line}\n{text}"
            continue
        if word_of(words, "after") == "ctrl-c":
            end_background(background.pop())
        done = subprocess.run(inside("bash", "-euo", "pipefail", "-c", text), cwd=ROOT, env=env,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{path.name}:{line}\n{text}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", [doc for doc in DOCS if list(blocks(doc))],
                         ids=lambda doc: doc.name)
def test_commands_run(path):
    """On the ports that users have, so with a loopback of its own."""
    background = []
    with World(ALIQUOT_NETWORK_ENABLED="false") as world, own_network() as inside:
        try:
            run_blocks(path, world, inside, background)
        finally:
            for process in reversed(background):
                end_background(process)
