# SPDX-License-Identifier: Apache-2.0
"""Connections that say nothing to the agents' port keep no agent out."""

import contextlib
import socket

from cluster import Cluster, wait_for


def test_silent_connections_keep_no_agent_out():
    with Cluster() as cluster, contextlib.ExitStack() as held:
        cluster.start_manager()
        host, port = cluster.link.split(":")
        for _ in range(600):  # more than there are places
            held.enter_context(socket.create_connection((host, int(port)), timeout=30))
        cluster.start_agent()
        cluster.programs["agent"].kill()
        cluster.programs["agent"].start()
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent to come back")
        log = cluster.log_of("manager")
        assert 0 < log.count("have not greeted") < 130, "strangers fill the log: " + log
        cluster.stop()
