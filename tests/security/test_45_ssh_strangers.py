# SPDX-License-Identifier: Apache-2.0
"""Somebody who reaches a session's SSH port, and does not log in, has neither all its connections
nor the memory of its container: half of them, and users come in by the manager.

Run as a program, this file tells the story, in a network namespace of its own.
"""

import contextlib
import pathlib
import socket
import sys

import pytest

from client import ADMIN
from cluster import ENDED, wait_for, wait_status

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

from test_container_network import check_all_gone, tell_apart  # noqa: E402
from test_system_session import NODE, end, start  # noqa: E402

TRIED, SERVED = 200, 64


def hold(stack, port):
    """Connect, and wait for the server's first words, or that it hangs up: how many are served."""
    stack.close()
    held = [stack.enter_context(socket.create_connection((NODE, port), 60)) for _ in range(TRIED)]
    served = 0
    for each in held:
        with contextlib.suppress(ConnectionResetError):
            served += each.recv(4) == b"SSH-"
    return served


def story(cluster, kind):
    client = cluster.client(ADMIN)
    reply = client.post("/session", {
        "name": kind, "type": kind, "enqueueOnly": True,
        "image": "aliquot/files" if kind == "system" else "host",
        "config": {"mounts": ["data"], "resources": {"cpu": "1", "mem": "256m"}}})
    assert reply.status == 201, reply
    cluster.session = reply.json["sessionId"]
    shown = wait_status(client, cluster.session, "RUNNING", *ENDED)
    ports = {service["name"]: service for service in shown["kernels"][0]["service_ports"]}
    with contextlib.ExitStack() as stack:
        assert hold(stack, ports["sshd"]["host_ports"][0]) == SERVED
        done = cluster.run_client("aliquot", "ssh", kind, "--", "echo I am in")
        assert ("I am in" in done.stdout if kind == "interactive"
                else "this session moves files" in done.stderr), done
        # those that have gone make room
        wait_for(lambda: hold(stack, ports["sshd"]["host_ports"][0]) == SERVED, 60, "room again")
    end(cluster)


@pytest.mark.gate
@pytest.mark.parametrize("kind", ["interactive", "system"])
def test_strangers_leave_room(kind):
    tell_apart(__file__, "crun", kind)


if __name__ == "__main__":
    with start("crun") as started:
        story(started, sys.argv[2])
        check_all_gone(started)
