# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 26.9, unmodified, in Chromium: an afternoon of somebody who works with it."""

import os
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
from browser import Browser  # noqa: E402
from cluster import wait_for  # noqa: E402
from console_cluster import PROGRAMS  # noqa: E402
from images import archive, folder, programs, pushed  # noqa: E402
from runtimes import settings_of  # noqa: E402
from storage import Stored  # noqa: E402
from test_proxy import Proxied  # noqa: E402
from web import EMAIL, PASSWORD, Webbed  # noqa: E402
from webui import log_in, mistakes, text_of, tried, wait_until  # noqa: E402

# 8 GB that are 2 fGPU.
CARD = """\
allocation_mode = "fractional"
unit_mem = "4G"
unit_proc = 40
[[devices]]
mother_uuid = "GPU-513a5f0e-7721-4b6c-9d10-000000000100"
model_name = "Mock GPU"
subproc_count = 80
memory_size = "8G"
"""
# Of a session that ends the page tells a proxy that it asks for at its own default address.
EXPECTED = (r"\w+ \S*/v2/proxy/",)
DIALOG = "[role=dialog]:visible"


class Working(Stored, Proxied, Webbed):
    """Storage hosts and proxies are asked on ports of their own."""

    def start(self, image_allow):
        self.volume = self.folder / "volume1"
        self.volume.mkdir(mode=0o700)
        self.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        self.start_storage()
        mock = self.folder / "node1.toml"
        mock.write_text(CARD)
        os.chmod(mock, 0o644)
        self.start_agent("node1", ALIQUOT_ACCELERATORS_MOCK=str(mock), ALIQUOT_NETWORK_ENABLED="true",
                         ALIQUOT_FOLDERS_VOLUMES=f"local:volume1={self.volume}",
                         ALIQUOT_IMAGE_INSECURE=image_allow)
        self.port = None  # the proxy's, from here on
        self.start_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
        self.start_web("--static", webui.install("26.9.6"))

    def preload(self, names):
        """People choose among images that agents have."""
        def ask(query, **variables):
            return self.client().post("/admin/gql", {"query": query, "variables": variables}).json
        ask("mutation($names: [String]!) {preload_image(references: $names, target_agents: [\"node1\"])"
            " {ok}}", names=names)
        wait_for(lambda: len(ask("{images {name}}")["data"]["images"]) == len(names), 60, "the images")


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(tmp_path_factory):
    base = [archive([*programs(*PROGRAMS), folder("tmp", mode=0o1777)])]
    names = [f"team/{name}:1" for name in ("shell", "tools", "other")]
    with pushed(tmp_path_factory.mktemp("images"), base, *names) as (address, pulled), \
            Working(**{**settings_of("crun"), "ALIQUOT_IMAGE_KEEP_FREE": "0",
                       "ALIQUOT_RESOURCE_CPUS": "8"}) as made:
        made.start(address)
        made.preload(pulled)
        yield made
        made.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster, browser):
    return log_in(browser, cluster, EMAIL, PASSWORD, "Start Interactive Session", is_wrong_first=True)


def go(page, cluster, path, *texts):
    page.goto(f"{cluster.origin}/project/default/{path}")
    wait_until(page, *texts)


def launch(page, cluster, name, image, shares):
    go(page, cluster, "session/start", "Session Name")
    page.fill("input[type=text]:visible:below(:text('Session Name')) >> nth=0", name)
    page.click("button:has-text('Next')")
    wait_until(page, "Resource Presets", "team")
    page.click("button:has-text('team'):visible >> nth=0")
    page.click(f"[role=option]:has-text('{image}'):visible")
    wait_until(page, "Minimum requirements")
    page.fill("input[type=text]:visible:below(:text('AI Accelerator')) >> nth=0", shares)
    page.keyboard.press("Tab")
    wait_until(page, "Custom allocation")
    page.click("button:has-text('Skip to review')")
    wait_until(page, "Total Allocation")
    page.click("button:has-text('Launch'):not(:has-text('Multiple')):not(:has-text('Confirm')):visible")
    page.click(f"{DIALOG} button:has-text('Start')")
    wait_for(lambda: "/session/start" not in page.evaluate("location.pathname"), 60, "the list")
    wait_until(page, name)


def row(name):
    return f"tr:has-text('{name}')"


def wait_row(page, name, status):
    """The list is asked for again each 15 seconds; by hand sooner."""
    def has():
        tried(page.click, "[aria-label='Refresh'] >> nth=-1")
        return status in page.evaluate(
            f"[...document.querySelectorAll('tr')].filter((tr) => tr.innerText.includes('{name}'))"
            ".map((tr) => tr.innerText).join()")
    wait_for(has, 90, lambda: f"{name} to be {status}: {text_of(page)[-2000:]}")


@pytest.mark.parametrize("path, text", [
    ("dashboard", "My Total Resource Usage"), ("data", "Create Folder"),
    ("session", "Session Name"), ("session/start", "Confirm and Launch"),
    ("agent-summary", "node1")])
def test_pages(cluster, page, path, text):
    go(page, cluster, path, text)
    assert "An error has occurred" not in text_of(page) and not mistakes(page, *EXPECTED)


def test_three_sessions_on_two_shares(cluster, page):
    for name, image in (("first", "shell"), ("second", "tools"), ("third", "other")):
        launch(page, cluster, name, image, "1")
    for name, status in (("first", "RUNNING"), ("second", "RUNNING"), ("third", "PENDING")):
        wait_row(page, name, status)
    page.click(f"{row('first')} [aria-label='Terminate Session']")
    page.click(f"{DIALOG} button:has-text('Terminate')")
    wait_row(page, "third", "RUNNING")
    assert not mistakes(page, *EXPECTED)


def test_a_terminal(cluster, page):
    go(page, cluster, "session", "second")
    page.click(f"{row('second')} [aria-label='See App Dialog']")
    page.click(f"{DIALOG} [aria-label='Console']")
    tab = wait_for(lambda: page.opened() and page.opened()[-1], 60, "the terminal")
    tab.wait_for("document.querySelector('.xterm-rows')?.innerText.includes('$')")
    tab.keyboard.type("echo $((40 + 2))-here\n")
    tab.wait_for("document.querySelector('.xterm-rows').innerText.includes('42-here')")
    assert not tab.problems() and not mistakes(page, *EXPECTED)
