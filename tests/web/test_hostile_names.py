# SPDX-License-Identifier: Apache-2.0
"""Whatever people name and print is shown as text: in the console, and in the list of the WebUI."""

import pathlib
import shlex
import sys
import urllib.parse

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
import webui  # noqa: E402
from browser import Browser  # noqa: E402
from client import USER  # noqa: E402
from cluster import wait_for, wait_status  # noqa: E402
from console_cluster import ConsoleCluster  # noqa: E402
from test_console import SIZES, logged_in, made, text, wait_text  # noqa: E402
from web import EMAIL, USER_EMAIL, USER_PASSWORD  # noqa: E402
from webui import tried, wait_until  # noqa: E402

# HTML; texts may have a mark that turns them around, one without width; and what would run where a
# shell reads it.
NAME = '<img src=x onerror=hacked=1>'
TEXT = NAME + '\u202e\u200b'
GROUP = "<script>hacked=1</script>$(id)'\"`"
WORD = "w" * 64
# Titles, colours, clearing of the screen, answers of terminals, a link; then a word of 64 KiB.
OUTPUT = (r"\033]0;owned\007\033]52;c;b3duZWQ=\007\033[2J\033[31m\033[6n\033]8;;http://evil.example\007"
          r"<script>hacked=1</script>\342\200\256<img src=x onerror=hacked=1>")
PRINT = f"printf '{OUTPUT}\\n%065536d\\nthat was all' 0; sleep 1000"
PLANTED = """(() => { const walk = (root) => [...root.querySelectorAll('*')].some((it) =>
    it.matches("[onerror], img[src=x]") || it.localName === "script" && it.text === "hacked=1"
    || it.shadowRoot && walk(it.shadowRoot));
  return walk(document) || window.hacked !== undefined; })()"""
FITS = """document.documentElement.scrollWidth <= innerWidth
    && [...document.querySelectorAll('.map .cards')].every((it) => it.getBoundingClientRect().right <= innerWidth)"""
VIEWS = {"1": ".map", "2": ".rows", "3": ".queue", "6": ".rows", "n": ".launch"}
# What the tabs of a service show, and where.
TABS = {"": "[aria-label=Problem]", "revisions": ".differences", "deploy": ".launch", "tokens": ".wide-table",
        "settings": ".launch"}
THERE = "/aliquot/v1"


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with ConsoleCluster() as cluster:
        cluster.start(nodes=2)
        cluster.alias("shell", "shell")
        cluster.alias(WORD, "shell")
        plant(cluster)
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


def fine(reply):
    assert reply.status in (200, 201, 204), reply
    return reply


def plant(cluster):
    """Whatever has a name or a text gets one of these."""
    admin, user = cluster.client(), cluster.client(USER)
    for name in (GROUP, WORD):
        fine(admin.post(f"{THERE}/resource-groups", {"name": name}))
        fine(admin.post(f"{THERE}/resource-groups/{urllib.parse.quote(name, safe='')}/allow",
                        {"domain": "default"}))
    fine(admin.send("PUT", f"{THERE}/resource-presets/{WORD}",
                    {"resource_slots": {"cpu": "1", "mem": "64m"}}))
    project = fine(admin.post(f"{THERE}/groups", {"name": NAME, "domain": "default"})).json["id"]
    fine(admin.post(f"{THERE}/groups/{project}/add-users", {"users": [EMAIL, USER_EMAIL]}))
    fine(admin.post("/manager/announcement", {"enabled": True, "message": TEXT + "w" * 2000}))
    for client, email in ((admin, EMAIL), (user, USER_EMAIL)):
        fine(client.post("/auth/update-full-name", {"email": email, "full_name": NAME}))
    made(cluster, USER, WORD, startupCommand=PRINT,
         config={"resources": {"cpu": "1", "mem": "64m"}, "scaling_group": "default"})
    wait_status(user, WORD, "RUNNING")
    made(cluster, USER, "waits-" + WORD[:50], group_name=NAME, tag=NAME, wait_for_capacity=True,
         config={"resources": {"cpu": "1000", "mem": "64m"}, "scaling_group": "default"})
    serve(user)
    fine(admin.send("PATCH", f"{THERE}/agents/node2", {"resource_group": WORD}))
    fine(admin.post(f"{THERE}/agents/node1/drain", {"reason": TEXT + "w" * 200}))


