# SPDX-License-Identifier: Apache-2.0
"""Model services in the console: created by the form, asked through the proxy, scaled, deployed, rolled
back, and ended, with real replicas in containers."""

import http.client
import json
import pathlib
import sys
import threading
import urllib.parse

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from browser import Browser  # noqa: E402
from client import ADMIN, USER  # noqa: E402
from cluster import wait_for  # noqa: E402
from console_cluster import ConsoleCluster  # noqa: E402
from images import archive, file, folder  # noqa: E402
from python_image import python_layer  # noqa: E402
from test_console import (KEPT, SHARES, SIZES, commands, logged_in, nothing_left, text,  # noqa: E402
                          wait_text)
from web import EMAIL, PASSWORD, USER_EMAIL  # noqa: E402

__all__ = ["nothing_left"]  # a fixture
PATH = "/aliquot/v1/model-services"
ROWS = "[...document.querySelectorAll('.rows .row')].map((row) => row.innerText.replace(/\\s+/g, ' '))"
COMMAND = "exec python3 /app/serve.py 8000"
SERVER = rb"""
import http.server, json, os, sys
class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        text = json.dumps({"word": os.environ.get("WORD"), "path": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        print("asked for", self.path, flush=True)
print("model is loaded", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
"""


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with ConsoleCluster(ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start()
        cluster.layout.image("model", [python_layer(), archive([
            folder("tmp", mode=0o1777), folder("app"), file("app/serve.py", SERVER)])], Labels={})
        cluster.alias("model", "model")
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(scope="module", name="browser")
def browser_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser


@pytest.fixture(autouse=True)
def no_services_left(cluster, nothing_left):
    yield
    client = cluster.client()
    for service in client.get(f"{PATH}?all=true").json["items"]:
        client.delete(f"{PATH}/{service['id']}", {"force": True})
    wait_for(lambda: not client.get(f"{PATH}?all=true").json["items"], 60, "the services to end")


def serve(cluster, name="digits", keypair=USER, **more):
    reply = cluster.client(keypair).post(PATH, {
        "name": name, "image": "model", "command": COMMAND, "port": 8000,
        "resources": {"cpu": "1", "mem": "128m"}, "environ": {"WORD": "first"},
        "health": {"path": "/health", "interval": 1}, **more})
    assert reply.status == 201, reply
    return reply.json


def shown(cluster, name="digits"):
    return cluster.client().get(f"{PATH}/{name}").json


def wait_ready(cluster, name="digits", count=1, revision=None):
    def is_ready():
        now = shown(cluster, name)
        return (now["status"] == "ready" and now["replicas"]["ready"] == count
                and revision in (None, now["revision"]["number"]))
    wait_for(is_ready, 120, lambda: f"{count} ready: {shown(cluster, name)}")


def ask(url, token=None, path="v1/models"):
    """Status and answer of one request by the URL that the page shows."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
    connection.request("GET", at.path + path, headers={"Authorization": f"Bearer {token}"} if token else {})
    reply = connection.getresponse()
    said = reply.read()
    connection.close()
    return reply.status, json.loads(said) if reply.status == 200 else said.decode()


class Load:
    """Requests one after the other until the end of the block."""

    def __init__(self, url, token):
        self.is_over, self.replies = threading.Event(), []
        self.thread = threading.Thread(target=self.run, args=(url, token))

    def run(self, url, token):
        while not self.is_over.wait(0.05):
            self.replies.append(ask(url, token))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def open_service(page, name, tab=""):
    page.evaluate(f"location.hash = '#/service/{name}{f'?show={tab}' if tab else ''}'")
    wait_text(page, name, ".service h2")


def go_to(page, tab):
    page.click(f".service .filters button:has-text('{tab}')")


def wait_state(page, word):
    page.wait_for(f"document.querySelector('.service > header .state')?.textContent === {json.dumps(word)}")


@pytest.mark.gate
def test_from_the_form_to_the_end(browser, cluster):
    page = logged_in(browser, cluster, permissions=["clipboard-read", "clipboard-write"])
    page.keyboard.press("6")
    wait_text(page, "There is no model service yet.")
    page.click(".filters a.main")
    page.wait_for("document.querySelector('#service-image') !== null"
                  f" && document.querySelector({json.dumps(SHARES)}) !== null")
    for name, value in {"name": "digits", "image": "model", "command": COMMAND, "port": "80000",
                        "health": "/health", "environ": "WORD=first", "replicas": "1"}.items():
        page.fill(f"#service-{name}", value)
    page.fill(SHARES, "0.5")
    page.fill("#amount-mem", "128m")
    page.click(".launch button.main")
    page.wait_for("document.querySelector('#service-port').getAttribute('aria-invalid') === 'true'")
    assert "65535" in text(page, "#service-port-hint")
    page.fill("#service-port", "8000")
    assert page.violations() == []
    command = commands(page, ".actions")["Copy as command"]
    assert command == ("aliquot service create --image model --port 8000 --health /health -r cpu=1"
                       " -r mem=128m -r cuda.shares=0.5 -e WORD=first digits"
                       " 'exec python3 /app/serve.py 8000'")
    page.click(".launch button.main")
    wait_text(page, "digits", ".service h2")
    wait_state(page, "ready")
    url = text(page, ".service .url code")
    assert url == shown(cluster)["url"]
    page.wait_for("document.querySelectorAll('.service > header .boxes .ready').length === 1")
    assert shown(cluster)["revision"]["resources"] == {"cpu": "1", "mem": "128m", "cuda.shares": "0.5"}

    # A token, which is shown once; what is copied reaches the service.
    go_to(page, "Tokens")
    page.wait_for("document.querySelector('#token-label') !== null")
    page.fill("#token-label", "crawler")
    page.click(".launch button.main")
    wait_text(page, "aqs-", ".fresh .token")
    token = text(page, ".fresh .token")
    assert f"OPENAI_API_KEY={token}" in text(page, ".snippets")
    page.click(".snippets .copy")
    page.wait_for("navigator.clipboard.readText().then((text) => text.startsWith('curl'))")
    assert '"word": "first"' in cluster.type(page.evaluate("navigator.clipboard.readText()"))
    wait_text(page, "crawler", ".wide-table")
    page.click("text=Hide")
    assert token not in page.evaluate("document.documentElement.outerHTML")

    # Requests show in the figures.
    go_to(page, "Overview")
    with Load(url, token) as load:
        page.wait_for("Number(document.querySelector('.chart .value').lastChild.textContent) > 0")
        page.wait_for("document.querySelector('.chart path').getAttribute('d').includes('L')")
        page.keyboard.press("6")
        page.wait_for(f"{ROWS}.some((row) => /ready digits .*0.5 fGPU [\\d.]+/.test(row))")
    assert load.replies and all(status == 200 for status, _ in load.replies)
    assert page.violations() == []
    page.click("text=digits")
    wait_text(page, "digits.r1.1", ".wide-table")

    page.fill("#scale", "2")
    page.keyboard.press("Enter")
    page.wait_for("document.querySelectorAll('.service > header .boxes .ready').length === 2")
    assert shown(cluster)["replicas"]["wanted"] == 2
    page.fill("[aria-label='Part of the requests of digits.r1.2']", "0.5")
    page.keyboard.press("Enter")
    wait_for(lambda: [one["ratio"] for one in shown(cluster)["replica_list"]] == [1, 0.5], 30, "the ratio")
    page.fill("#scale", "1")
    page.keyboard.press("Enter")
    wait_ready(cluster)

    # A new revision, and back.
    go_to(page, "Deploy")
    page.wait_for("document.querySelector('#service-environ') !== null")
    assert page.evaluate("document.querySelector('.actions button.main').disabled")
    page.fill("#service-environ", "WORD=second\nLOG=debug")
    page.fill("#service-note", "another word")
    assert commands(page, ".actions")["Copy as command"] == (
        "aliquot service deploy -e WORD=second -e LOG=debug --note 'another word' digits")
    page.click(".actions button.main")
    wait_text(page, "Revision 2 of digits is being deployed.", ".said")
    wait_for(lambda: ask(url, token)[1]["word"] == "second", 120, "the new revision")
    go_to(page, "Revisions")
    wait_text(page, "another word", ".wide-table")
    assert text(page, ".differences") == "variable LOG: debug, was not set\nvariable WORD: first → second"
    assert page.violations() == []
    page.click(".wide-table button.danger")
    page.keyboard.press("y")
    wait_for(lambda: ask(url, token)[1]["word"] == "first", 120, "the first revision")
    wait_text(page, "1 wanted", ".wide-table")
    wait_ready(cluster)

    # A revoked token is refused.
    go_to(page, "Tokens")
    page.click(".wide-table button.danger")
    page.keyboard.press("y")
    wait_text(page, "There is no token yet.")
    wait_for(lambda: ask(url, token)[0] == 401, 30, "the refusal")

    page.keyboard.press("x")
    page.keyboard.press("y")
    wait_state(page, "ended")
    assert cluster.client(USER).get(PATH).json["items"] == []
    page.keyboard.press("6")
    page.click(".filters .choice button:last-child")
    page.wait_for(f"{ROWS}.some((row) => row.startsWith('ended digits'))")
    assert [problem for problem in page.problems() if "400 (Bad Request)" not in problem] == []


@pytest.mark.gate
def test_a_failing_service_says_why(browser, cluster):
    serve(cluster, command="echo no weights in /models; exit 7")
    page = logged_in(browser, cluster)
    page.keyboard.press("6")
    page.wait_for(f"{ROWS}.some((row) => row.includes('failing digits'))")
    page.click("text=digits")
    wait_text(page, "no weights in /models", "[aria-label=Problem]")
    wait_text(page, "7", "[aria-label=Problem]")
    wait_text(page, "The next replica is tried in", "[aria-label=Problem]")
    page.click("text=Log of a replica")
    wait_text(page, "no weights in /models", ".log")
    assert page.violations() == []
    page.click(".replica-log a")
    wait_text(page, "digits.r1.", ".peek h2")
    assert not page.problems()


def test_settings(browser, cluster):
    serve(cluster, tag="beta")
    page = logged_in(browser, cluster)
    open_service(page, "digits", "settings")
    page.wait_for("document.querySelector('#setting-cap') !== null")
    assert page.evaluate("document.querySelector('.actions button.main').disabled")
    for name, value in {"replicas": "1-3", "targets": "in_flight=4 latency=0.5", "cap": "16",
                        "queue_timeout": "soon", "tag": "steady"}.items():
        page.fill(f"#setting-{name}", value)
    page.click("#setting-public")
    page.click(".actions button.main")
    page.wait_for("document.querySelector('#setting-queue_timeout').getAttribute('aria-invalid') === 'true'")
    page.fill("#setting-queue_timeout", "30s")
    assert commands(page, ".actions")["Copy as command"] == (
        "aliquot service update --replicas 1-3 --target in_flight=4 --target latency=0.5 --cap 16"
        " --queue-timeout 30s --tag steady --public yes digits")
    assert page.violations() == []
    page.click(".actions button.main")
    wait_text(page, "was changed", ".said")
    now = shown(cluster)
    assert (now["replicas"]["min"], now["replicas"]["max"]) == (1, 3)
    assert (now["public"], now["tag"]) == (True, "steady")
    assert (now["limits"]["cap"], now["limits"]["queue_timeout"]) == (16, 30)
    assert now["scaling"]["rules"] == [{"signal": "in_flight", "target": 4},
                                       {"signal": "latency", "target": 0.5}]
    page.wait_for("document.querySelector('.actions button.main').disabled")
    go_to(page, "Tokens")
    wait_text(page, "requests need no token", ".section")
    assert "Bearer" not in text(page, ".snippets")
    wait_ready(cluster)
    assert ask(shown(cluster)["url"])[0] == 200
    assert [problem for problem in page.problems() if "400 (Bad Request)" not in problem] == []


def test_each_action_as_a_command(browser, cluster):
    """What the page does is typed in place of it, as it was copied."""
    page = logged_in(browser, cluster)
    page.evaluate("location.hash = '#/serve'")
    page.wait_for("document.querySelector('#amount-mem') !== null")
    for name, value in {"name": "digits", "image": "model", "command": COMMAND, "port": "8000",
                        "environ": "WORD=it's first", "replicas": "1-2", "target": "in_flight=4"}.items():
        page.fill(f"#service-{name}", value)
    page.fill("#amount-mem", "128m")
    copied = lambda: cluster.type(commands(page, ".actions")["Copy as command"])  # noqa: E731
    assert "aqs-" in copied()
    open_service(page, "digits")
    menu = commands(page, ".service > header .commands")
    assert '"digits"' in cluster.type(f"{menu['Show']} -o json")
    go_to(page, "Settings")
    page.fill("#setting-cap", "16")
    copied()
    go_to(page, "Deploy")
    page.fill("#service-environ", "LOG=debug")
    page.fill("#amount-mem", "160m")
    copied()
    go_to(page, "Tokens")
    page.fill("#token-label", "crawler")
    page.fill("#token-rate", "5")
    copied()
    wait_text(page, "5/s", ".wide-table")
    now = shown(cluster)
    assert (now["limits"]["cap"], now["tokens"], now["revision"]["number"]) == (16, 2, 2)
    assert now["revision"]["environ"] == {"LOG": "debug"}
    assert now["revision"]["resources"] == {"cpu": "1", "mem": "160m"}
    cluster.type(menu["Scale"])
    assert (shown(cluster)["replicas"]["min"], shown(cluster)["replicas"]["max"]) == (1, 1)
    cluster.type(f"{menu['End']} --yes")  # a terminal is asked
    wait_state(page, "ended")
    assert not page.problems()


def test_administrators_see_those_of_others(browser, cluster):
    serve(cluster)
    serve(cluster, "mine", ADMIN)
    page = logged_in(browser, cluster, EMAIL, PASSWORD)
    page.keyboard.press("6")
    page.wait_for(f"{ROWS}.length === 2")
    assert any(USER_EMAIL in row for row in page.evaluate(ROWS))
    page.click("text=mine")
    page.wait_for(f"{ROWS}.length === 1")
    page.evaluate("location.hash = '#/service/digits'")
    wait_text(page, USER_EMAIL, ".service dl")
    user = logged_in(browser, cluster)
    user.evaluate("location.hash = '#/service/mine'")
    wait_text(user, "there is no model service 'mine'", ".empty")
    assert not page.problems()


# What a manager says while a canary is under way.
ROLLOUT = {"strategy": "canary", "max_surge": 1, "max_unavailable": 0, "steps": [5, 25, 50],
           "step_interval": 300, "when_full": "wait", "state": {
               "phase": "running", "from": 1, "to": 2, "step": 2, "steps": 4, "percent": 25,
               "since": "2026-11-30T12:00:00Z", "reason": "step 2 of 4",
               "old": {"replicas": 3, "ready": 3}, "new": {"replicas": 1, "ready": 1}}}
HISTORY = [{"at": "2026-11-30T12:00:00Z", "version": 2, "replicas": 3, "share": None, "revision": 2,
            "reason": "scaled to 3 by ann@example.com"},
           {"at": "2026-11-30T11:00:00Z", "version": 1, "replicas": 1, "share": 0.5, "revision": 1,
            "reason": None}]
PATCHED = """(() => { const before = window.fetch; window.sent = [];
  window.fetch = async (path, options) => {
    if (/rollout\\/(promote|abort)$/.test(path)) {
      window.sent.push(path.split("/").pop());
      return new Response("{}", { status: 200 });
    }
    if (/model-services\\/[^/]+\\/history/.test(path))
      return new Response(JSON.stringify({ items: %s }), { status: 200 });
    if (/model-services\\/digits$/.test(path)) {
      const service = await (await before(path, options)).json();
      return new Response(JSON.stringify({ ...service, rollout: %s }), { status: 200 });
    }
    return before(path, options);
  };
})()"""


def test_a_rollout_as_a_picture(browser, cluster):
    serve(cluster)
    page = logged_in(browser, cluster)
    page.evaluate(PATCHED % (json.dumps(HISTORY), json.dumps(ROLLOUT)))
    open_service(page, "digits")
    wait_text(page, "canary from revision 1 to 2", ".rollout")
    wait_text(page, "25 % to revision 2", ".rollout")
    assert text(page, ".steps [aria-current]") == "25 %"
    assert page.violations() == []
    for verb in ("Promote", "Abort"):
        page.click(f".rollout button:has-text('{verb}')")
        page.keyboard.press("y")
        page.wait_for(f"window.sent.includes('{verb.lower()}')")
    go_to(page, "History")
    wait_text(page, "scaled to 3 by ann@example.com", ".wide-table")
    assert text(page, ".wide-table tbody tr:last-child").split("\t")[1:] == ["1", "1", "0.5", "requested"]
    assert page.violations() == []
    assert not page.problems()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_how_it_looks(browser, cluster, scheme, size):
    KEPT.mkdir(parents=True, exist_ok=True)
    serve(cluster, replicas="1-3", tag="a tag", resources={"cpu": "1", "mem": "128m", "cuda.shares": "0.5"})
    serve(cluster, "broken", command="echo no weights; exit 7")
    cluster.client(USER).post(f"{PATH}/digits/tokens", {"label": "crawler", "rate": 5})
    wait_ready(cluster)
    reply = cluster.client(USER).post(f"{PATH}/digits/revisions",
                                      {"environ": {"WORD": "second"}, "note": "a note"})
    assert reply.status == 201, reply
    wait_ready(cluster, revision=2)
    page = logged_in(browser, cluster, EMAIL, PASSWORD, size, colorScheme=scheme)
    page.evaluate(PATCHED % (json.dumps(HISTORY), json.dumps(ROLLOUT)))
    places = {"services": "#/services", "service": "#/service/digits", "service-failing": "#/service/broken",
              "service-create": "#/serve",
              **{f"service-{tab}": f"#/service/digits?show={tab}"
                 for tab in ("revisions", "deploy", "tokens", "settings")}}
    for name, at in places.items():
        page.evaluate(f"location.hash = {at!r}")
        page.wait_for("document.querySelector('.rows .row, .section, .launch') !== null")
        if name in ("service-revisions", "service-tokens"):
            page.wait_for("document.querySelector('.wide-table tbody tr') !== null")
        if name == "service-failing":
            wait_text(page, "no weights", "[aria-label=Problem]")
        page.screenshot({"path": str(KEPT / f"{name}-{scheme}-{size}.png")})
        assert page.violations() == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert not page.problems()
