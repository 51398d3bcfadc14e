# SPDX-License-Identifier: Apache-2.0
"""The private network of sessions between nodes: two nodes in namespaces, kernels on both,
no manager."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from clusterlab import ClusterLab, Joined
from netlab import Inside, new_id, wait_for
from world import ROOT

MODES = ["wireguard-go", "vxlan"]
POINTS = [point for point in subprocess.run([ROOT / "tools" / "fault-points"], text=True,
                                            capture_output=True, check=True).stdout.split()
          if point.startswith("agent.cluster.")]

ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 7))
while True: data, peer = s.recvfrom(65536); s.sendto(data, peer)
"""

# a datagram that may not be split, until it comes back
WHOLE = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
for _ in range(20):
    try:
        s.sendto(bytes(int(sys.argv[2])), (sys.argv[1], 7)); print(len(s.recv(65536))); break
    except (TimeoutError, ConnectionRefusedError): pass
"""


@pytest.fixture(name="lab", params=MODES)
def lab_fixture(tmp_path, request):
    lab = ClusterLab(tmp_path, request.param)
    yield lab
    lab.close()


def start(lab):
    drivers = [node.driver() for node in lab.nodes]
    for node, driver in zip(lab.nodes, drivers):
        driver.say("peers", json.dumps(lab.peers(node)))
        assert "error" not in driver.answer("peers")
    return drivers


def join(lab, drivers, number, places=(0, 1)):
    """A session with a kernel at each of these nodes."""
    session = new_id()
    network = lab.session(number, [lab.nodes[place] for place in places])
    kernels = [Joined(lab.nodes[place], drivers[place], session, network, index)
               for index, place in enumerate(places)]
    for kernel in kernels:
        kernel.say_join()
    for kernel in kernels:
        assert "error" not in (answer := kernel.joined()), answer
    return kernels


@pytest.mark.gate
def test_kernels_on_two_nodes(lab):
    drivers = start(lab)
    main, sub = join(lab, drivers, 1)
    lab.nodes[0].listen(main.inside, "0.0.0.0", 29500, "main")
    lab.nodes[1].listen(sub.inside, "0.0.0.0", 2222, "sub")
    # both ways, with their own addresses, which the names lead to
    assert lab.nodes[0].connect(main.inside, sub.address, 2222) == f"sub {main.address}"
    assert lab.nodes[1].connect(sub.inside, main.address, 29500) == f"main {sub.address}"
    for kernel in (main, sub):
        assert f"{main.address}\tmain1\n" in kernel.hosts()
        assert f"{sub.address}\tsub1\n" in kernel.hosts()
        assert "10.213." not in kernel.hosts()
    # packets of full size in one piece
    lab.nodes[1].servers.append(subprocess.Popen(sub.inside.words(sys.executable, "-c", ECHO)))
    sent = main.inside.run(sys.executable, "-c", WHOLE, sub.address, lab.nodes[0].offer["mtu"] - 28)
    assert sent == f"{lab.nodes[0].offer['mtu'] - 28}\n"


def test_three_kernels_of_which_two_share_a_node(lab):
    drivers = start(lab)
    main, near, far = join(lab, drivers, 1, (0, 0, 1))
    for listener in (main, near, far):
        listener.node.listen(listener.inside, "0.0.0.0", 80, listener.hostname)
    for one in (main, near, far):
        for other in (main, near, far):
            if one is not other:
                assert one.node.connect(one.inside, other.address, 80) \
                    == f"{other.hostname} {one.address}"


def test_sessions_do_not_reach_each_other(lab):
    drivers = start(lab)
    one, other = join(lab, drivers, 1), join(lab, drivers, 2)
    for kernel in one:
        kernel.node.listen(kernel.inside, "0.0.0.0", 80, "reached")
    for kernel in other:
        kernel.inside.run("ip", "route", "add", "10.214.0.0/16", "via", "169.254.1.1", "dev",
                          "cluster0")
        for target in one:
            assert kernel.node.connect(kernel.inside, target.address, 80, 2) == "no answer"
    assert one[0].node.connect(one[0].inside, one[1].address, 80).startswith("reached")


def test_nothing_but_the_session(lab):
    """Not agents, not the node, and nobody with another's address."""
    drivers = start(lab)
    main, sub = join(lab, drivers, 1)
    node = lab.nodes[0]
    node.listen(node.node, "0.0.0.0", 8082, "node")
    lab.nodes[1].listen(sub.inside, "0.0.0.0", 80, "reached")
    main.inside.run("ip", "route", "add", "10.214.0.0/16", "via", "169.254.1.1", "dev", "cluster0")
    main.inside.run("ip", "route", "add", "192.0.2.0/24", "via", "169.254.1.1", "dev", "cluster0")
    for address in ("169.254.1.1", lab.nodes[0].own, lab.nodes[1].own, "192.0.2.1", "192.0.2.2"):
        assert "node" not in node.connect(main.inside, address, 8082, 2), address
    assert node.connect(main.inside, sub.address, 80).startswith("reached")
    # of its own session, and of none
    for spoofed in ("10.214.1.9", "10.214.1.2", "10.213.0.77", "192.0.2.1"):
        main.inside.run("ip", "address", "add", f"{spoofed}/32", "dev", "lo")
        main.inside.run("ip", "route", "replace", "10.214.1.0/28", "via", "169.254.1.1", "dev",
                        "cluster0", "src", spoofed)
        if spoofed != sub.address:
            assert node.connect(main.inside, sub.address, 80, 2) == "no answer", spoofed
        main.inside.run("ip", "address", "del", f"{spoofed}/32", "dev", "lo")


