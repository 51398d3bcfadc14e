# SPDX-License-Identifier: Apache-2.0
"""Someone starts 'aliquot up', submits many small programs from four terminals,
kills the manager and the agent with kill -9 while they run, and every program
that was accepted has run once and is accounted for.

600 programs, or as many as ALIQUOT_TEST_SCALE says (10000 takes a while).
"""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import pytest

from client import ADMIN, Client
from cluster import ENDED, GONE, Cluster, batch, wait_for
from world import BUILD, processes_of

pytestmark = [pytest.mark.engines, pytest.mark.gate]

PROGRAMS = int(os.environ.get("ALIQUOT_TEST_SCALE", "600"))
TERMINALS = 4


def submit(port, terminal, count, ran):
    """One terminal: what has no answer is looked up, and only then asked for again."""
    client = Client(("127.0.0.1", port), ADMIN)
    for number in range(count):
        name = f"t{terminal}-{number:05}"
        request = batch(name, f"echo $BACKENDAI_SESSION_ID >> {ran}")
        while True:
            try:
                reply = client.get("/aliquot/v1/sessions/" + name)
                if reply.status == 404:
                    reply = client.post("/session", request)
                assert reply.status in (200, 201), reply
                break
            except GONE:
                time.sleep(0.1)
        print(reply.json.get("sessionId") or reply.json["id"], flush=True)


class Up:
    """'aliquot up --dev' in the folder of a test's cluster."""

    def __init__(self, cluster):
        self.cluster, self.state = cluster, cluster.folder / "up"
        link = cluster.link.rpartition(":")[2]
        cluster.start_program("up", BUILD / "aliquot", "up", "--dev", "--state", self.state,
                              "--port", cluster.address[1], "--link-port", link)
        wait_for(lambda: cluster.agent(self.node()).get("connected"), 60, "a cluster")

    @staticmethod
    def node():
        return os.uname().nodename.split(".")[0]

    def pid(self, name):
        try:
            info = json.loads((self.state / "up.json").read_text())
        except FileNotFoundError:
            return 0
        return info["manager_pid"] if name == "manager" else info["agent_pids"][0]

    def kill(self, name):
        pid = wait_for(lambda: self.pid(name), 60, name)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: self.pid(name) not in (0, pid), 60, f"another {name}")


def test_nothing_is_lost():
    with Cluster(ALIQUOT_RESOURCE_CPUS="16", ALIQUOT_LOGS_KEEP_COUNT="100") as cluster:
        up, ran = Up(cluster), cluster.folder / "ran"
        ran.touch()
        screens = [(cluster.folder / f"terminal-{n}").open("w+") for n in range(TERMINALS)]
        terminals = [subprocess.Popen([sys.executable, __file__, str(cluster.address[1]), str(n),
                                       str(PROGRAMS // TERMINALS), ran], stdout=screen)
                     for n, screen in enumerate(screens)]
        for death in range(6):  # each after another seventh of the programs has run
            wait_for(lambda: ran.read_text().count("\n") >= (death + 1) * PROGRAMS // 7, 600,
                     lambda: f"programs to run: {ran.read_text().count(chr(10))} have")
            up.kill(("manager", "agent")[death % 2])
        assert all(terminal.wait(1200) == 0 for terminal in terminals)
        accepted = []
        for screen in screens:
            with screen:
                screen.seek(0)
                accepted += screen.read().split()
        assert len(set(accepted)) == len(accepted) == PROGRAMS // TERMINALS * TERMINALS
        wait_for(lambda: cluster.try_get("/aliquot/v1/sessions?all=true&limit=1&status="
                                         "PENDING,SCHEDULED,PREPARING,RUNNING,TERMINATING")
                 .json["total"] == 0, 600, "all to end")
        runs = collections.Counter(ran.read_text().split())
        assert runs == collections.Counter(accepted)
        shown = cluster.sessions()
        assert {session["id"] for session in shown} == set(accepted)
        assert all(session["status"] in ENDED and session["result"] == "SUCCESS"
                   for session in shown)
        cluster.check_audits()
        wait_for(lambda: not list(up.state.glob("agent/kernels/*")), 60, "folders to go")
        cluster.programs["up"].signal(signal.SIGINT)
        assert cluster.programs["up"].process.wait(60) == 0
        assert not processes_of(cluster.folder)
        checked = cluster.run("aliquot-manager", "db", "check", "--state", up.state / "manager")
        assert checked.stdout == "nothing found\n", checked


if __name__ == "__main__":
    submit(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
