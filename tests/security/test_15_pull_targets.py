# SPDX-License-Identifier: Apache-2.0
"""Who names an image chooses a host and port of his own, redirects and token servers included:
what fetches images reaches nothing that a container cannot reach, but listed registries."""

import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

import containers
from cluster import ENDED, Cluster, batch, wait_status
from images import Layout, Registry, archive, programs
from netlab import CLIENT, Lab, wait_for


@pytest.fixture(name="lab")
def lab_fixture(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.close()


def fetch(lab, group, address, port):
    """Connect from the node itself, as skopeo does it."""
    return lab.node.run("setpriv", f"--regid={group}", "--keep-groups", "python3", "-c", CLIENT,
                        address, port, 20).strip()


# where somebody listens, at which address
FORBIDDEN = {
    "loopback": ("node", "127.0.0.1"),
    "all of loopback": ("node", "127.9.9.9"),
    "the node by its address": ("node", "192.0.2.2"),
    "the node by its other address": ("node", "203.0.113.1"),
    "a container": ("node", "10.213.0.1"),
    "metadata service": ("far", "169.254.169.254"),
    "denied by the administrator": ("lan", "203.0.113.5"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_pulls_do_not_reach(lab, name):
    where, address = FORBIDDEN[name]
    lab.node.run("ip", "link", "set", "lo", "up")
    lab.node.run("ip", "route", "add", "169.254.0.0/16", "via", "192.0.2.1")
    driver = lab.driver(deny="203.0.113.0/24")
    driver.kernel()
    group = driver.start["pull_group"]
    lab.listen({"node": lab.node, "far": lab.far, "lan": lab.lan}[where], address, 5000, "reached")
    assert lab.connect(lab.node, address, 5000).startswith("reached")
    assert fetch(lab, group, address, 5000).startswith("refused")


def test_pulls_reach_registries(lab):
    """Those outside, and of the denied ones those that the settings name: host and port."""
    lab.node.run("ip", "link", "set", "lo", "up")
    driver = lab.driver(allow="192.0.2.2:5003")
    group = driver.start["pull_group"]
    lab.listen(lab.far, "198.51.100.7", 443, "outside")
    for port in (5000, 5001):
        lab.listen(lab.node, "127.0.0.1", port, "reached")
    lab.listen(lab.node, "192.0.2.2", 5003, "allowed")
    driver.admit("127.0.0.1:5000")
    wait_for(lambda: "127.0.0.1 . 5000" in lab.node.run("nft", "list", "ruleset"))
    assert fetch(lab, group, "198.51.100.7", 443).startswith("outside")
    assert fetch(lab, group, "127.0.0.1", 5000).startswith("reached")
    assert fetch(lab, group, "127.0.0.1", 5001).startswith("refused")
    assert fetch(lab, group, "192.0.2.2", 5003).startswith("allowed")


def test_each_agent_has_a_group(lab):
    """So that one does not decide for the pulls of another on its machine."""
    groups = {lab.driver(identity=name).start["pull_group"] for name in ("one", "two")}
    assert len(groups) == 2 and all(0x60000000 <= group < 0x61000000 for group in groups)


# ---- an agent that fetches, in a network namespace of its own ----

class Listener:
    """Counts connections, and says what no registry says."""

    def __init__(self, address):
        self.socket = socket.create_server(address)
        self.count = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.socket.accept()
            self.count += 1
            connection.sendall(b"SSH-2.0-secret\r\n")
            connection.close()


class Redirector(http.server.BaseHTTPRequestHandler):
    """A registry that sends everybody elsewhere: by redirect, or for a token."""

    target = ""

    def do_GET(self):
        if self.path == "/v2/":
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Bearer realm="{self.target}/token",service="x"')
        else:
            self.send_response(307)
            self.send_header("Location", self.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def run_image(cluster, registry):
    """An image of a listed registry is fetched as ever."""
    layout = Layout(cluster.folder / "layout")
    layout.image("ok", [archive(programs("sh", "echo"))])
    image = layout.push("ok", registry, "a:1")
    _, shown = why(cluster, "ok", image)
    assert shown["result"] == "SUCCESS", (shown, cluster.log_of("agent"))


def why(cluster, name, image):
    """What the user of a session is told of its image."""
    client = cluster.client()
    reply = client.post("/session", {**batch(name, "true"), "image": image})
    assert reply.status == 201, reply
    shown = wait_status(client, reply.json["sessionId"], *ENDED)
    return json.dumps(shown).replace(image, "IMAGE").replace(name, "NAME"), shown


def tell():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    listed, other = Listener(("127.0.0.1", 5000)), Listener(("127.0.0.1", 5001))
    Redirector.target = "http://127.0.0.1:5001"
    redirector = http.server.ThreadingHTTPServer(("127.0.0.1", 5003), Redirector)
    threading.Thread(target=redirector.serve_forever, daemon=True).start()
    registry = Registry(tempfile.mkdtemp() + "/registry")
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_RUNTIME_DRIVER="container",
                 ALIQUOT_RUNTIME_OCI="crun", ALIQUOT_NETWORK_ENABLED="true",
                 ALIQUOT_IMAGE_INSECURE="127.0.0.1:5000 127.0.0.1:5003 " + registry.address,
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        told = []
        for number, image in enumerate(("127.0.0.1:5000/a:1", "127.0.0.1:5001/a:1",
                                        "127.0.0.1:5002/a:1")):
            text, shown = why(cluster, f"s-{number}", image)
            assert "could not be fetched from its registry" in text, text
            assert "secret" not in text and "SSH" not in text, text
            told.append(re.search(r"could not be fetched[^\"]*", text).group())
        _, _ = why(cluster, "redirected", "127.0.0.1:5003/a:1")
        assert listed.count > 0 and other.count == 0, (listed.count, other.count)
        assert "refused" not in told[0], told  # it was asked, and what it said is not told
        assert told[1] == told[2] != told[0], told
        assert "5001" in cluster.log_of("agent")  # administrators see more
        registry.start()
        run_image(cluster, registry)
        cluster.stop()
    registry.stop()
    shutil.rmtree(registry.path.parent)


def test_pulls_of_an_agent():
    """A listed registry is asked, another port of loopback is not, and users cannot tell that port
    from one where nobody listens."""
    if reason := containers.why_not("crun"):
        pytest.skip(reason)
    done = subprocess.run(["unshare", "-n", sys.executable, "-B", __file__], text=True,
                          capture_output=True, timeout=300, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    tell()
