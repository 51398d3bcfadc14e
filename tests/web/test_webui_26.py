# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI 26.9, unmodified, in Chromium: an afternoon of somebody who works with it."""

import os
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
from browser import Browser, BrowserError  # noqa: E402
from cluster import wait_for  # noqa: E402
from console_cluster import PROGRAMS  # noqa: E402
from images import Layout, Registry, archive, folder, programs  # noqa: E402
from runtimes import settings_of  # noqa: E402
from storage import Stored  # noqa: E402
from test_proxy import Proxied  # noqa: E402
from web import EMAIL, PASSWORD, Webbed  # noqa: E402

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
# What it asks, and what it is answered.
HOOK = """window.asked = []; const real = window.fetch; window.fetch = async (...words) => {
    const reply = await real(...words); const copy = reply.clone();
    copy.text().then(text => { if (!reply.ok || text.includes('"errors"'))
        window.asked.push([reply.status, reply.url, text.slice(0, 500)]); }).catch(() => {});
    return reply; };
document.addEventListener('securitypolicyviolation', it =>
    it.blockedURI === 'eval' // the test's own questions
        || window.asked.push(['policy', it.blockedURI, it.violatedDirective]));"""
# Nobody has typed yet; there is no second factor; what happens to sessions is not pushed; and of
# one that ends the page tells a proxy that it asks for at its own default address.
EXPECTED = (("400", "/server/login", ""), ("404", "/func/totp", ""), ("", "/v2/proxy/", ""),
            ("200", "/func/admin/gql", "to execute subscription operation"))
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
    place = tmp_path_factory.mktemp("images")
    registry = Registry(place / "registry").start()
    layout = Layout(place / "layout")
    base = archive([*programs(*PROGRAMS), folder("tmp", mode=0o1777)])
    names = []
    for name in ("shell", "tools", "other"):
        layout.image(name, [base, archive([folder(f"tmp/{name}")])])
        names.append(layout.push(name, registry, f"team/{name}:1"))
    with Working(**{**settings_of("crun"), "ALIQUOT_IMAGE_KEEP_FREE": "0",
                    "ALIQUOT_RESOURCE_CPUS": "8"}) as made:
        made.start(registry.address)
        made.preload(names)
        yield made
        made.stop()
    registry.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


def text_of(page):
    try:
        return page.evaluate("document.body.innerText")
    except BrowserError:  # it goes to another page
        return ""


def wait_until(page, *texts):
    return wait_for(lambda: all(text in text_of(page) for text in texts), 90,
                    lambda: f"{texts} in {text_of(page)[-2000:]}")


def tried(function, *words):
    try:
        function(*words, {"timeout": 2000})
        return True
    except BrowserError:
        return False


PATIENCE = {"timeout": 90000}


def click(page, selector):
    page.click(selector, PATIENCE)


def fill(page, selector, text):
    page.fill(selector, text, PATIENCE)


def mistakes(page):
    return [row for row in page.evaluate("window.asked")
            if not any(status in str(row[0]) and path in row[1] and text in row[2]
                       for status, path, text in EXPECTED)]


def logged_in(browser, cluster, email, password, name):
    page = browser.page(viewport={"width": 1280, "height": 900})
    page.addInitScript(HOOK)
    page.goto(cluster.origin)
    for given in ("wrong", password):
        fill(page, "input[type=text]:visible >> nth=0", email)
        fill(page, "input[type=password]:visible >> nth=0", given)
        page.keyboard.press("Enter")
        wait_until(page, "mismatch" if given == "wrong" else name)
    wait_until(page, "Start Interactive Session")
    return page


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster, browser):
    return logged_in(browser, cluster, EMAIL, PASSWORD, "Admin Lablup")


def go(page, cluster, path, *texts):
    page.goto(f"{cluster.origin}/project/default/{path}")
    wait_until(page, *texts)


def launch(page, cluster, name, image, shares):
    go(page, cluster, "session/start", "Session Name")
    fill(page, "input[type=text]:visible:below(:text('Session Name')) >> nth=0", name)
    click(page, "button:has-text('Next')")
    wait_until(page, "Resource Presets", "team")
    click(page, "button:has-text('team'):visible >> nth=0")
    click(page, f"[role=option]:has-text('{image}'):visible")
    wait_until(page, "Minimum requirements")
    fill(page, "input[type=text]:visible:below(:text('AI Accelerator')) >> nth=0", shares)
    page.keyboard.press("Tab")
    wait_until(page, "Custom allocation")
    click(page, "button:has-text('Skip to review')")
    wait_until(page, "Total Allocation")
    click(page, "button:has-text('Launch'):not(:has-text('Multiple')):not(:has-text('Confirm')):visible")
    click(page, f"{DIALOG} button:has-text('Start')")
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
    assert "An error has occurred" not in text_of(page) and not mistakes(page)


def test_three_sessions_on_two_shares(cluster, page):
    for name, image in (("first", "shell"), ("second", "tools"), ("third", "other")):
        launch(page, cluster, name, image, "1")
    for name, status in (("first", "RUNNING"), ("second", "RUNNING"), ("third", "PENDING")):
        wait_row(page, name, status)
    click(page, f"{row('first')} [aria-label='Terminate Session']")
    click(page, f"{DIALOG} button:has-text('Terminate')")
    wait_row(page, "third", "RUNNING")
    assert not mistakes(page)


def test_a_terminal(cluster, page):
    go(page, cluster, "session", "second")
    click(page, f"{row('second')} [aria-label='See App Dialog']")
    click(page, f"{DIALOG} [aria-label='Console']")
    tab = wait_for(lambda: page.opened() and page.opened()[-1], 60, "the terminal")
    tab.wait_for("document.querySelector('.xterm-rows')?.innerText.includes('$')")
    tab.keyboard.type("echo $((40 + 2))-here\n")
    tab.wait_for("document.querySelector('.xterm-rows').innerText.includes('42-here')")
    assert not tab.problems() and not mistakes(page)