# a datagram of main1 for sub1 in a packet of the tunnel of VXLAN, as the agent a1 sends it to a2
FORGE = """
import socket, struct, sys
def mac(agent):
    value = 14695981039346656037
    for byte in agent: value = ((value ^ byte) * 1099511628211) % 2**64
    return b"\\2" + struct.pack("<Q", value)[:5]
udp = struct.pack("!HHHH", 9, 7, 12, 0) + b"evil"
head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0)
head += socket.inet_aton(sys.argv[2]) + socket.inet_aton(sys.argv[3])
total = sum(struct.unpack("!10H", head)); total = (total & 0xffff) + (total >> 16)
head = head[:10] + struct.pack("!H", ~total & 0xffff) + head[12:]
frame = mac(b"a2") + mac(b"a1") + struct.pack("!H", 0x800) + head + udp
packet = struct.pack("!II", 0x08000000, int(sys.argv[4]) << 8) + frame
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3):
    try: print(s.sendto(packet, (sys.argv[1], 51871)))
    except PermissionError as error: print(error)
"""


def test_no_kernel_writes_packets_of_the_tunnel(tmp_path):
    """A container of another session, which reaches the other node as containers may."""
    lab = ClusterLab(tmp_path, "vxlan")
    try:
        drivers = start(lab)
        main, sub = join(lab, drivers, 1)
        device = lab.nodes[1].node.run(
            "nsenter", "--net=" + str(next(lab.nodes[1].folder.glob("net/*/cluster/ns"))), "ip",
            "-d", "link", "show", "tunnel0")
        words = (sys.executable, "-c", FORGE, lab.nodes[1].address, main.address, sub.address,
                 re.search(r"vxlan id (\d+)", device)[1])
        other = drivers[0].open(new_id(), new_id(), "main1")
        listen = ["timeout", "3", sys.executable, "-c", "import socket\n"
                  "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 7))\n"
                  "print('listens', flush=True); print(s.recv(9), flush=True)"]
        for run, heard in ((Inside(lab.nodes[0].node, other["ns"]).run, ""),
                           (lab.nodes[0].node.run, "b'evil'\n")):  # the node itself: the packet is
            with subprocess.Popen(sub.inside.words(*listen), text=True,     # as it has to be
                                  stdout=subprocess.PIPE) as listener:
                assert listener.stdout.readline() == "listens\n"
                run(*words)
                assert listener.stdout.read() == heard
    finally:
        lab.close()


