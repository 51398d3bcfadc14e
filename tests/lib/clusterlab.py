# SPDX-License-Identifier: Apache-2.0
"""Nodes in network namespaces that reach each other, each with a net-driver that has a cluster
network; no manager: tests write the lists of kernels and agents that it would send.

    a1 192.0.2.1 --- a2 192.0.2.2      (a bridge in a namespace of its own)
"""

import json
import os
import pathlib
import subprocess

from netlab import POOL, Driver, Inside, Lab, new_id
from world import Space

PORT = 51871


class Switch:
    """A namespace with a bridge to which nodes are joined."""

    def __init__(self):
        self.space = Space()
        self.space.run("ip", "link", "add", "br0", "type", "bridge")
        self.space.run("ip", "link", "set", "br0", "up")

    def join(self, node, number):
        self.space.run("ip", "link", "add", f"port{number}", "type", "veth", "peer", "name",
                       "uplink", "netns", node.process.pid)
        self.space.run("ip", "link", "set", f"port{number}", "master", "br0", "up")
        node.run("ip", "address", "add", f"192.0.2.{number}/24", "dev", "uplink")
        node.run("ip", "link", "set", "uplink", "up")
        node.run("ip", "route", "add", "default", "via", "192.0.2.254")


class ClusterNode(Lab):
    def __init__(self, folder, switch, number, mode):
        # pylint: disable=super-init-not-called
        self.folder, self.number, self.mode = folder, number, mode
        self.name, self.address = f"a{number}", f"192.0.2.{number}"
        self.own = f"10.214.0.{number}"  # in the network between nodes
        self.node = Space(mounts=True)
        self.node.run("sh", "-c", "mkdir -p /run/wireguard && mount -t tmpfs none /run/wireguard")
        self.servers, self.drivers = [], []
        (folder / "state").mkdir(parents=True)
        switch.join(self.node, number)
        self.offer = None

    def driver(self, identity=None, pool=POOL, env=None, **options):
        options["cluster"] = (f"{self.mode},{self.name},{self.address},{PORT},"
                              f"{self.folder / 'state'}")
        driver = Driver(self, identity or f"agent {self.folder}", pool, env or {}, options)
        self.drivers.append(driver)
        if driver.start and "error" not in driver.start:
            self.offer = (driver.answer("cluster") or {}).get("offer")
            assert not self.offer or self.offer["mode"] == self.mode, self.offer
        return driver

    def agent(self):
        """As the manager tells others of it."""
        told = {"id": self.name, "endpoint": self.offer["endpoint"], "address": self.own}
        if "key" in self.offer:
            told["key"] = self.offer["key"]
        return told

    def tunnels(self):
        """What is left on the machine of this node's tunnel."""
        tag = next((path.name for path in (self.folder / "net").glob("??????")), "none")
        daemons = subprocess.run(["pgrep", "-f", f"wireguard-go -f aqw{tag}"], text=True,
                                 capture_output=True, check=False).stdout.split()
        return daemons, tag

    def close(self):
        for driver in self.drivers:
            driver.kill()
        for server in self.servers:
            server.kill()
            server.wait()
        for pid in self.tunnels()[0]:
            os.kill(int(pid), 9)
        self.node.close()


class ClusterLab:
    def __init__(self, folder, mode, count=2):
        self.switch = Switch()
        self.nodes = [ClusterNode(pathlib.Path(folder) / f"a{n}", self.switch, n, mode)
                      for n in range(1, count + 1)]

    def agents(self):
        return [node.agent() for node in self.nodes]

    def session(self, number, places):
        """The list of a session whose kernels are at these nodes: main1, sub1 and so on."""
        base = f"10.214.{number}"
        return {"subnet": f"{base}.0/28",
                "kernels": [{"hostname": f"sub{i}" if i else "main1", "address": f"{base}.{i + 1}",
                             "agent": node.name} for i, node in enumerate(places)],
                "agents": [node.agent() for node in self.nodes]}

    def peers(self, node):
        return {"address": node.own,
                "agents": [other.agent() for other in self.nodes if other is not node]}

    def close(self):
        for node in self.nodes:
            node.close()
        self.switch.space.close()


class Joined:
    """A kernel that is joined to its session's network."""

    def __init__(self, node, driver, session, network, index, kernel=None):
        self.node, self.driver, self.session = node, driver, session
        self.kernel = kernel or new_id()
        self.hostname = network["kernels"][index]["hostname"]
        self.address = network["kernels"][index]["address"]
        self.network = network
        self.info = driver.open(self.kernel, session, self.hostname)
        assert "error" not in self.info, self.info
        self.inside = Inside(node.node, self.info["ns"])

    def say_join(self, verb="join", driver=None):
        (driver or self.driver).say(verb, self.kernel, self.session, self.hostname,
                                    json.dumps(self.network))

    def joined(self, driver=None):
        return (driver or self.driver).answer("join", self.kernel)

    def hosts(self):
        return pathlib.Path(self.info["hosts"]).read_text(encoding="utf-8")
