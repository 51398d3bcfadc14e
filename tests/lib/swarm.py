# SPDX-License-Identifier: Apache-2.0
"""Many agents in one process (bench/swarm): started on a cluster's authority, asked by lines."""

import json
import os
import subprocess

from cluster import wait_for
from world import BUILD


class Swarm:
    """'authority' is the folder STATE/ca of a manager, 'managers' their link addresses, 'within' what
    stands before the command, to run it in a namespace."""

    def __init__(self, authority, managers, log, build=BUILD, env=None, within=(), **options):
        words = [word for name, value in options.items()
                 for word in ("--" + name.replace("_", "-"), str(value))]
        self.nodes = options.get("nodes", 1000)
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [*within, str(build / "bench" / "swarm"), "--ca", str(authority),
                 *(word for manager in managers for word in ("--manager", manager)), *words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env=env or os.environ, start_new_session=True)
        assert json.loads(self.process.stdout.readline()) == "ready"

    def ask(self, *words):
        """The answer to one command."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def status(self):
        return self.ask("status")

    def kernels(self):
        """[node, kernel, session, attempt, state] of each."""
        return self.ask("kernels")

    def wait_connected(self, seconds=60):
        wait_for(lambda: self.status()["connected"] == self.nodes, seconds,
                 lambda: f"{self.nodes} nodes: {self.status()}")

    def wait_running(self, count, seconds=120):
        wait_for(lambda: self.status()["running"] == count, seconds,
                 lambda: f"{count} kernels: {self.status()}")

    def check_once(self):
        """No program was started twice, or in two places at once."""
        status = self.status()
        assert status["repeats"] == status["overlaps"] == 0, status

    def stop(self):
        """Its exit status: a sanitizer's, if one complains."""
        self.process.stdin.close()
        return self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
