# SPDX-License-Identifier: Apache-2.0
"""Sessions that use the network of their nodes: who may, what their programs find, and that two of
them on the same nodes do not get in each other's way."""

import os
import re
import stat
import subprocess

import pytest

from cluster import interactive, wait_for, wait_status
from hosts import Hosts
from runtimes import Session, exit_code, settings_of

# A server at MASTER_PORT of main1, which all others connect to by its name.
MEET = """
import os, socket, time
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(("0.0.0.0", address[1])) as server:
        for _ in range(int(os.environ["WORLD_SIZE"]) - 1):
            connection, peer = server.accept()
            print("met", connection.recv(100).decode(), "from", peer[0], flush=True)
else:
    for _ in range(300):
        try:
            with socket.create_connection(address) as connection:
                connection.sendall(socket.gethostname().encode())
            break
        except OSError:
            time.sleep(0.1)
"""
SHOW = """
echo "$(hostname) $NCCL_SOCKET_IFNAME $MASTER_PORT $ALIQUOT_NETWORK $ALIQUOT_PORTS"
ip -br -4 address show eth0
getent hosts main1 sub1
ls /sys/class/net
"""


@pytest.fixture(scope="module", name="running")
def running_fixture():
    """Two nodes for four kernels each."""
    with Hosts(count=2, **{**settings_of("crun"), "ALIQUOT_NETWORK_ENABLED": "true",
                           "ALIQUOT_NETWORK_HOST": "true", "ALIQUOT_RESOURCE_CPUS": "4",
                           "ALIQUOT_RESOURCE_MEM": "16g"}) as hosts:
        hosts.begin()
        allow(hosts)
        yield hosts
        hosts.check_all_gone()


def allow(hosts, group=("private", "host"), policy=True):
    client = hosts.client()
    for path, change in (("resource-groups", {"networks": list(group)}),
                         ("keypair-policies", {"host_network": policy})):
        reply = client.send("PATCH", f"/aliquot/v1/{path}/default", change)
        assert reply.status == 200, reply


def spread(count, cores=None):
    """So many kernels, of a size that half of them fill a node if 'cores' is not said."""
    cores = cores or 4 // (count // 2)
    return {"network": "host", "clusterSize": count, "clusterMode": "multi-node",
            "config": {"resources": {"cpu": str(cores), "mem": "512m"}}}


def test_the_refusal_says_who_may_change_it(hosts):
    client = hosts.client()
    body = {"name": "refused", "type": "batch", "image": "host", "startupCommand": "true",
            "enqueueOnly": True, **spread(2)}
    try:
        for group, policy, who in ((("private",), True, "admin resource-group set default"),
                                   (("private", "host"), False, "admin policy set default")):
            allow(hosts, group, policy)
            reply = client.post("/session", body)
            assert (reply.status, reply.slug) == (403, "host-network-forbidden"), reply
            assert who in str(reply.json), reply
            assert "network" in str(reply.json), reply
    finally:
        allow(hosts)


def test_a_minimum_is_refused(hosts):
    reply = hosts.client().post("/session", {
        "name": "refused", "type": "batch", "image": "host", "startupCommand": "true",
        **spread(2), "clusterSizeMin": 1})
    assert reply.status == 400 and "minimum" in str(reply.json), reply


def meet(hosts, count, cores, more=""):
    return Session(hosts, f"{SHOW}cat > meet.py <<'END'\n{MEET}\nEND\n/usr/bin/python3 meet.py\n"
                   + more, **spread(count, cores))


def check_met(session, count, nodes):
    assert exit_code(session.wait(seconds=120)) == 0, session.log
    met = dict(re.findall(r"^met (\w+) from ([0-9.]+)", session.log, re.M))
    assert sorted(met) == [f"sub{number}" for number in range(1, count)], session.log
    assert set(met.values()) <= set(nodes) | {"127.0.0.1"}, session.log


def test_kernels_meet_in_the_network_of_the_nodes(hosts):
    """By the addresses of the nodes, while another session does the same on the same nodes."""
    nodes = [hosts.hosts[number].address for number in (0, 1)]
    sessions = [meet(hosts, 4, 1), meet(hosts, 4, 1)]
    for session in sessions:
        check_met(session, 4, nodes)
        assert re.search(rf"^eth0\S* +\S+ +({'|'.join(nodes)})/24", session.log, re.M), session.log
        assert re.search(r"^main1 eth0 2\d{4} host 2\d{4}-2\d{4}$", session.log, re.M), session.log
        for name in ("main1", "sub1"):
            assert re.search(rf"^({'|'.join(nodes)}) +{name}\b", session.log, re.M), session.log
        assert re.search("^eth0$", session.log, re.M), session.log  # /sys shows that network
    ports = [re.search(r"^main1 eth0 (\d+)", session.log, re.M).group(1) for session in sessions]
    assert ports[0] != ports[1]


def test_mpi(hosts):
    """mpirun reaches a kernel of the other node by ssh, at the port that it has there."""
    session = Session(hosts, "if [ $RANK != 0 ]; then exec sleep 600; fi\n"
                      "mpirun --allow-run-as-root sh -c 'echo rank $OMPI_COMM_WORLD_RANK of "
                      "$OMPI_COMM_WORLD_SIZE on $(hostname)'", **spread(4, 2))
    assert exit_code(session.wait(seconds=120)) == 0, session.log
    ranks = sorted(re.findall(r"^rank \d of 4 on \w+", session.log, re.M))
    assert ranks[:2] == ["rank 0 of 4 on main1", "rank 1 of 4 on main1"], session.log
    assert len(ranks) == 4 and len(set(ranks[2:])) == 2 and "main1" not in ranks[2], session.log