SEARCH = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(4, 1020): s.sendto(b"?", (f"10.214.{8 + i // 256}.{i % 256}", 9))
"""


def test_addresses_without_a_kernel(lab):
    """Packets to them leave nothing that waits in the node's one table of neighbours."""
    drivers = start(lab)
    session = new_id()
    network = lab.session(8, [lab.nodes[0], lab.nodes[1], lab.nodes[1]])
    network["subnet"] = "10.214.8.0/22"
    later = dict(network["kernels"][2], address="10.214.9.44")
    network["kernels"][2] = {"hostname": "sub2", "address": "10.214.9.44"}
    main, sub = (Joined(lab.nodes[place], drivers[place], session, network, place)
                 for place in (0, 1))
    for kernel in (main, sub):
        kernel.say_join()
    for kernel in (main, sub):
        assert "error" not in kernel.joined()
    main.inside.run(sys.executable, "-c", SEARCH)
    waiting = lab.nodes[0].node.run(
        "nsenter", "--net=" + str(next(lab.nodes[0].folder.glob("net/*/cluster/ns"))), "ip",
        "neigh", "show", "nud", "incomplete", "nud", "failed", "dev", "tunnel0")
    assert waiting == ""
    # one of them gets a kernel
    network["kernels"][2] = later
    late = Joined(lab.nodes[1], drivers[1], session, network, 2)
    for driver in drivers:
        driver.say("session", session, json.dumps(network))
        assert "error" not in driver.answer("session")
    late.say_join()
    assert "error" not in late.joined()
    lab.nodes[1].listen(late.inside, "0.0.0.0", 80, "late")
    assert wait_for(lambda: lab.nodes[0].connect(main.inside, late.address, 80, 5)
                    == f"late {main.address}")


def test_an_agent_that_does_not_answer(tmp_path):
    lab = ClusterLab(tmp_path, "wireguard-go")
    try:
        drivers = start(lab)
        lab.nodes[1].node.run("ip", "link", "set", "uplink", "down")
        network = lab.session(1, lab.nodes)
        kernel = Joined(lab.nodes[0], drivers[0], new_id(), network, 0)
        kernel.say_join()
        assert kernel.joined()["error"] == (
            "agent a1 got no answer from agent a2 (192.0.2.2:51871/udp, wireguard-go) for 10 s; "
            "open that port between the nodes")
    finally:
        lab.close()


def test_reach_is_reported(lab):
    drivers = start(lab)
    assert drivers[0].answer("reach") == {"did": "reach", "reachable": ["a2"], "unreachable": []}
    assert drivers[1].answer("reach") == {"did": "reach", "reachable": ["a1"], "unreachable": []}


def test_large_packets_that_are_dropped(tmp_path):
    """Something between the nodes drops them, and nobody hears of it."""
    lab = ClusterLab(tmp_path, "wireguard-go")
    try:
        drivers = start(lab)
        main, sub = join(lab, drivers, 1)
        for number in (1, 2):
            lab.switch.space.run("ip", "link", "set", f"port{number}", "mtu", 1440)
        assert wait_for(lambda: "mtu 1280" in lab.nodes[0].node.run(
            "nsenter", "--net=" + str(next(lab.nodes[0].folder.glob("net/*/cluster/ns"))), "ip",
            "link", "show", "tunnel0"), 60)
        # the kernel's own interface is larger: it hears of it
        lab.nodes[1].servers.append(subprocess.Popen(sub.inside.words(sys.executable, "-c", ECHO)))
        split = WHOLE.replace("10, 2)", "10, 1)")
        assert main.inside.run(sys.executable, "-c", split, sub.address, 1392) == "1392\n"
    finally:
        lab.close()


def test_lists_that_are_wrong(lab):
    drivers = start(lab)
    main, _ = join(lab, drivers, 1)
    # a subnet of another session, and of this node's own networks
    for subnet, address, text in (
            ("10.214.1.0/28", "10.214.1.1", f"is in use by session {main.session}"),
            ("10.213.4.0/28", "10.213.4.1", "lies in this node's [network] pool")):
        network = lab.session(1, lab.nodes)
        network["subnet"] = subnet
        network["kernels"] = [{"hostname": "main1", "address": address, "agent": "a1"}]
        kernel = Joined(lab.nodes[0], drivers[0], new_id(), network, 0)
        kernel.say_join()
        assert text in kernel.joined()["error"]
    drivers[0].say("session", main.session, json.dumps({"subnet": "10.214.1.0/28",
                                                        "kernels": [{"hostname": "a b",
                                                                     "address": "10.214.1.1"}]}))
    assert "'a b' is not a valid hostname" in drivers[0].answer("session")["error"]


