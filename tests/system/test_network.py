# SPDX-License-Identifier: Apache-2.0
"""Networks of kernels: real namespaces, a real listener at everything that must
be out of reach, nothing left at the end or after kill -9."""

import os
import signal
import subprocess

import pytest

from netlab import POOL, Inside, Lab, new_id, wait_for
from world import ROOT

POINTS = [point for point in subprocess.run([ROOT / "tools" / "fault-points"], text=True,
                                            capture_output=True, check=True).stdout.split()
          if point.startswith("agent.net.")]


@pytest.fixture(name="lab")
def lab_fixture(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.close()


@pytest.mark.gate
def test_out_with_the_address_of_the_node(lab):
    driver = lab.driver()
    assert driver.start["note"] == ""
    lab.listen(lab.far, "198.51.100.7", 80, "web")
    _, info, inside = driver.kernel()
    assert lab.connect(inside, "198.51.100.7", 80) == "web 192.0.2.2"
    assert inside.run("cat", info["resolv"]) == "nameserver 198.51.100.53\n"
    assert info["address"] in inside.run("cat", info["hosts"])
    # names and ports below 1024 need no privileges, and there is no IPv6
    lab.listen(inside, "0.0.0.0", 81, "inside")
    assert lab.connect(lab.node, info["address"], 81) == "inside 10.213.0.1"
    assert "inet6" not in inside.run("ip", "address", "show", "dev", "eth0")


# where a listener is, its address and port, from where it can be reached for control
FORBIDDEN = {
    "node by its address": ("node", "192.0.2.2", 8082, "far"),
    "node by its other address": ("node", "203.0.113.1", 22, "lan"),
    "node by the gateway's": ("node", "10.213.0.1", 6379, "node"),
    "other session": ("other", None, 8080, "node"),
    "metadata service": ("far", "169.254.169.254", 80, "node"),
    "manager": ("far", "198.51.100.9", 8081, "node"),
    "denied by the administrator": ("lan", "203.0.113.5", 443, "node"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_out_of_reach(lab, name):
    where, address, port, control = FORBIDDEN[name]
    lab.node.run("ip", "route", "add", "169.254.0.0/16", "via", "192.0.2.1")
    driver = lab.driver(deny="203.0.113.0/24")
    driver.deny("198.51.100.9")
    _, info, inside = driver.kernel()
    _, other_info, other = driver.kernel()
    address = address or other_info["address"]
    spaces = {"node": lab.node, "far": lab.far, "lan": lab.lan, "other": other}
    lab.listen(spaces[where], address, port, "reached")
    wait_for(lambda: "198.51.100.9" in lab.node.run("nft", "list", "ruleset"))
    assert lab.connect(spaces[control], address, port).startswith("reached")
    assert lab.connect(inside, address, port).startswith("refused")


def test_link_local_of_ipv6(lab):
    driver = lab.driver()
    _, _, inside = driver.kernel()
    link = next(line.split(":")[1].split("@")[0].strip()
                for line in lab.node.run("ip", "-o", "link").splitlines() if ": aq" in line)
    # even with an address that someone gives it, and one for the kernel
    lab.node.run("sh", "-c", f"echo 0 > /proc/sys/net/ipv6/conf/{link}/disable_ipv6")
    lab.node.run("ip", "-6", "address", "add", "fe80::1/64", "dev", link, "nodad")
    inside.run("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
    inside.run("ip", "-6", "address", "add", "fe80::2/64", "dev", "eth0", "nodad")
    lab.listen(lab.node, f"fe80::1%{link}", 80, "reached", "AF_INET6")
    assert lab.connect(lab.node, f"fe80::1%{link}", 80).startswith("reached")
    assert "reached" not in lab.connect(inside, "fe80::1%eth0", 80, seconds=2)


def test_spoofed_sources_go_nowhere(lab):
    driver = lab.driver()
    lab.listen(lab.far, "198.51.100.7", 80, "web")
    _, _, inside = driver.kernel()
    assert lab.connect(inside, "198.51.100.7", 80).startswith("web")
    inside.run("ip", "address", "add", "10.213.0.99/32", "dev", "eth0")
    inside.run("ip", "route", "replace", "default", "via", "10.213.0.1", "src", "10.213.0.99")
    assert lab.connect(inside, "198.51.100.7", 80, seconds=2) == "no answer"


def test_name_server_at_a_forbidden_address(lab):
    lab.node.run("ip", "route", "add", "169.254.0.0/16", "via", "192.0.2.1")
    driver = lab.driver(dns="169.254.169.254")
    lab.listen(lab.far, "169.254.169.254", 53, "names")
    lab.listen(lab.far, "169.254.169.254", 80, "metadata")
    _, info, inside = driver.kernel()
    assert inside.run("cat", info["resolv"]) == "nameserver 169.254.169.254\n"
    assert lab.connect(inside, "169.254.169.254", 53) == "names 192.0.2.2"
    assert lab.connect(inside, "169.254.169.254", 80).startswith("refused")


def test_exceptions_of_the_administrator(lab):
    driver = lab.driver(deny="203.0.113.0/24", allow="203.0.113.5:443")
    lab.listen(lab.lan, "203.0.113.5", 443, "registry")
    lab.listen(lab.lan, "203.0.113.5", 80, "other")
    _, _, inside = driver.kernel()
    assert lab.connect(inside, "203.0.113.5", 443) == "registry 203.0.113.1"
    assert lab.connect(inside, "203.0.113.5", 80).startswith("refused")


@pytest.mark.gate
def test_kernels_of_one_session(lab):
    driver = lab.driver()
    session = new_id()
    _, first, inside = driver.kernel(session=session)
    second_id, second, other = driver.kernel(session=session, hostname="sub1")
    _, third, stranger = driver.kernel()
    lab.listen(inside, "0.0.0.0", 2200, "main")
    lab.listen(other, "0.0.0.0", 2200, "sub")
    assert lab.connect(inside, second["address"], 2200) == f"sub {first['address']}"
    assert lab.connect(other, first["address"], 2200) == f"main {second['address']}"
    assert lab.connect(stranger, first["address"], 2200).startswith("refused")
    for info in (first, second):
        hosts = open(info["hosts"], encoding="utf-8").read()
        assert f"{first['address']}\tmain1\n" in hosts and f"{second['address']}\tsub1\n" in hosts
        assert third["address"] not in hosts
    driver.shut(second_id)
    assert wait_for(lambda: "sub1" not in open(first["hosts"], encoding="utf-8").read())
    assert "main1" in open(first["hosts"], encoding="utf-8").read()
    assert lab.connect(inside, second["address"], 2200).startswith("refused")


@pytest.mark.gate
def test_published_ports(lab, tmp_path):
    clock = tmp_path / "clock"
    driver = lab.driver(ports="30000-30002", rest=3600 * 10**6,
                        env={"ALIQUOT_CLOCK_FILE": str(clock)})
    kernel, info, inside = driver.kernel(ports=[8080, 8888])
    _, _, stranger = driver.kernel()
    lab.listen(inside, "0.0.0.0", 8080, "app")
    port = info["ports"]["8080"]
    assert {port, info["ports"]["8888"]} == {30000, 30001}
    assert lab.connect(lab.far, "192.0.2.2", port) == "app 192.0.2.1"
    assert lab.connect(lab.node, "192.0.2.2", port).startswith("app")
    assert lab.connect(stranger, "192.0.2.2", port).startswith("refused")
    # not by the kernel's own address, and no other port
    assert lab.connect(lab.far, info["address"], 8080, seconds=2) == "no answer"
    driver.shut(kernel)
    assert lab.connect(lab.far, "192.0.2.2", port).startswith("refused")
    # the two rest for an hour: only the third is left
    _, info, _ = driver.kernel(ports=[1])
    assert info["ports"] == {"1": 30002}
    assert "no port from 30000 to 30002 is free" in driver.open(new_id(), ports=[1])["error"]
    clock.write_text("0 3601\n")
    assert "ports" in driver.open(new_id(), ports=[1])


def test_ports_of_the_node_are_left_alone(lab):
    lab.listen(lab.node, "0.0.0.0", 30000, "node")
    driver = lab.driver(ports="30000-30001")
    _, info, _ = driver.kernel(ports=[1])
    assert info["ports"] == {"1": 30001}
    assert lab.connect(lab.far, "192.0.2.2", 30000) == "node 192.0.2.1"


@pytest.mark.parametrize("forwards", [False, True])
def test_a_node_forwards_for_others_what_it_did_before(tmp_path, forwards):
    lab = Lab(tmp_path, forwards)
    try:
        lab.listen(lab.lan, "203.0.113.5", 80, "lan")
        lab.listen(lab.far, "198.51.100.7", 80, "far")

        def reached():
            seconds = 20 if forwards else 2
            return (lab.connect(lab.far, "203.0.113.5", 80, seconds).startswith("lan"),
                    lab.connect(lab.lan, "198.51.100.7", 80, seconds).startswith("far"))

        assert reached() == (forwards, forwards)
        driver = lab.driver()
        _, _, inside = driver.kernel()
        assert lab.connect(inside, "198.51.100.7", 80).startswith("far")
        assert reached() == (forwards, forwards)
    finally:
        lab.close()


@pytest.mark.gate
def test_nothing_is_left(lab):
    before = lab.state()
    driver = lab.driver()
    session = new_id()
    kernels = [driver.kernel(ports=[80], session=session, hostname=f"sub{n}")[0] for n in range(3)]
    assert lab.state()["links"] != before["links"]
    for kernel in kernels:
        assert "error" not in driver.shut(kernel)
    driver.end()
    assert lab.state() == before


def test_networks_outlive_an_agent(lab):
    before = lab.state()
    first = lab.driver()
    kernel, info, inside = first.kernel(ports=[8080])
    lost, _, _ = first.kernel()
    lab.listen(inside, "0.0.0.0", 8080, "app")
    lab.listen(lab.far, "198.51.100.7", 80, "web")
    port = info["ports"]["8080"]
    first.kill()
    assert lab.connect(lab.far, "192.0.2.2", port).startswith("app")
    second = lab.driver()
    assert second.adopt(kernel) == dict(info, did="adopt")
    second.sweep()
    assert wait_for(lambda: lab.node.run("ip", "-o", "link").count(": aq") == 1)
    assert wait_for(lambda: lost not in str(list(os.walk(lab.folder))))
    assert lab.connect(lab.far, "192.0.2.2", port).startswith("app")
    assert lab.connect(inside, "198.51.100.7", 80).startswith("web")
    # its address and port are not given out again
    _, other, _ = second.kernel(ports=[8080])
    assert other["address"] != info["address"] and other["ports"]["8080"] != port
    second.shut(other["kernel"])
    second.shut(kernel)
    second.end()
    for server in lab.servers:
        server.kill()
    assert lab.state() == before


def test_one_agent_of_an_identity(lab):
    lab.driver()
    assert "another agent of this identity runs here" in lab.driver().start["error"]


def test_two_agents_on_one_node(lab):
    before = lab.state()
    one, two = lab.driver("one"), lab.driver("two")
    _, first, inside = one.kernel(ports=[8080])
    _, second, other = two.kernel()
    assert first["address"] == "10.213.0.2" and second["address"] == "10.213.4.2"
    lab.listen(inside, "0.0.0.0", 8080, "app")
    assert lab.connect(lab.node, first["address"], 8080).startswith("app")
    assert lab.connect(other, first["address"], 8080).startswith("refused")
    assert "app" not in lab.connect(other, "192.0.2.2", first["ports"]["8080"], seconds=2)
    lab.listen(lab.far, "198.51.100.7", 80, "web")
    one.shut(first["kernel"])
    one.end()
    assert lab.connect(other, "198.51.100.7", 80).startswith("web")
    two.shut(second["kernel"])
    two.end()
    assert lab.state() == before


def test_many_at_once(lab):
    before = lab.state()
    driver = lab.driver()
    kernels = [new_id() for _ in range(200)]
    for kernel in kernels:
        driver.say("open", kernel, new_id(), "main1")
    answers = [driver.answer("open", kernel) for kernel in kernels]
    assert not [answer for answer in answers if "error" in answer]
    assert len({answer["address"] for answer in answers}) == 200
    for kernel in kernels:
        driver.say("close", kernel)
    for kernel in kernels:
        assert "error" not in driver.answer("close", kernel)
    driver.end()
    assert lab.state() == before


def test_pool_used_up(lab):
    driver = lab.driver(pool="10.9.0.0/29")
    opened = [driver.kernel()[1]["address"] for _ in range(5)]
    assert sorted(opened) == [f"10.9.0.{n}" for n in range(2, 7)]
    assert "all addresses of 10.9.0.0/29 are in use" in driver.open(new_id())["error"]


@pytest.mark.parametrize("point", POINTS)
def test_killed(lab, point):
    """kill -9 at each point: the next agent takes over what is whole, removes the rest."""
    before = lab.state()
    mark = lab.folder.parent / f"died-{os.getpid()}-{point}"
    fault = {"ALIQUOT_FAULT": point, "ALIQUOT_FAULT_ONCE": str(mark)}
    kernels, session = [new_id(), new_id()], new_id()
    try:
        driver = lab.driver(env=fault)
        opened = [driver.start and driver.open(kernel, session, f"main{n}", [8080])
                  for n, kernel in enumerate(kernels)]
        if all(opened):
            for kernel in kernels:
                driver.shut(kernel)
        driver.end_input()
        assert driver.process.wait(60) == -signal.SIGKILL and mark.exists(), "not passed"
    finally:
        mark.unlink(missing_ok=True)
    driver = lab.driver()
    lab.listen(lab.far, "198.51.100.7", 80, "web")
    for kernel in kernels:
        info = driver.adopt(kernel)
        if "error" not in info:
            assert lab.connect(Inside(lab.node, info["ns"]), "198.51.100.7", 80) == "web 192.0.2.2"
            driver.shut(kernel)
    driver.sweep()
    assert "error" not in driver.open(kernels[0])
    driver.shut(kernels[0])
    driver.end()
    assert lab.state() == before
