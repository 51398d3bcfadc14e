# SPDX-License-Identifier: Apache-2.0
"""The console in Chromium: an afternoon of work, what goes wrong meanwhile, and how it looks."""

import gzip
import json
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from browser import Browser  # noqa: E402
from client import ADMIN, USER  # noqa: E402
from cluster import batch, interactive, wait_for, wait_status  # noqa: E402
from console_cluster import ConsoleCluster  # noqa: E402
from python_image import pip_layer, python_layer  # noqa: E402
from test_notebook import LAB, PATH  # noqa: E402
from web import EMAIL, PASSWORD, USER_EMAIL, USER_PASSWORD  # noqa: E402
from world import ROOT  # noqa: E402

KEPT = ROOT / "check-results" / "console"
SIZES = {"wide": {"width": 1280, "height": 800}, "narrow": {"width": 390, "height": 844}}
SHARES = "[id='amount-cuda.shares']"
STATES = "[...document.querySelectorAll('.rows .state')].map((state) => state.textContent).join()"
# It turns text around, names the window, writes elsewhere and is HTML.
HOSTILE = "\u202eevil \x1b]0;owned\x07\x1b[2J<b>fat</b>"


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with ConsoleCluster() as cluster:
        cluster.start()
        cluster.alias("shell", "shell")
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(autouse=True)
def no_sessions_left(cluster):
    yield
    for session in cluster.live_sessions():
        cluster.client().delete("/aliquot/v1/sessions", {"sessions": [session["id"]], "forced": True})
    wait_for(lambda: not cluster.live_sessions(), 60, "the sessions to end")


def text(page, selector="body"):
    return page.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")


def wait_text(page, words, selector="body"):
    page.wait_for(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(words)})")


def logged_in(browser, cluster, email=USER_EMAIL, password=USER_PASSWORD, size="wide", **options):
    page = browser.page(viewport=SIZES[size], **options)
    page.goto(cluster.origin + "/")
    page.wait_for("document.querySelector('[name=username]') !== null")
    page.fill("[name=username]", email)
    page.fill("[name=password]", password)
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('.map tbody tr') !== null")
    return page


def launch(page, **fields):
    """By the form, as somebody fills it in."""
    page.keyboard.press("n")
    page.wait_for("document.querySelector('.launch .chips button') !== null")
    page.fill("#image", "shell")
    for selector, value in fields.pop("more", {}).items():
        page.fill(selector, value)
    for name, value in fields.items():
        page.fill(f"#{name}", value)


def made(cluster, keypair, name, image="shell", **more):
    body = (batch if "startupCommand" in more else lambda name, _, **rest: interactive(name, **rest))(
        name, more.pop("startupCommand", None), **more)
    reply = cluster.client(keypair).post("/session", {
        **body, "image": cluster.layout.reference(image), "enqueueOnly": True})
    assert reply.status == 201, reply
    return reply.json["sessionId"]


