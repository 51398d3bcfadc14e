# SPDX-License-Identifier: Apache-2.0
"""A manager and agents on hosts of their own: network namespaces on one Ethernet.

    manager 198.51.100.1   node0 198.51.100.10   node1 198.51.100.11   ...
          eth0                    eth0                  eth0
           |                       |                     |
        port-m                  port-0                port-1           a bridge in the hub

Between two hosts frames can be lost, delayed, cut off and recorded. A host is
named by its agent's number, or MANAGER. The nodes have mounts of their own,
too, so nothing of all this is seen by the machine or outlives the tests. The
thread that enters a Hosts is on the manager's host meanwhile.
"""

import contextlib
import ctypes
import fcntl
import json
import pathlib
import socket
import struct
import subprocess
import sys
import threading

from client import Client
from cluster import Cluster, wait_for
from world import BUILD, Space

MANAGER = "m"
ETH_P_ALL = 3
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
FRAME_MAX = 1 << 16


class Host(Space):
    """A namespace with one Ethernet device."""

    def __init__(self, hub, number, mtu):
        super().__init__(mounts=number != MANAGER)
        last = 1 if number == MANAGER else 10 + number
        self.address, self.mac = f"198.51.100.{last}", f"02:00:00:00:00:{last:02x}"
        self.hub, self.port, self.relay = hub, f"port-{number}", None
        hub.run("ip", "link", "add", self.port, "mtu", mtu, "type", "veth", "peer", "name", "eth0",
                "mtu", mtu, "address", self.mac, "netns", self.process.pid)
        hub.run("ip", "link", "set", self.port, "master", "wire", "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        if number != MANAGER:
            self.run("ip", "route", "add", "default", "via", "198.51.100.1")  # leads nowhere
            self.run("sh", "-c", "mkdir -p /run/wireguard; mount -t tmpfs none /run/wireguard")

    def send_whole_frames(self):
        """Of the wire's size and with checksums, for who reads them outside of the kernel."""
        value = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_STXCSUM, 0))
        with self.entered(), socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SIOCETHTOOL,
                        struct.pack("16sP16x", b"eth0", ctypes.addressof(value)))

    def delay(self, other, milliseconds):
        """Frames to and from another host; the first time all frames begin to pass slow_link.py."""
        if not self.relay:
            self.send_whole_frames()
            tap = self.port.replace("port", "slow")
            self.relay = subprocess.Popen(
                self.hub.words(sys.executable, "-u", pathlib.Path(__file__).with_name("slow_link.py"),
                               self.port, tap),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self.relay.stdout.readline() == "ready\n"
            self.hub.run("ip", "link", "set", self.port, "nomaster")
            self.hub.run("ip", "link", "set", tap, "master", "wire", "up")
        print(other.mac, milliseconds, file=self.relay.stdin, flush=True)

    def close(self):
        if self.relay:
            self.relay.kill()
            self.relay.wait()
        super().close()


def four(hosts, **resources):
    """Of the request of a session with four kernels on all nodes together."""
    return {"clusterSize": 4, "clusterMode": "multi-node" if len(hosts.hosts) > 2 else "single-node",
            "config": {"resources": {"cpu": "1", "mem": "1g", **resources}}}


class Capture:
    """The frames between two hosts until it is stopped."""

    def __init__(self, host, other):
        self.frames = []
        self.macs = {bytes.fromhex(end.mac.replace(":", "")) for end in (host, other)}
        with host.hub.entered():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.socket.bind((host.port, 0))
        self.socket.settimeout(0.1)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while True:
            try:
                frame = self.socket.recv(FRAME_MAX)
            except TimeoutError:
                if self.is_over.is_set():
                    return
                continue
            if {frame[:6], frame[6:12]} == self.macs:
                self.frames.append(frame)

    def stop(self):
        """All bytes that were seen; 'frames' has them one by one."""
        self.is_over.set()
        self.thread.join()
        self.socket.close()
        return b"".join(self.frames)


class Hosts(Cluster):
    """'settings' as of a Cluster. Agents are node0, node1 and so on."""

    def __init__(self, count=2, mtu=1500, **settings):
        super().__init__(**{"ALIQUOT_MANAGER_INSECURE": "true",
                            "ALIQUOT_NETWORK_CLUSTER_PORT": "51871", **settings})  # HTTP on the wire
        self.address, self.link = ("198.51.100.1", 8081), "198.51.100.1:8082"
        self.hub = Space()
        self.hub.run("ip", "link", "add", "wire", "type", "bridge")
        self.hub.run("ip", "link", "set", "wire", "up")
        self.hosts = {number: Host(self.hub, number, mtu) for number in (MANAGER, *range(count))}
        self.losses, self.blocked = {}, set()  # (host, other): percent; ports of UDP
        self.entered, self.admin = contextlib.ExitStack(), None
        self.login = None  # the administrator in a browser: e-mail and password

    def __enter__(self):
        self.entered.enter_context(self.hosts[MANAGER].entered())
        return self

    def end(self):
        self.entered.close()
        super().end()
        for host in self.hosts.values():
            host.close()
        self.hub.close()

    # ---- programs ----

    def begin(self, **settings):
        """Manager and agents. The keys of --dev are for loopback: there is an administrator."""
        done = self.run("aliquot-manager", "--state", self.folder / "manager", "--json", "init")
        assert done.returncode == 0, done.stderr
        keys = json.loads(done.stdout)
        self.admin, self.login = ((keys["access_key"], keys["secret_key"]),
                                  (keys["email"], keys["password"]))
        self.start_manager(dev=False)
        for number in range(len(self.hosts) - 1):
            self.start_agent(f"node{number}", wait=False, **settings)
        for number in range(len(self.hosts) - 1):
            wait_for(lambda: self.agent(f"node{number}").get("connected"), 60, f"node{number}")

    def client(self, keypair=None, **more):
        return Client(self.address, keypair or self.admin, **more)

    def cli_env(self, keypair=None):
        return super().cli_env(keypair or self.admin)

    def host_of(self, name):
        return self.hosts[int(name.removeprefix("node"))]

    def start_program(self, name, *command, **settings):
        if name.startswith("node"):
            host = self.host_of(name)
            command = host.words(*command)
            settings = {"ALIQUOT_RUNTIME_FOLDER": str(self.folder / f"run-{name}"),
                        "ALIQUOT_NODE_ADDRESS": host.address, **settings}
        return super().start_program(name, *command, **settings)

    # ---- the wire ----

    def set_loss(self, host, other, percent):
        """Of the frames each way; 100 is a cut. ARP passes, so that healing is at once."""
        self.losses[self.hosts[host].mac, self.hosts[other].mac] = percent
        self.losses[self.hosts[other].mac, self.hosts[host].mac] = percent
        self.write_table()

    def cut(self, host, other):
        self.set_loss(host, other, 100)

    def heal(self, host, other):
        self.set_loss(host, other, 0)

    def block_udp(self, port, is_blocked=True):
        """A firewall between all hosts drops datagrams to this port."""
        (self.blocked.add if is_blocked else self.blocked.discard)(port)
        self.write_table()

    def set_delay(self, host, other, milliseconds):
        """Of each frame, either way."""
        self.hosts[host].delay(self.hosts[other], milliseconds)

    def capture(self, host, other):
        return Capture(self.hosts[host], self.hosts[other])

    def write_table(self):
        """All rules at once: frames meet either the old ones or the new ones."""
        rules = [f"ether saddr {source} ether daddr {target} ether type != arp "
                 f"numgen random mod 10000 <= {round(percent * 100) - 1} drop"
                 for (source, target), percent in self.losses.items() if percent]
        rules += [f"ip protocol udp udp dport {port} drop" for port in sorted(self.blocked)]
        chain = "type filter hook forward priority 0;\n" + "\n".join(rules)
        self.hub.run("nft", "table bridge hub; delete table bridge hub; "
                            f"table bridge hub {{ chain forward {{ {chain}\n }}\n }}")

    # ---- ending ----

    def check_all_gone(self):
        """The sessions have ended: ends the programs, too; no node keeps anything of them."""
        self.check_nothing_left()
        for number in range(len(self.hosts) - 1):
            wait_for(lambda: " aq" not in self.hosts[number].run("ip", "-o", "link"), 30,
                     lambda: self.hosts[number].run("ip", "-br", "link"))
        self.check_audits()
        self.stop()
        for number in range(len(self.hosts) - 1):
            tables = self.hosts[number].run("nft", "list", "tables")
            assert "aliquot" not in tables, tables
            mounts = self.hosts[number].run("cat", "/proc/mounts")
            assert str(self.folder) not in mounts, mounts