def test_a_session_grows(lab):
    drivers = start(lab)
    main, sub = join(lab, drivers, 1)
    network = lab.session(1, [lab.nodes[0], lab.nodes[1], lab.nodes[1]])
    late = Joined(lab.nodes[1], drivers[1], main.session, network, 2)
    for driver in drivers:
        driver.say("session", main.session, json.dumps(network))
        assert "error" not in driver.answer("session")
    late.say_join()
    assert "error" not in late.joined()
    assert wait_for(lambda: all(f"{late.address}\tsub2\n" in kernel.hosts()
                                for kernel in (main, sub, late)))
    lab.nodes[1].listen(late.inside, "0.0.0.0", 80, "late")
    assert wait_for(lambda: lab.nodes[0].connect(main.inside, late.address, 80, 5)
                    == f"late {main.address}")
    assert lab.nodes[1].connect(sub.inside, late.address, 80) == f"late {sub.address}"


def test_many_kernels_at_once(tmp_path):
    lab = ClusterLab(tmp_path, "wireguard-go")
    try:
        drivers = start(lab)
        network = {"subnet": "10.214.8.0/22", "agents": lab.agents(), "kernels": [
            {"hostname": f"sub{i}", "address": f"10.214.{8 + i // 200}.{i % 200 + 1}",
             "agent": "a2" if i == 299 else "a1"} for i in range(300)]}
        session, text = new_id(), json.dumps(network)
        far = Joined(lab.nodes[1], drivers[1], session, network, 299)
        far.say_join()
        kernels = [new_id() for _ in range(299)]
        for index, kernel in enumerate(kernels):
            drivers[0].say("open", kernel, session, f"sub{index}")
        infos = [drivers[0].answer("open", kernel) for kernel in kernels]
        begin = time.monotonic()
        for index, kernel in enumerate(kernels):
            drivers[0].say("join", kernel, session, f"sub{index}", text)
        for kernel in kernels:
            assert "error" not in (answer := drivers[0].answer("join", kernel)), answer
        assert time.monotonic() - begin < 60
        lab.nodes[1].listen(far.inside, "0.0.0.0", 80, "far")
        for index in (0, 298):
            assert lab.nodes[0].connect(Inside(lab.nodes[0].node, infos[index]["ns"]), far.address,
                                        80) == f"far {network['kernels'][index]['address']}"
    finally:
        lab.close()


def leftovers(node):
    sockets = node.node.run("ls", "/run/wireguard")
    state = node.state()
    state["folder"] = [path for path in state["folder"] if "/state" not in path]
    return state, node.tunnels()[0], sockets


@pytest.mark.gate
def test_nothing_is_left(lab):
    before = [leftovers(node) for node in lab.nodes]
    drivers = start(lab)
    kernels = join(lab, drivers, 1)
    for kernel in kernels:
        kernel.driver.say("leave", kernel.kernel)
        kernel.driver.answer("leave", kernel.kernel)
        assert "error" not in kernel.driver.shut(kernel.kernel)
    for driver in drivers:
        driver.end()
    assert [leftovers(node) for node in lab.nodes] == before


def test_a_kernel_that_left(lab):
    """The others do not reach its address, which another session's kernel may get."""
    drivers = start(lab)
    main, sub = join(lab, drivers, 1)
    links = lab.nodes[1].node.run("nsenter", "--net=" + str(next(
        lab.nodes[1].folder.glob("net/*/cluster/ns"))), "ip", "-o", "link")
    assert ": k0ad60102" in links
    sub.driver.say("leave", sub.kernel)
    sub.driver.answer("leave", sub.kernel)
    ns = next(lab.nodes[1].folder.glob("net/*/cluster/ns"))
    assert wait_for(lambda: ": k0ad60102" not in
                    lab.nodes[1].node.run("nsenter", f"--net={ns}", "ip", "-o", "link"))
    assert "10.214.1.0/28" not in lab.nodes[1].node.run("nsenter", f"--net={ns}", "nft", "list",
                                                        "ruleset")
    assert lab.nodes[0].connect(main.inside, sub.address, 80, 2).split()[0] in ("no", "refused")


