# SPDX-License-Identifier: Apache-2.0
"""Connections that say nothing to the agents' port keep no agent out."""

import contextlib
import socket
import time

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


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(status.read().split("VmRSS:")[1].split()[0])


def test_who_says_nothing_costs_a_socket():
    """And no session of TLS, which is tens of KiB and much of a turn of the loop."""
    count = 400
    with Cluster() as cluster, contextlib.ExitStack() as held:
        cluster.start_manager()
        host, port = cluster.link.split(":")
        manager = cluster.programs["manager"].pid
        cluster.start_agent()
        before = resident_kib(manager)
        for _ in range(count):
            held.enter_context(socket.create_connection((host, int(port)), timeout=30))
        cluster.client().get("/aliquot/v1/health")
        time.sleep(1)
        each = (resident_kib(manager) - before) / count
        assert each < 16, f"{each:.1f} KiB for each silent connection"
        cluster.stop()
