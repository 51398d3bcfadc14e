# SPDX-License-Identifier: Apache-2.0
"""A container that fills its scratch space takes nothing that was promised to another: no more
is granted than the disk has, also after kill -9 of the agent."""

import os

import pytest

import containers
from cluster import ENDED, Cluster, batch, wait_for, wait_status


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    if why := containers.why_not("crun"):
        pytest.skip(why)
    if not containers.can_limit_scratch():
        pytest.skip("no loop devices, or no mkfs.ext4")
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_RUNTIME_DRIVER="container",
                 ALIQUOT_RUNTIME_OCI="crun", ALIQUOT_CONTAINER_SCRATCH_RESERVE="true",
                 ALIQUOT_MANAGER_HEARTBEAT="0.2s", ALIQUOT_AGENTS_HEARTBEAT="1s") as cluster:
        disk = os.statvfs(cluster.folder)
        size = disk.f_bavail * disk.f_frsize * 6 // 10 >> 20  # one fits, two do not
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_CONTAINER_SCRATCH_SIZE=f"{size}m")
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


class Session:
    def __init__(self, cluster, name, command):
        self.client = cluster.client()
        reply = self.client.post("/session", {**batch(name, command), "image": "host"})
        assert reply.status == 201, reply
        self.id = reply.json["sessionId"]

    def wait(self, *statuses):
        return wait_status(self.client, self.id, *(statuses or ENDED))

    def end(self):
        reply = self.client.send("DELETE", f"/session/{self.id}?forced=true")
        assert reply.status in (200, 204), reply
        self.wait()

    def wait_for_refusal(self):
        """Its agent says why; another may have room for it."""
        def look():
            path = f"/aliquot/v1/sessions/{self.id}"
            told = [self.client.get(path).json, self.client.get(path + "/history").json]
            return told[0]["status"] != "RUNNING" and "scratch space of" in str(told)
        wait_for(look, 60, "a refusal")


def test_no_more_than_there_is(cluster):
    first = Session(cluster, "first", "sleep 1000")
    first.wait("RUNNING")
    second = Session(cluster, "second", "sleep 1000")
    second.wait_for_refusal()
    second.end()
    agent = cluster.programs["agent"]
    agent.kill()
    agent.start()
    third = Session(cluster, "third", "sleep 1000")
    third.wait_for_refusal()
    assert first.wait("RUNNING")["status"] == "RUNNING"
    third.end()
    first.end()
    fourth = Session(cluster, "fourth", "echo there is room again")
    assert fourth.wait()["result"] == "SUCCESS"
