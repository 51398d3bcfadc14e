# SPDX-License-Identifier: Apache-2.0
"""A public address of the manager's own machine is not reached by what a client names, however the
address is written: as IPv6, as a number, by a name or by a redirect of a registry."""

import http.server
import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

from client import ADMIN, USER
from cluster import WAITS, Cluster, batch, wait_for
from receivers import ADDRESS as LISTED, Listener
from world import Space

OWN, OWN_SIX, FAR, REGISTRY = "8.8.4.4", "2a00:1::44", "8.8.8.8", "192.0.1.1"
LITERALS = [OWN, f"[{OWN_SIX}]", f"[::ffff:{OWN}]", "[::ffff:808:404]", f"[::{OWN}]",
            f"[::ffff:0:{OWN}]", f"[64:ff9b::{OWN}]", f"[64:ff9b:1::{OWN}]", "[2002:808:404::1]",
            "[2001:0:102:304:0:1:f7f7:fbfb]", f"[2a00:2::5efe:{OWN}]", "0.0.0.0", "[::]"]
# getaddrinfo() reads these as addresses, or finds them in /etc/hosts
NAMES = ["0x8.0x8.0x4.0x4", "010.010.4.4", "134743044", "8.8.1028", "0x08080404", "own.test",
         "mapped.test", "own.test."]
HOSTS = f"127.0.0.1 localhost\n{OWN} own.test own.test.\n::ffff:{OWN} mapped.test\n{FAR} far.test\n"
CHANNELS = "/notifications/channels"


def run(*words):
    subprocess.run(list(map(str, words)), check=True)


def build_network(folder):
    """Our namespaces get addresses of the internet and a neighbour; returns that neighbour."""
    far = Space()
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", OWN + "/32", "dev", "lo")
    run("ip", "address", "add", OWN_SIX + "/128", "dev", "lo", "nodad")
    run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
        far.process.pid)
    run("ip", "address", "add", "192.0.1.2/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    for address in (REGISTRY + "/24", FAR + "/32"):
        far.run("ip", "address", "add", address, "dev", "eth0")
    far.run("ip", "link", "set", "eth0", "up")
    run("ip", "route", "add", "default", "via", REGISTRY)
    for name, text in (("hosts", HOSTS), ("resolv.conf", "nameserver 127.0.0.1\n")):
        (pathlib.Path(folder) / name).write_text(text)
        run("mount", "--bind", pathlib.Path(folder) / name, "/etc/" + name)
    return far


class Redirector(http.server.BaseHTTPRequestHandler):
    """A registry that has everything elsewhere."""

    def do_GET(self):
        self.send_response(307)
        self.send_header("Location", self.server.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def make(client, name, url):
    return client.post("/session", batch(name, "true", callback_url=url, **WAITS))


def check_literals(cluster, port):
    """They are refused when they are named: callbacks, webhooks and mail servers."""
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    for host in LITERALS:
        url = f"http://{host}:{port}/"
        reply = make(user, "refused", url)
        assert (reply.status, reply.slug) == (400, "invalid-api-params"), (host, reply)
        assert list(reply.json["data"]) == ["callback_url"]
        reply = admin.post(CHANNELS, {"name": "n", "channel_type": "webhook", "spec": {"url": url}})
        assert reply.status == 400 and list(reply.json["data"]) == ["spec.url"], (host, reply)
        reply = admin.post(CHANNELS, mail(host.strip("[]"), port))
        assert reply.status == 400 and list(reply.json["data"]) == ["spec.smtp.host"], (host, reply)


def mail(host, port):
    return {"name": "n", "channel_type": "email", "spec": {
        "smtp": {"host": host, "port": port, "timeout": 5}, "auth": None,
        "message": {"from_email": "a@example.org", "to_emails": ["b@example.org"]}}}


def check_names(cluster, own, far, listed):
    """They are refused when they are connected to. Messages of a user are sent one after another:
    when a later one has come, those before it were tried."""
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    for number, host in enumerate(NAMES):
        assert make(user, f"by-name-{number}", own.url(host)).status == 201, host
        assert make(user, f"after-{number}", listed.url()).status == 201
        wait_for(lambda: len(listed.told) == number + 1, 60, "the message after " + host)
        for channel in ({"name": "n", "channel_type": "webhook", "spec": {"url": own.url(host)}},
                        mail(host, own.server_port)):
            made = admin.post(CHANNELS, channel)
            assert made.status == 201, made
            path = f"{CHANNELS}/{made.json['channel']['id']}"
            assert admin.post(path + "/validate", {"test_message": "x"}).status == 502
            assert admin.delete(path).status == 200
    assert make(user, "far", far.url("far.test")).status == 201
    wait_for(lambda: far.told, 60, "the message to another machine")


def check_rebinding(cluster, far, listed, hosts):
    """A name that led to another machine when its session was made now leads to the manager's."""
    user, told, heard = cluster.client(USER), len(far.told), len(listed.told)
    with socket.create_server(("::", far.server_port), family=socket.AF_INET6,
                              dualstack_ipv6=True) as own:
        own.setblocking(False)
        made = make(user, "rebound", far.url("far.test"))
        wait_for(lambda: len(far.told) == told + 1, 60, "the first message")
        hosts.write_text(HOSTS.replace(FAR, OWN))
        assert user.delete("/session/" + made.json["sessionId"]).status == 200
        make(user, "after-rebound", listed.url())
        wait_for(lambda: len(listed.told) > heard, 60, "the message after the second one")
        assert len(far.told) == told + 1
        with pytest.raises(BlockingIOError):
            own.accept()


def check_redirects(cluster, registry, own, far):
    """A registry sends the manager to another machine, but not to the manager's."""
    at = f"{REGISTRY}:{registry.server_port}"
    assert cluster.client().post("/config/set", {
        "key": f"config/docker/registry/{at}", "value": {"": f"http://{at}"}}).status == 200
    for host in (OWN, f"[{OWN_SIX}]", f"[::ffff:{OWN}]", f"[64:ff9b::{OWN}]", "own.test",
                 "127.0.0.1"):
        registry.target = f"http://{host}:{own.server_port}"
        assert cluster.cli("admin", "registry", "rescan", at).returncode != 0
    before = far.connections
    registry.target = f"http://{FAR}:{far.server_port}"
    cluster.cli("admin", "registry", "rescan", at)
    assert far.connections > before


class Six(Listener):
    address_family = socket.AF_INET6


def tell(folder):
    space = build_network(folder)
    with space.entered():
        far = Listener(FAR)
        registry = http.server.ThreadingHTTPServer((REGISTRY, 0), Redirector)
    threading.Thread(target=registry.serve_forever, daemon=True).start()
    with Cluster(ALIQUOT_API_CALLBACK_NETWORKS=LISTED + "/32") as cluster, Six("::") as own, \
            Listener(LISTED) as listed:
        cluster.start_manager()
        socket.create_connection((OWN, own.server_port)).close()  # it listens at all addresses
        wait_for(lambda: own.connections == 1)
        check_literals(cluster, own.server_port)
        check_names(cluster, own, far, listed)
        check_rebinding(cluster, far, listed, pathlib.Path(folder) / "hosts")
        check_redirects(cluster, registry, own, far)
        assert own.connections == 1
        cluster.stop()
    far.close()
    registry.shutdown()
    space.close()


def test_own_addresses_are_not_reached(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a network of its own needs root")
    done = subprocess.run(["unshare", "-n", "-m", sys.executable, "-B", __file__, tmp_path],
                          text=True, capture_output=True, timeout=300, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    tell(sys.argv[1])
