# SPDX-License-Identifier: Apache-2.0
"""In which order agents are listed to Backend.AI's clients: living ones first."""

from client import ADMIN
from cluster import Cluster, wait_for
from link_agent import LinkAgent

LIST = """query($order: String) { agent_list(limit: 10, offset: 0, order: $order) {
    items { id status } } }"""


def listed(cluster, order=None):
    reply = cluster.client(ADMIN).gql(LIST, {"order": order}).json
    return [(one["id"], one["status"]) for one in reply["data"]["agent_list"]["items"]]


def test_lost_agents_come_last():
    with Cluster(ALIQUOT_AGENTS_TIMEOUT="2s") as cluster:
        cluster.start_manager()
        for name in "first", "second":
            cluster.join(name)
        lost, alive = (LinkAgent(cluster, name) for name in ("first", "second"))
        assert lost.connect() and alive.connect()
        lost.close()

        def beats():
            alive.send({"type": "heartbeat", "incarnation": alive.incarnation, "seq": 1,
                        "kernels": []})
            return dict(listed(cluster)) == {"first": "LOST", "second": "ALIVE"}
        wait_for(beats, what="one agent to be lost")
        assert [name for name, _ in listed(cluster)] == ["second", "first"]
        assert [name for name, _ in listed(cluster, "id")] == ["first", "second"]
        alive.close()
        cluster.stop()
