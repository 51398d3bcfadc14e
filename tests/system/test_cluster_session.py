# SPDX-License-Identifier: Apache-2.0
"""Sessions of several kernels: what their programs know of each other, and when they start.

Each story is told in a network namespace of its own, as those of test_container_network.py.
"""

import re
import sys

import pytest

from cluster import ENDED, interactive, wait_for, wait_status
from runtimes import Session, exit_code
from test_container_network import check_all_gone, in_gate, start, tell_apart

THREE = {"clusterSize": 3, "config": {"resources": {"cpu": "1", "mem": "64m"}}}


def log_of(session, kernel):
    reply = session.client.get(f"/aliquot/v1/sessions/{session.id}/logs?kernel={kernel}", timeout=20)
    assert reply.status == 200, reply
    return reply.body.decode()


def story_of_variables(cluster):
    """Every kernel knows its rank, where all meet, and reaches that by name."""
    session = Session(cluster, "env; getent hosts $MASTER_ADDR; cat /home/config/hostfile; sleep 60",
                      **THREE)
    session.wait("RUNNING")
    for rank, name in enumerate(("main1", "sub1", "sub2")):
        wait_for(lambda: "sub2 slots=1" in log_of(session, name), 30, name)
        log = log_of(session, name)
        for line in ("MASTER_ADDR=main1", "WORLD_SIZE=3", f"RANK={rank}", f"NODE_RANK={rank}",
                     "PET_NNODES=3", "PET_RDZV_ENDPOINT=main1:29400", "GLOO_SOCKET_IFNAME=eth0",
                     "JAX_COORDINATOR_ADDRESS=main1:1234"):
            assert re.search(f"^{line}$", log, re.M), (line, log)
        assert re.search(r"^10\.\S+ +main1", log, re.M), log
    session.end(forced=True)
    session.wait()


def story_of_own_variables(cluster):
    """What the user says of one of them counts."""
    session = Session(cluster, "echo port $MASTER_PORT world $WORLD_SIZE",
                      **{**THREE, "config": {**THREE["config"], "environ": {"MASTER_PORT": "1"}}})
    session.wait()
    assert "port 1 world 3" in session.log


def story_of_a_start_in_step(cluster):
    """No program starts before all kernels can, and the first one when the others run: what it
    connects to by name is there."""
    session = Session(cluster, "if [ $RANK != 0 ]; then exec sleep 60; fi\n"
                      "for name in sub1 sub2; do bash -c \"echo > /dev/tcp/$name/2200\" && "
                      "echo reached $name; done", **THREE)
    assert exit_code(session.wait()) == 0, session.log
    assert session.log.split() == "reached sub1 reached sub2".split(), session.log


def story_of_an_agent_that_is_killed_while_it_holds(cluster):
    """An agent that is killed with kernels that wait is told again to start them."""
    cluster.programs["agent"].stop()
    cluster.start_agent(ALIQUOT_FAULT="agent.ready.reported")
    session = Session(cluster, "echo rank $RANK; sleep 1", **THREE)
    wait_for(lambda: cluster.programs["agent"].process.poll() is not None, 60, "the agent to end")
    cluster.start_agent()
    assert exit_code(session.wait(seconds=90)) == 0, session.log
    assert session.log == "rank 0\n", session.log


def story_of_a_restart(cluster):
    """Kernels that are restarted together start in step again."""
    client = cluster.client()
    made = client.post("/session", {**interactive("again", **THREE), "image": "host"})
    assert made.status == 201, made
    session = made.json["sessionId"]
    wait_status(client, session, "RUNNING")
    assert client.send("PATCH", "/session/again").status == 204

    def statuses():
        items = client.get(f"/aliquot/v1/sessions/{session}/history").json["items"]
        return [item["status"] for item in items if not item.get("kernel")]
    wait_for(lambda: "RESTARTING" in statuses() and statuses().count("RUNNING") == 2, 60,
             lambda: f"the restart, {statuses()}")
    client.send("DELETE", "/session/again?forced=true")
    wait_status(client, session, *ENDED)


def story_of_a_kernel_that_joins(cluster):
    """It is reached by name by the others, which know the sizes that are possible."""
    free = int(cluster.agent()["available_slots"]["cpu"])
    filler = Session(cluster, "sleep 600",
                     config={"resources": {"cpu": str(free - 2), "mem": "64m"}})
    filler.wait("RUNNING")
    session = Session(cluster, "if [ $RANK != 0 ]; then echo $PET_NNODES; exec sleep 600; fi\n"
                      "until getent hosts sub2; do sleep 0.1; done\n"
                      "bash -c 'echo > /dev/tcp/sub2/2200' && echo reached sub2",
                      **THREE, clusterSizeMin=2)
    session.wait("RUNNING")
    wait_for(lambda: log_of(session, "sub1") == "2:3\n", 30, "sub1")
    filler.end(forced=True)
    assert exit_code(session.wait()) == 0, session.log
    assert "reached sub2" in session.log, session.log


STORIES = {name: story for name, story in globals().items() if name.startswith("story_")}


def tell(runtime, name):
    with start(runtime) as cluster:
        STORIES[name](cluster)
        check_all_gone(cluster)


@pytest.mark.parametrize("name", in_gate(STORIES, "story_of_variables", "story_of_a_start_in_step"))
def test_story(name):
    tell_apart(__file__, "crun", name)


if __name__ == "__main__":
    tell(*sys.argv[1:])