@pytest.mark.gate
def test_an_afternoon(browser, cluster):
    """Three sessions of a whole fGPU on a card of two."""
    page = browser.page(viewport=SIZES["wide"])
    page.goto(cluster.origin + "/")
    page.wait_for("document.querySelector('[name=username]') !== null")
    page.fill("[name=username]", USER_EMAIL)
    page.fill("[name=password]", "wrong")
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('[role=alert]').textContent !== ''")
    page.fill("[name=password]", USER_PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for("document.querySelector('.map tbody tr') !== null")
    wait_text(page, "ready", ".map")

    launch(page, name="train", count="3", more={SHARES: "1", "#amount-mem": "256m"})
    wait_text(page, "starts at once", ".answer")
    page.click(".launch button.main")
    page.wait_for(f"{STATES} === 'waiting,running,running'")
    page.keyboard.press("1")
    page.wait_for("document.querySelectorAll('.map .part.own .name').length === 2")
    assert text(page, ".card .left").split()[0] == "0"
    page.keyboard.press("3")
    wait_text(page, "cuda.shares", ".queue .why")
    assert text(page, ".queue tbody td") == "1/1"

    page.keyboard.press("2")
    page.click(".rows tbody tr:last-child a")
    wait_text(page, "running", ".peek header")
    page.keyboard.press("x")
    page.click(".confirm .danger")
    page.wait_for(f"{STATES} === 'running,running'")
    page.click("text=all")
    page.wait_for(f"{STATES} === 'running,running,ended'")

    assert not page.problems()
    page.click("text=Log out")
    page.wait_for("document.querySelector('[name=username]') !== null")
    assert not page.problems()


def test_terminal(browser, cluster):
    session = made(cluster, USER, "shell-1", config={"resources": {"cpu": "1", "mem": "64m"}})
    wait_status(cluster.client(USER), session, "RUNNING")
    page = logged_in(browser, cluster)
    page.evaluate(f"location.hash = '#/sessions/{session}'")
    page.wait_for("document.querySelector('.apps button') !== null")
    page.click(".apps button")
    tab = wait_for(page.opened, 30, "the tab")[0]
    tab.wait_for("document.querySelector('.xterm-rows') !== null")
    tab.wait_for("document.querySelector('#bar').hidden")
    tab.keyboard.type("echo $((6*7))-is-it\n")
    tab.wait_for("document.querySelector('.xterm-rows').textContent.includes('42-is-it')")
    assert not page.problems() and not tab.problems()


def test_jupyter(browser, cluster):
    cluster.layout.image("lab", [python_layer(), pip_layer(*LAB)], how=None, Env=[PATH])
    session = made(cluster, USER, "lab-1", "lab", config={"resources": {"cpu": "1", "mem": "1g"}})
    wait_status(cluster.client(USER), session, "RUNNING")
    page = logged_in(browser, cluster)
    page.evaluate(f"location.hash = '#/sessions/{session}'")
    wait_text(page, "JupyterLab", ".apps")
    page.click("text=JupyterLab")
    tab = wait_for(page.opened, 30, "the tab")[0]
    tab.wait_for("document.querySelector('#jp-main-dock-panel, .jp-LauncherCard') !== null", 120)
    assert not page.problems()


def test_log_and_words_that_steer(browser, cluster):
    """Other people's words are shown, never obeyed."""
    session = made(cluster, USER, "says", startupCommand=f"printf %s '{HOSTILE}'; exit 3",
                   config={"resources": {"cpu": "1", "mem": "64m"}})
    wait_status(cluster.client(USER), session, "TERMINATED")
    assert cluster.client().post("/aliquot/v1/agents/node1/drain", {"reason": HOSTILE}).status == 204
    page = logged_in(browser, cluster)
    wait_text(page, "drained", ".map")
    assert "[U+202E]evil [U+001B]]0;owned[U+0007]" in text(page, ".map") and "<b>fat</b>" in text(page, ".map")
    assert cluster.client().post("/aliquot/v1/agents/node1/undrain", {}).status == 204
    wait_text(page, "ready", ".map")
    page.evaluate(f"location.hash = '#/sessions/{session}?show=ended'")
    wait_text(page, "failed (3)", ".peek header")
    page.keyboard.press("l")
    wait_text(page, "The end.", ".peek")
    assert text(page, ".log") == "[U+202E]evil <b>fat</b>"
    assert page.evaluate("document.title") == "Sessions · aliquot"
    assert not page.problems()


def test_what_would_not_start(browser, cluster):
    """Refused, or to wait: said before it is made, and as a command."""
    page = logged_in(browser, cluster, permissions=["clipboard-read", "clipboard-write"])
    made(cluster, ADMIN, "holds", config={"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "2"}})
    launch(page, more={SHARES: "1", "#amount-mem": "256m"})
    wait_text(page, "would wait", ".answer")
    assert "cuda.shares" in text(page, ".answer")
    page.click(".launch .copy")
    page.wait_for("navigator.clipboard.readText().then((text) => text.startsWith('aliquot'))")
    assert page.evaluate("navigator.clipboard.readText()") == (
        "aliquot session create --image shell -r cpu=1 -r mem=256m -r cuda.shares=1")
    page.fill(SHARES, "1000")
    wait_text(page, "refused", ".answer")
    assert "cuda.shares" in text(page, ".answer")


def test_others_are_nobody(browser, cluster):
    session = made(cluster, ADMIN, "secret-name", config={
        "resources": {"cpu": "1", "mem": "64m", "cuda.shares": "1"}})
    wait_status(cluster.client(), session, "RUNNING")
    page = logged_in(browser, cluster)
    page.wait_for("document.querySelectorAll('.card .part').length === 1")
    assert page.evaluate("document.querySelector('.card .part').title").startswith("1 of 2: somebody;")
    assert "secret-name" not in page.evaluate("document.documentElement.outerHTML")
    assert session not in page.evaluate("document.documentElement.outerHTML")


def test_the_manager_goes_and_comes(browser, cluster):
    page = logged_in(browser, cluster)
    cluster.programs["manager"].kill()
    wait_text(page, "no connection to the manager", ".notice")
    assert "node1" in text(page, ".map")
    cluster.programs["manager"].start()
    page.wait_for("document.querySelector('.notice') === null")
    wait_text(page, "ready", ".map")


def test_each_time_it_is_loaded(browser, cluster):
    """What came before the screen was drawn is in it."""
    made(cluster, USER, "waits", wait_for_capacity=True, config={"resources": {"cpu": "1000", "mem": "64m"}})
    page = logged_in(browser, cluster)
    page.evaluate("location.hash = '#/sessions'")
    for _ in range(15):
        page.reload()
        page.wait_for("document.querySelector('.rows tbody tr') !== null", 10)
    assert not page.problems()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_how_it_looks(browser, cluster, scheme, size):
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, shares in (("first", "0.5"), ("second", "1"), ("third", "1")):
        made(cluster, ADMIN, name, config={"resources": {"cpu": "1", "mem": "64m", "cuda.shares": shares}})
    page = logged_in(browser, cluster, EMAIL, PASSWORD, size, colorScheme=scheme)
    page.wait_for("document.querySelectorAll('.map .part.own .name').length === 2")
    keys = {"map": "1", "sessions": "2", "queue": "3", "launch": "n", "peek": "j", "keys": "?"}
    for screen, key in keys.items():
        if screen == "peek":
            page.keyboard.press("2")
        page.keyboard.press(key)
        page.wait_for("document.readyState === 'complete'")
        page.screenshot({"path": str(KEPT / f"{screen}-{scheme}-{size}.png")})
        assert page.violations() == [], screen
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), screen
    assert not page.problems()


def test_size(cluster):
    """What a browser fetches before anybody can log in."""
    browser = cluster.browser()
    page = browser.ask("GET", "/")
    parts = [browser.ask("GET", f"/console.{kind}", Accept_Encoding="gzip") for kind in ("js", "css")]
    assert all(part.headers["Content-Encoding"] == "gzip" for part in parts)
    assert sum(len(part.body) for part in parts) + len(gzip.compress(page.body)) < 130_000
    assert "Preact" in browser.ask("GET", "/licences.txt").body.decode()
