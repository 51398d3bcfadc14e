"""Every `sh` block of README.md and docs/*.md runs, in order, file by file.

The info string of a block may say more: "sh background=TEXT" starts it and
goes on when TEXT appears in its output; it is ended after the file's last
block. Blocks for people to read only are not fenced as `sh`.
"""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path):
    """Yield (line number, words of the info string, text) of each fenced sh block."""
    pattern = re.compile(r"^```(sh\b[^\n]*)\n(.*?)^```", re.M | re.S)
    text = path.read_text()
    for found in pattern.finditer(text):
        yield text[:found.start()].count("\n") + 1, found.group(1).split()[1:], found.group(2)


def environment(home):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("ALIQUOT_", "BACKEND_", "XDG_"))}
    env.update(HOME=str(home), ALIQUOT_NETWORK_ENABLED="false", PATH=f"{ROOT / 'build'}:{env['PATH']}",
               XDG_STATE_HOME=str(home / "state"), XDG_CONFIG_HOME=str(home / "config"))
    return env


def start_background(text, until, env, log):
    process = subprocess.Popen(["bash", "-euc", text], cwd=ROOT, env=env, stdout=log.open("w"),
                               stderr=subprocess.STDOUT, start_new_session=True)
    deadline = time.monotonic() + 60
    while until not in log.read_text():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("path", [doc for doc in DOCS if list(blocks(doc))],
                         ids=lambda doc: doc.name)
def test_commands_run(path, tmp_path):
    env, background = environment(tmp_path), []
    try:
        for line, words, text in blocks(path):
            until = [word.split("=", 1)[1] for word in words if word.startswith("background=")]
            if until:
                log = tmp_path / f"line-{line}.log"
                background.append(start_background(text, until[0], env, log))
                continue
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=ROOT, env=env,
                                  capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{path.name}:{line}\n{text}\n{done.stdout}{done.stderr}"
    finally:
        for process in background:
            os.killpg(process.pid, signal.SIGINT)
        for process in background:
            process.wait(timeout=60)
