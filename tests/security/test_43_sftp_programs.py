# SPDX-License-Identifier: Apache-2.0
"""A session for files runs no program of its user's, by whatever rsync, scp and dotfiles offer.

Run as a program, this file tells the story, in a network namespace of its own.
"""

import pathlib
import subprocess
import sys

import pytest

from client import ADMIN

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

from test_container_network import check_all_gone, tell_apart  # noqa: E402
from test_system_session import end, start  # noqa: E402

RAN = "the program of the user ran"
SETTINGS = """use chroot = no
[files]
    path = /home/work/data
    %s exec = /home/work/data/program
"""
ASKED = "@RSYNCD: 31.0 md5\nfiles\n--server\n--sender\n-e.LsfxCIvu\n.\nfiles/\n\n"
DOTFILES = {".popt": "rsync exec --mine /home/work/data/program\nrsync alias --well --daemon\n",
            ".ssh/environment": "LD_PRELOAD=/home/work/data/program\n",
            ".ssh/rc": "/home/work/data/program\n",
            ".config/rsyncd.conf": SETTINGS % "early"}


def make(program):
    """Without libraries: the container has none."""
    source = program.with_suffix(".c")
    source.write_text(f'#include <stdio.h>\nint main(void) {{ return puts("{RAN}"), 0; }}\n')
    subprocess.run(["cc", "-static", "-o", program, source], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == RAN + "\n"


def story(cluster):
    for path, data in DOTFILES.items():
        reply = cluster.client(ADMIN).post("/user-config/dotfiles", {
            "path": path, "permission": "755", "data": data})
        assert reply.status == 200, reply
    program = cluster.data / "program"
    make(program)
    cluster.reach("data")

    def say(command, text=""):
        done = subprocess.run(["ssh", "-F", cluster.config, "node", command], cwd=cluster.folder,
                              input=text.encode(), capture_output=True, timeout=60, check=False)
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")
    # rsync reads further arguments from its input, past what its shell has looked at
    for when in ("early", "pre-xfer"):
        (cluster.data / "rsyncd.conf").write_text(SETTINGS % when)
        for first in ("rsync --server -s", "rsync --server -se.LsfxCIvu"):
            for words in (("--server", "--daemon"), ("--daemon", "--no-detach")):
                code, said = say(first, "\0".join([
                    "rsync", *words, "--config=/home/work/data/rsyncd.conf", ".", "", ""]) + ASKED)
                assert code and "'/home/work/data/program' is not run here" in said, (words, said)
                assert RAN not in said, said
    for command in ("rsync --server --mine . .", "rsync --server --well . .",
                    "rsync --server --config=/home/work/data/rsyncd.conf . .",
                    "rsync --server --rsh=/home/work/data/program . host:x",
                    "scp -t x -S /home/work/data/program host:y", "scp -t -S/home/work/data/program x",
                    "/home/work/data/program", "data/program", "./.ssh/rc"):
        code, said = say(command)
        assert code and RAN not in said, (command, said)
    end(cluster)


@pytest.mark.gate
def test_no_program_of_the_user_is_run():
    tell_apart(__file__, "crun", "story")


if __name__ == "__main__":
    with start("crun") as started:
        story(started)
        check_all_gone(started)
