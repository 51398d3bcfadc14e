# SPDX-License-Identifier: Apache-2.0
"""Containers in their network: what they reach, what goes on when the agent is
killed, and that nothing of it is left.

Each story is told in a network namespace of its own, with an uplink that leads
nowhere, so that the machine's own network is not touched. Run as a program,
this file tells one.
"""

import os
import re
import subprocess
import sys

import pytest

import containers
from cluster import Cluster, wait_for
from runtimes import Session, exit_code, run, settings_of, wait_for_exit

UPLINK = ("ip link set lo up", "ip link add up0 type veth peer name up1",
          "ip addr add 192.0.2.2/24 dev up0", "ip link set up0 up", "ip link set up1 up",
          "ip route add default via 192.0.2.1")


def links():
    shown = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in shown.stdout.splitlines() if line.startswith("aq")]


def start(runtime):
    for command in UPLINK:
        subprocess.run(command.split(), check=True)
    cluster = Cluster(**{**settings_of(runtime), "ALIQUOT_NETWORK_ENABLED": "true"})
    cluster.runtime = runtime
    cluster.start_manager()
    cluster.start_agent()
    return cluster


def story_of_one(cluster):
    """It has an address and a name, and reaches neither node nor manager."""
    port = cluster.address[1]
    _, log = run(cluster, "ip -br addr; cat /etc/hosts; for a in 192.0.2.2 127.0.0.1; do "
                          f"timeout 1 bash -c \"echo > /dev/tcp/$a/{port}\" && echo reached; done")
    address = re.search(r"^eth0\S+ +UP +(\S+)", log, re.M)
    assert address and re.search(rf"^{address.group(1)}\tmain1$", log, re.M), log
    assert "reached" not in log, log


def story_of_two(cluster):
    """Sessions do not reach each other."""
    first = Session(cluster, "ip -br -4 addr show eth0; exec python3 -m http.server 8000 "
                             "--bind 0.0.0.0")
    first.wait_log("eth0")
    address = first.log.split()[2]
    _, log = run(cluster, f"timeout 1 bash -c 'echo > /dev/tcp/{address}/8000'; echo $?")
    assert log.splitlines()[-1] != "0", log
    first.end(forced=True)
    first.wait()


def story_of_an_agent_that_is_killed(cluster):
    """What runs keeps its network."""
    session = Session(cluster, "echo one; sleep 3; ip -br addr show eth0; exit 4")
    session.wait_log("one")
    before = links()
    cluster.programs["agent"].kill()
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert exit_code(session.wait()) == 4 and " UP " in session.log, session.log
    assert before and len(before) == 1


def story_of_a_stopped_agent(cluster):
    """Stopped in good order, it leaves what runs as it is."""
    session = Session(cluster, "echo one; sleep 3; ip -br addr show eth0; exit 4")
    session.wait_log("one")
    cluster.programs["agent"].stop()
    assert len(links()) == 1
    cluster.start_agent()
    assert exit_code(session.wait()) == 4 and " UP " in session.log, session.log


def story_of_an_agent_that_is_away(cluster):
    """What ended meanwhile has no network any more."""
    session = Session(cluster, "echo one; sleep 1")
    session.wait_log("one")
    kernel = session.kernel["id"]
    cluster.programs["agent"].kill()
    wait_for_exit(cluster, kernel)
    cluster.programs["agent"].start()
    session.wait()


def check_all_gone(cluster):
    """The kernels have ended: ends the daemons, too."""
    cluster.check_nothing_left()
    wait_for(lambda: not links(), 30, lambda: f"{links()} to go")
    cluster.check_audits()
    cluster.stop()
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True,
                            check=True).stdout
    assert "aliquot" not in tables, tables
    assert containers.mounts_of(cluster.folder) == []


def tell_apart(file, runtime, name):
    """Run a test file as a program in a network namespace of its own."""
    if why := containers.why_not(runtime):
        pytest.skip(why)
    done = subprocess.run(["unshare", "--net", "--", sys.executable, file, runtime, name],
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr


def in_gate(stories, *names):
    """The stories' names as parameters, of which these are part of the gate."""
    return [pytest.param(name, marks=pytest.mark.gate) if name in names else name
            for name in stories]


STORIES = {name: story for name, story in globals().items() if name.startswith("story_")}


def tell(runtime, name):
    with start(runtime) as cluster:
        STORIES[name](cluster)
        check_all_gone(cluster)


@pytest.mark.parametrize("runtime", ("crun", "runc"))
@pytest.mark.parametrize("name", in_gate(STORIES, "story_of_two"))
def test_story(runtime, name):
    tell_apart(__file__, runtime, name)


if __name__ == "__main__":
    tell(*sys.argv[1:])