def test_ports_of_a_session(hosts):
    """Its SSH server and what it opens are at the node; apps without a password are not there."""
    client = hosts.client()
    body = interactive("opened", image="host", network="host")
    body["config"] |= {"preopen_ports": [8123], "resources": {"cpu": "1", "mem": "256m"}}
    reply = client.post("/session", body)
    assert reply.status == 201, reply
    session = reply.json["sessionId"]
    [kernel] = wait_status(client, session, "RUNNING")["kernels"]
    services = {service["name"]: service for service in kernel["service_ports"]}
    assert services["8123"]["host_ports"] == services["8123"]["container_ports"] == [8123]
    assert "ttyd" not in services, services
    [port] = services["sshd"]["host_ports"]
    assert 20000 <= port < 30000, services
    keys = client.get("/aliquot/v1/sessions/opened/ssh").json
    assert keys["port"] == port
    assert hosts.cli("exec", "opened", "--", "true").returncode == 0
    done = hosts.cli("ssh", "opened", "--", "cat /proc/net/dev")
    assert done.returncode == 0 and "eth0" in done.stdout, done


def test_why_names_the_setting(running):
    """Nodes that do not offer it are not used, and the session waits for one that does."""
    with Hosts(count=1, **{**settings_of("crun"), "ALIQUOT_NETWORK_ENABLED": "true"}) as hosts:
        hosts.begin()
        allow(hosts)
        assert not hosts.client().get("/aliquot/v1/agents").json["items"][0]["network"].get("host")
        session = Session(hosts, "true", **spread(1, 1))
        wait_for(lambda: "[network] host in agent.toml" in hosts.cli("why", session.id).stdout, 30,
                 "the reason")
        session.end()
        hosts.stop()
    assert running.client().get("/aliquot/v1/agents").json["items"][0]["network"]["host"]


def restart_agents(hosts):
    for name in ("node0", "node1"):
        hosts.programs[name].kill()
        wait_for(lambda: not hosts.agent(name).get("connected"), 30, f"{name} to be away")
        hosts.programs[name].start()
        wait_for(lambda: hosts.agent(name).get("connected"), 60, f"{name} to be back")


def test_a_port_that_is_taken(hosts):
    """The second session goes to the other node; the third is told whose the port is, by agents that
    were started again meanwhile."""
    client, sessions = hosts.client(), []
    for number in range(3):
        if number == 2:
            restart_agents(hosts)
        body = interactive(f"taken-{number}", image="host", network="host")
        body["config"] |= {"preopen_ports": [8124], "resources": {"cpu": "1", "mem": "256m"}}
        reply = client.post("/session", body)
        assert reply.status == 201, reply
        sessions.append(reply.json["sessionId"])
        if number < 2:
            wait_status(client, sessions[-1], "RUNNING")
    assert {client.get(f"/aliquot/v1/sessions/{session}").json["agents"][0]
            for session in sessions[:2]} == {"node0", "node1"}
    wait_for(lambda: "port 8124 of the node belongs to kernel" in hosts.cli("why", "taken-2").stdout,
             60, lambda: hosts.cli("why", "taken-2").stdout)


def make_rdma_root(folder):
    """What stands for "/" where RDMA devices are looked for: two devices, whose files are others that
    this machine has."""
    for number, name in enumerate(("mlx5_0", "mlx5_1")):
        (folder / "sys/class/infiniband" / name).mkdir(parents=True)
        verbs = folder / f"sys/class/infiniband_verbs/uverbs{number}"
        verbs.mkdir(parents=True)
        (verbs / "ibdev").write_text(f"{name}\n")
    (folder / "dev/infiniband").mkdir(parents=True)
    for name in ("uverbs0", "uverbs1", "rdma_cm", "umad0"):
        path = folder / "dev/infiniband" / name
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(10, 229))  # fuse, which no container has
        path.chmod(0o666)


def test_rdma_devices(tmp_path):
    """A session that asks for them has the devices of agent.toml, may open them, and no others."""
    make_rdma_root(tmp_path)
    locked = subprocess.run(["sh", "-c", "ulimit -l unlimited 2> /dev/null; ulimit -l"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    look = ("ls /dev/infiniband; echo $NCCL_IB_HCA; ulimit -l; "
            "exec 3<> /dev/infiniband/uverbs1 && echo opened\n")
    with Hosts(count=1, **{**settings_of("crun"), "ALIQUOT_NETWORK_ENABLED": "true",
                           "ALIQUOT_NETWORK_RDMA": "mlx5_1",
                           "ALIQUOT_ACCEL_ROOT": str(tmp_path)}) as hosts:
        hosts.begin()
        client = hosts.client()
        reply = client.post("/session", {"name": "refused", "type": "batch", "image": "host",
                                         "startupCommand": "true", "rdma": True, "config": {
                                             "resources": {"cpu": "1", "mem": "256m"}}})
        assert (reply.status, reply.slug) == (403, "host-network-forbidden"), reply
        allow(hosts)
        assert client.get("/aliquot/v1/agents").json["items"][0]["network"]["rdma"] == ["mlx5_1"]
        assert "RDMA devices mlx5_1" in hosts.cli("agent", "info", "node0").stdout
        session = Session(hosts, look, rdma=True)
        assert exit_code(session.wait()) == 0, session.log
        assert session.log == f"rdma_cm\nuverbs1\n=mlx5_1\n{locked}opened\n", session.log
        without = Session(hosts, look)
        assert exit_code(without.wait()) != 0 and "opened" not in without.log, without.log
        hosts.stop()
