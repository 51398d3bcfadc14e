# SPDX-License-Identifier: Apache-2.0
"""Who names an image chooses a host and port of his own, redirects and token servers included:
what fetches images reaches nothing that a container cannot reach, but listed registries."""

import pytest

from netlab import CLIENT, Lab, wait_for
from world import ROOT


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


def test_users_see_no_answers_of_hosts():
    """What a kernel's owner is told passes image_hide_failure()."""
    text = (ROOT / "src/agent/kernel/prerequisites.c").read_text()
    body = text.split("prerequisites_on_image_failed(void")[1].split("\n}")[0]
    assert "kernel_fail(k, &shown)" in body and "kernel_fail(k, err)" not in body
