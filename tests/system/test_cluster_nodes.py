# SPDX-License-Identifier: Apache-2.0
"""Sessions whose kernels are on several nodes, with a manager: names, traffic, what is left."""

import os
import re
import signal
import subprocess

import pytest

from cluster import wait_for
from hosts import Hosts
from runtimes import Session, exit_code, settings_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="networks of their own need root")

# 'sub1' answers on a port, by its name; 'main1' asks until it does
TALK = """
if [ $RANK != 0 ]; then
  exec python3 -c '
import socket
s = socket.create_server(("", 2222))
while True: c, peer = s.accept(); c.sendall(f"from {peer[0]}".encode()); c.close()'
fi
echo if $NCCL_SOCKET_IFNAME $OMPI_MCA_btl_tcp_if_include
cat /etc/hosts
df --output=size -m /dev/shm | tail -1 | xargs echo shm
for i in 1 2 3 4 5 6 7 8 9 10; do
  python3 -c '
import socket
s = socket.create_connection(("sub1", 2222), 5); print(s.recv(100).decode())' && exit 0
  sleep 1
done
exit 1
"""

# 'sub1' sends a megabyte and is gone; 'main1' counts what comes
SEND = """
if [ $RANK != 0 ]; then
  exec python3 -c '
import socket, time
while True:
  try: s = socket.create_connection(("main1", 2222), 5); break
  except OSError: time.sleep(0.1)
s.sendall(bytes(1000000))'
fi
exec python3 -c '
import socket
s = socket.create_server(("", 2222))
c, _ = s.accept()
c.settimeout(20)
count = 0
while got := c.recv(65536): count += len(got)
print("received", count)'
"""


def make_hosts(**more):
    return Hosts(count=2, **{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "1",
                             "ALIQUOT_NETWORK_ENABLED": "true", **more})


def start_session(hosts, script):
    return Session(hosts, script, clusterSize=2, clusterMode="multi-node",
                   config={"resources": {"cpu": "1", "mem": "256m"}})


def daemons_of(hosts):
    """wireguard-go of these hosts."""
    found = []
    for host in list(hosts.hosts.values())[1:]:
        own = os.readlink(f"/proc/{host.process.pid}/ns/net")
        for pid in subprocess.run(["pgrep", "wireguard-go"], text=True, capture_output=True,
                                  check=False).stdout.split():
            try:
                found += [pid] if os.readlink(f"/proc/{pid}/ns/net") == own else []
            except FileNotFoundError:
                pass
    return found


@pytest.mark.gate
@pytest.mark.parametrize("mode", ("auto", "vxlan"))
def test_kernels_on_two_nodes(mode):
    with make_hosts(ALIQUOT_NETWORK_CLUSTER=mode) as hosts:
        hosts.begin()
        session = start_session(hosts, TALK)
        shown = session.wait()
        assert exit_code(shown) == 0, session.log
        assert {kernel["agent"] for kernel in shown["kernels"]} == {"node0", "node1"}
        own = re.search(r"^(\S+)\tmain1$", session.log, re.M)[1]
        assert re.search(r"^10\.214\.\S+\tsub1$", session.log, re.M), session.log
        assert f"from {own}\n" in session.log
        assert "if cluster0 cluster0\n" in session.log and "shm 128\n" in session.log
        hosts.check_all_gone()
        assert daemons_of(hosts) == []


def test_a_port_that_is_closed_between_nodes():
    with make_hosts() as hosts:
        hosts.begin()
        hosts.block_udp(51871)
        session = start_session(hosts, "sleep 600")
        shown = session.wait()
        assert "network-unreachable" in str(shown) or "got no answer from agent" in str(shown), shown


def test_the_last_bytes_of_a_program_arrive():
    """Over a slow way that loses frames: it ends while most of them are still to be sent."""
    with make_hosts() as hosts:
        hosts.begin()
        hosts.set_delay(0, 1, 25)
        hosts.set_loss(0, 1, 1)
        session = start_session(hosts, SEND)
        shown = session.wait()
        assert exit_code(shown) == 0 and "received 1000000\n" in session.log, session.log
        hosts.check_all_gone()


def test_an_agent_that_is_killed_while_kernels_talk():
    with make_hosts() as hosts:
        hosts.begin()
        session = start_session(hosts, TALK.replace("exit 0", "touch /home/work/talked && "
                                                    "while [ ! -e /tmp/end ]; do sleep 1; done"))
        session.wait("RUNNING")
        wait_for(lambda: "from 10.214." in session.log, 60, lambda: session.log)
        agent = hosts.programs["node0"].process
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        assert len(daemons_of(hosts)) == 2
        hosts.start_agent("node0")
        wait_for(lambda: hosts.agent("node0").get("connected"), 60, "node0")
        assert len(daemons_of(hosts)) == 2
        session.end(forced=True)
        session.wait()
        hosts.check_all_gone()
        assert daemons_of(hosts) == []