def test_kill_9_and_adoption(lab):
    drivers = start(lab)
    main, sub = join(lab, drivers, 1)
    lab.nodes[0].listen(main.inside, "0.0.0.0", 80, "main")
    drivers[0].kill()
    # what runs goes on without an agent
    assert lab.nodes[1].connect(sub.inside, main.address, 80) == f"main {sub.address}"
    again = lab.nodes[0].driver()
    assert "error" not in again.adopt(main.kernel)
    main.say_join("rejoin", again)
    assert "error" not in main.joined(again)
    again.sweep()
    assert lab.nodes[1].connect(sub.inside, main.address, 80) == f"main {sub.address}"
    assert f"{sub.address}\tsub1\n" in main.hosts()
    again.say("leave", main.kernel)
    again.answer("leave", main.kernel)
    again.shut(main.kernel)
    again.end()
    assert lab.nodes[0].tunnels()[0] == []
    assert not list(lab.nodes[0].folder.glob("net/*/cluster"))


def test_what_nobody_claims_is_removed(lab):
    drivers = start(lab)
    main, _ = join(lab, drivers, 1)
    drivers[0].kill()
    again = lab.nodes[0].driver()
    again.sweep()
    assert wait_for(lambda: not list(lab.nodes[0].folder.glob("net/*/cluster/ns")))
    assert lab.nodes[0].tunnels()[0] == []
    again.end()
    assert main.kernel not in str(list(lab.nodes[0].folder.rglob("*")))


def test_wireguard_go_comes_back(tmp_path):
    lab = ClusterLab(tmp_path, "wireguard-go")
    try:
        drivers = start(lab)
        main, sub = join(lab, drivers, 1)
        lab.nodes[0].listen(main.inside, "0.0.0.0", 80, "main")
        daemons = lab.nodes[0].tunnels()[0]
        assert len(daemons) == 1
        subprocess.run(["kill", "-9", *daemons], check=True)
        assert wait_for(lambda: lab.nodes[0].tunnels()[0] not in ([], daemons), 30)
        assert wait_for(lambda: lab.nodes[1].connect(sub.inside, main.address, 80, 5)
                        == f"main {sub.address}")
    finally:
        lab.close()


@pytest.mark.parametrize("point", POINTS)
def test_killed(tmp_path, point):
    """kill -9 at each point: the next agent joins the kernel again, and leaves nothing."""
    lab = ClusterLab(tmp_path, "vxlan" if point == "agent.cluster.routes" else "wireguard-go")
    mark = tmp_path / "died"
    try:
        node, peer = lab.nodes
        before = leftovers(node)
        peers = [node.driver(), peer.driver()]  # for their offers
        peers[0].end()
        peers[1].say("peers", json.dumps(lab.peers(peer)))
        first = node.driver(env={"ALIQUOT_FAULT": point, "ALIQUOT_FAULT_ONCE": str(mark)})
        session, network = new_id(), lab.session(1, lab.nodes)
        sub = Joined(peer, peers[1], session, network, 1)
        sub.say_join()
        kernel = new_id()
        info = first.open(kernel, session, "main1")
        assert "error" not in info
        first.say("peers", json.dumps(lab.peers(node)))
        first.say("join", kernel, session, "main1", json.dumps(network))
        if first.answer("join", kernel):
            first.say("session", session, json.dumps(network))
            first.say("leave", kernel)
            first.shut(kernel)
            first.say("end")
        assert first.process.wait(60) == -signal.SIGKILL and mark.exists(), "not passed"
        second = node.driver()
        second.say("peers", json.dumps(lab.peers(node)))
        if "error" not in second.adopt(kernel):
            second.say("join", kernel, session, "main1", json.dumps(network))
            assert "error" not in (answer := second.answer("join", kernel)), answer
            second.say("leave", kernel)
            second.answer("leave", kernel)
            second.shut(kernel)
        second.sweep()
        second.end()
        assert leftovers(node) == before
    finally:
        lab.close()
