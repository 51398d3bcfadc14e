# SPDX-License-Identifier: Apache-2.0
"""Hosts of network namespaces on one switch, whose cables a test pulls.

    10.91.0.1, 10.91.0.2 ...  each eth0  ---  the switch, in a namespace of its own

Nothing of it is on the machine, or left when the test was killed. Only root can have it.
"""

from world import Space

NETWORK = "10.91.0.0/24"


class Host:
    def __init__(self, switch, number, mounts):
        self.switch, self.number = switch, number
        self.address = f"10.91.0.{number}"
        self.space = Space(mounts=mounts)
        self.words, self.run, self.entered = self.space.words, self.space.run, self.space.entered

    def pull(self):
        """The cable is out: nothing comes or goes, and nobody is told."""
        self.switch.space.run("ip", "link", "set", f"port{self.number}", "down")

    def plug(self):
        self.switch.space.run("ip", "link", "set", f"port{self.number}", "up")


class Switch:
    def __init__(self):
        self.space, self.hosts = Space(), []
        self.space.run("ip", "link", "add", "br0", "type", "bridge")
        self.space.run("ip", "link", "set", "br0", "up")
        self.space.run("nft", "add table bridge cut; add chain bridge cut forward "
                              "{ type filter hook forward priority 0; }")

    def add(self, mounts=False):
        """With 'mounts' file systems can be mounted that the host alone has."""
        host = Host(self, len(self.hosts) + 1, mounts)
        port = f"port{host.number}"
        self.space.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
                       host.space.process.pid)
        self.space.run("ip", "link", "set", port, "master", "br0", "up")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        self.hosts.append(host)
        return host

    def cut(self, one, *others):
        """Nothing goes between one and the others, in either direction; all else does."""
        for other in others:
            for here, there in (one, other), (other, one):
                self.space.run("nft", f"add rule bridge cut forward ip saddr {here.address} "
                                      f"ip daddr {there.address} drop")

    def mend(self):
        """Everything goes again."""
        self.space.run("nft", "flush chain bridge cut forward")

    def close(self):
        for host in self.hosts:
            host.space.close()
        self.space.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
