# SPDX-License-Identifier: Apache-2.0
"""A small internet of network namespaces, and net-driver on its one node.

    far (198.51.100.7, .9, 169.254.169.254)  ---  node 192.0.2.2  ---  lan 203.0.113.5
                   192.0.2.1                              203.0.113.1

The node has a mount namespace of its own, so nothing of all this is seen by,
or left on, the machine. Everything dies with the tests.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
import uuid

from world import BUILD, Space

POOL = "10.213.0.0/16"

SERVER = """
import socket, sys
family, address, port, word = sys.argv[1:]
s = socket.socket(getattr(socket, family), socket.SOCK_STREAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(socket.getaddrinfo(address, int(port), s.family, s.type)[0][4]); s.listen(64)
print("ready", flush=True)
while True:
    c, peer = s.accept()
    c.sendall(f"{word} {peer[0]}".encode()); c.close()
"""

CLIENT = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))
    print(s.recv(100).decode() or "closed")
except TimeoutError: print("no answer")
except OSError as e: print("refused", e)
"""


def new_id():
    return str(uuid.uuid4())


class Inside:
    """The network of a kernel, entered from the node's mounts."""

    def __init__(self, node, path):
        self.node, self.path = node, path

    def words(self, *words):
        return self.node.words("nsenter", f"--net={self.path}", *words)

    run = Space.run


class Lab:
    def __init__(self, folder, forwards=False):
        self.folder = folder
        self.node, self.far, self.lan = Space(mounts=True), Space(), Space()
        self.servers, self.drivers = [], []
        self.join(self.far, "uplink", "192.0.2.1/24", "eth0", "192.0.2.2/24")
        self.join(self.lan, "eth0", "203.0.113.5/24", "eth1", "203.0.113.1/24")
        for address in ("198.51.100.7", "198.51.100.9", "169.254.169.254"):
            self.far.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.far.run("ip", "route", "add", "203.0.113.0/24", "via", "192.0.2.2")
        self.far.run("ip", "route", "add", POOL, "via", "192.0.2.2")
        self.lan.run("ip", "route", "add", "default", "via", "203.0.113.1")
        self.node.run("ip", "route", "add", "default", "via", "192.0.2.1")
        self.node.run("sh", "-c",
                      f"echo {int(forwards)} > /proc/sys/net/ipv4/ip_forward;"
                      "echo nameserver 198.51.100.53 > /tmp/resolv.$$;"
                      "mount --bind /tmp/resolv.$$ /etc/resolv.conf; rm /tmp/resolv.$$")

    def join(self, other, there, their_address, here, our_address):
        self.node.run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns",
                      other.process.pid)
        self.node.run("ip", "address", "add", our_address, "dev", here)
        self.node.run("ip", "link", "set", here, "up")
        other.run("ip", "address", "add", their_address, "dev", there)
        other.run("ip", "link", "set", there, "up")

    def listen(self, space, address, port, word, family="AF_INET"):
        server = subprocess.Popen(
            space.words(sys.executable, "-c", SERVER, family, address, port, word),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.servers.append(server)
        assert server.stdout.readline() == "ready\n"
        return server

    @staticmethod
    def connect(space, address, port, seconds=20):
        return space.run(sys.executable, "-c", CLIENT, address, port, seconds).strip()

    def driver(self, identity="agent", pool=POOL, env=None, **options):
        driver = Driver(self, identity, pool, env or {}, options)
        self.drivers.append(driver)
        return driver

    def state(self):
        """What a test must leave as it found it."""
        links = [line.split(":")[1].split("@")[0].strip()
                 for line in self.node.run("ip", "-o", "link").splitlines()]
        forwarding = self.node.run("sh", "-c", "cat /proc/sys/net/ipv4/conf/*/forwarding "
                                               "/proc/sys/net/ipv4/ip_forward")
        mounts = [line for line in self.node.run("cat", "/proc/mounts").splitlines()
                  if str(self.folder) in line]  # those of other tests come and go
        folder = [str(path) for path in self.folder.rglob("*")
                  if path.name not in ("net", "lock")]
        return {"links": links, "table": self.node.run("nft", "list", "ruleset"),
                "forwarding": forwarding, "mounts": mounts, "folder": folder,
                "routes": self.node.run("ip", "-4", "route", "show", "table", "all")}

    def close(self):
        for driver in self.drivers:
            driver.kill()
        for server in self.servers:
            server.kill()
            server.wait()
        for space in (self.node, self.far, self.lan):
            space.close()


class Driver:
    """net-driver, and its answers by what was asked."""

    def __init__(self, lab, identity, pool, env, options):
        self.lab, self.node = lab, lab.node
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(
            lab.node.words(BUILD / "tests/system/net-driver", lab.folder, identity, pool, *words),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, **env))
        self.answers = queue.Queue()
        self.kept = []
        threading.Thread(target=self.read, daemon=True).start()
        self.start = self.answer("start")

    def read(self):
        for line in self.process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put(None)

    def answer(self, did, kernel=None):
        """The answer to one thing; None if the driver has ended."""
        for kept in self.kept:
            if kept["did"] == did and kept.get("kernel") == kernel:
                self.kept.remove(kept)
                return kept
        while (answer := self.answers.get(timeout=60)) is not None:
            if answer["did"] == did and answer.get("kernel") == kernel:
                return answer
            self.kept.append(answer)
        self.answers.put(None)
        return None

    def say(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def open(self, kernel, session=None, hostname="main1", ports=()):
        self.say("open", kernel, session or new_id(), hostname, *ports)
        return self.answer("open", kernel)

    def kernel(self, **options):
        """Open a new kernel's network; its id, what is known of it, its inside."""
        kernel = new_id()
        info = self.open(kernel, **options)
        assert "error" not in info, info
        return kernel, info, Inside(self.node, info["ns"])

    def adopt(self, kernel):
        self.say("adopt", kernel)
        return self.answer("adopt", kernel)

    def shut(self, kernel):
        self.say("close", kernel)
        return self.answer("close", kernel)

    def sweep(self):
        self.say("sweep")
        return self.answer("sweep")

    def deny(self, host):
        self.say("deny", host)
        return self.answer("deny")

    def admit(self, registry):
        self.say("admit", registry)
        return self.answer("admit")

    def end_input(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def end(self):
        """As an agent that is stopped in order."""
        self.say("end")
        assert self.process.wait(60) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return result
