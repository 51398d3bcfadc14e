# SPDX-License-Identifier: Apache-2.0
"""Sessions in tests of the ways to run them: as processes, and as containers by crun and runc."""

import os

import pytest

import containers
from cluster import ENDED, batch, wait_for, wait_status

RUNTIMES = ("process", "crun", "runc")
SETTINGS = {"ALIQUOT_RESOURCE_CPUS": "4", "ALIQUOT_SESSIONS_KILL_GRACE": "2s",
            "ALIQUOT_MANAGER_HEARTBEAT": "0.2s", "ALIQUOT_AGENTS_HEARTBEAT": "1s"}


def settings_of(runtime):
    if runtime == "process":
        return {**SETTINGS, "ALIQUOT_RUNTIME_DRIVER": "process"}
    if why := containers.why_not(runtime):
        pytest.skip(why)
    return {**SETTINGS, "ALIQUOT_RUNTIME_DRIVER": "container", "ALIQUOT_RUNTIME_OCI": runtime}


class Session:
    """One batch program, run by the cluster under test."""

    count = 0

    def __init__(self, cluster, command, **more):
        Session.count += 1
        self.client = cluster.client()
        body = {**batch(f"s{Session.count}-{os.getpid()}", command), "image": "host", **more}
        reply = self.client.post("/session", body)
        assert reply.status == 201, reply
        self.id = reply.json["sessionId"]

    def wait(self, *statuses, seconds=60):
        return wait_status(self.client, self.id, *(statuses or ENDED), seconds=seconds)

    @property
    def log(self):
        reply = self.client.get(f"/aliquot/v1/sessions/{self.id}/logs", timeout=20)
        assert reply.status == 200, reply
        return reply.body.decode()

    def wait_log(self, text):
        wait_for(lambda: text in self.log, 60, lambda: f"{text!r} in {self.log!r}")

    def end(self, forced=False):
        reply = self.client.send("DELETE", f"/session/{self.id}" + "?forced=true" * forced)
        assert reply.status in (200, 204), reply

    @property
    def kernel(self):
        return self.wait("RUNNING", *ENDED)["kernels"][0]


def run(cluster, command, **more):
    """(status of the session, log) of a program that ends by itself."""
    session = Session(cluster, command, **more)
    return session.wait(), session.log


def wait_for_exit(cluster, kernel):
    """While the agent is away: until the monitor has recorded the end, or it was known before."""
    folder = cluster.folder / "agent/kernels" / kernel
    wait_for(lambda: (folder / "run/1/exit.json").exists() or not folder.exists(), 60, "its end")


def exit_code(shown):
    return shown["kernels"][0]["exit_code"]
