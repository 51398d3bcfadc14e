# SPDX-License-Identifier: Apache-2.0
"""The manager is killed between the commit of an event and its delivery, again and again: who follows
and reads on has each event once, in the order of the commits."""

import contextlib

import pytest

from cluster import GONE, Cluster, batch, wait_for
from event_stream import Follower, here, missed

POINTS = ["store.commit.before", "store.commit.after", "store.batch.finished",
          "store.dispatch.callback", "core.proposal.committed", "core.proposal.applied"]
ROUNDS = 4


def end_of(client, name):
    with contextlib.suppress(*GONE):
        reply = client.get("/aliquot/v1/sessions/" + name)
        if reply.status == 404:
            client.post("/session", batch(name, "true"))
        elif reply.json["status"] == "TERMINATED":
            return reply.json["id"]


@pytest.mark.parametrize("point", POINTS)
def test_each_event_once(point):
    with Cluster() as cluster:
        mark = cluster.folder / "died"
        mark.touch()
        cluster.start_manager(ALIQUOT_FAULT=point + ":any", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.supervise()
        cluster.start_agent()
        client = cluster.client()
        start = here(client)
        follower = Follower(client, "scope=*", start)
        for i in range(ROUNDS):
            mark.unlink()
            session = wait_for(lambda: end_of(client, f"round-{i}"), 60, "a session to end")
            wait_for(mark.exists, 60, "the manager to die")
            wait_for(lambda: follower.has("session_terminated", session), 60, "its last event")
        wait_for(cluster.is_serving, 60, "the manager")
        follower.ending.set()
        told = missed(client, "scope=*", start)[:-1]
        assert [m for m in told if m[0] == "gap"] == []
        assert follower.seen == told and follower.breaks >= ROUNDS
        cluster.check_audits()
        cluster.stop()