def serve(user):
    """A model service that fails with such a text; its notes, tag, labels and variables are such, too."""
    services = f"{THERE}/model-services"
    fine(user.post(services, {
        "name": "hostile", "image": WORD, "command": f"printf '{OUTPUT}\\n'; exit 1", "port": 8000,
        "resources": {"cpu": "1", "mem": "64m"}, "environ": {"WORD": TEXT}, "tag": NAME, "note": NAME,
        "resource_group": "default", "health": {"path": "/" + GROUP.replace(" ", "")}}))
    fine(user.post(f"{services}/hostile/revisions", {"environ": {"WORD": GROUP}, "note": NAME + "w" * 200}))
    fine(user.post(f"{services}/hostile/tokens", {"label": NAME}))
    wait_for(lambda: "exit status 1" in (user.get(f"{services}/hostile").json["problem"] or ""), 120,
             lambda: f"its failure: {user.get(f'{services}/hostile').json}")


def check(page, where):
    assert not page.evaluate(PLANTED), where
    assert page.evaluate(FITS), where
    assert not page.problems(), where


@pytest.mark.parametrize("size", SIZES)
def test_console(cluster, browser, size):
    page = logged_in(browser, cluster, size=size, permissions=["clipboard-read", "clipboard-write"])
    wait_text(page, "drained", ".map")
    assert "<img src=x onerror=hacked=1>[U+202E][U+200B]" in text(page, ".map")
    for key, selector in VIEWS.items():
        page.keyboard.press(key)
        page.wait_for(f"document.querySelector('{selector}')?.innerText.length > 20")
        check(page, selector)
    page.wait_for("document.querySelector('#group') !== null")
    page.selectOption("#group", GROUP)
    page.fill("#image", WORD)
    page.click(".launch .copy")
    page.wait_for("navigator.clipboard.readText().then((text) => text.includes('hacked'))")
    words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert words[:3] == ["aliquot", "session", "create"] and GROUP in words
    check(page, "launch, filled in")
    for tab, selector in TABS.items():
        page.evaluate(f"location.hash = '#/service/hostile?show={tab}'")
        page.wait_for(f"document.querySelector('{selector}')?.innerText.length > 20")
        check(page, f"service, {tab}")
        if not tab:
            assert "<img src=x onerror=hacked=1>" in text(page, selector) and "\x1b" not in text(page)
            page.click("text=Log of a replica")
            wait_text(page, "<script>hacked=1</script>", ".log")
            check(page, "the log of a replica")
    session = next(row["id"] for row in cluster.live_sessions() if row["name"] == WORD)
    page.evaluate(f"location.hash = '#/sessions/{session}'")
    wait_text(page, "running", ".peek header")
    check(page, "peek")
    page.keyboard.press("l")
    wait_text(page, "that was all", ".peek")
    shown = text(page, ".log")
    assert shown.startswith("<script>hacked=1</script>[U+202E]<img src=x onerror=hacked=1>\n000"), shown[:200]
    assert "\x1b" not in shown and "owned" not in shown and len(shown) > 65536
    assert page.evaluate("document.title") == "Sessions · aliquot"
    check(page, "log")


def test_webui(cluster, browser):
    """The list of sessions, whose owner, project and name are others' words."""
    assert cluster.programs["web"].stop() == 0
    cluster.start_web("--static", webui.install("24.9.14"))
    page = browser.page(viewport=SIZES["wide"])
    page.goto(cluster.origin)
    for selector, value in (("input[type=text] >> nth=0", USER_EMAIL),
                            ("input[type=password] >> nth=0", USER_PASSWORD)):
        wait_for(lambda: tried(page.fill, selector, value), 90, "the form")
    page.keyboard.press("Enter")
    wait_until(page, "<img src=x onerror=hacked=1>")
    page.goto(cluster.origin + "/job")
    wait_until(page, "waits-" + WORD[:50])
    assert not page.evaluate(PLANTED) and page.evaluate(FITS)
