# SPDX-License-Identifier: Apache-2.0
"""A page of another origin, in the browser in which somebody is logged in, against every route."""

import http.server
import json
import re
import threading

import pytest

from browser import Browser
from client import ADMIN
from cluster import interactive, wait_for, wait_status
from ports import free_port
from web import COOKIE, EMAIL, PASSWORD, USER_EMAIL, USER_PASSWORD
from web import Browser as Client
from web import Webbed
from world import ROOT

SOCKETS = ["/func/stream/session/victim/pty", "/func/stream/session/victim/execute",
           "/func/stream/session/victim/httpproxy?app=x", "/func/stream/session/victim/tcpproxy?app=x",
           "/func/aliquot/v1/live", "/func/aliquot/v1/sessions/victim/connect?app=x",
           "/func/aliquot/v1/sessions/victim/exec?command=id", "/func/aliquot/v1/sessions/victim/ssh"]
FORMS = ["/server/login", "/server/logout", "/server/extend-login-session", "/func/session",
         "/func/auth/signout", "/func/admin/gql", "/func/folders"]

# Each tells what it could read, or open; all of it is awaited.
SCRIPT = """
const TYPES = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
               "application/json"];
async function asks(base, routes) {
  const read = [];
  const ask = async (path, options) => {
    try {
      const reply = await fetch(base + path, options);
      read.push([options.method, path, options.mode, reply.type, reply.status]);
    } catch { }
  };
  await Promise.all(routes.flatMap(([method, path]) => {
    const isReading = method === "GET";
    return (isReading ? [undefined] : TYPES).flatMap((type) => ["cors", "no-cors"].flatMap((mode) =>
      (isReading ? ["include", "omit"] : ["include"]).map((credentials) => ask(path, {
        method, mode, credentials, headers: type ? { "Content-Type": type } : {},
        body: isReading ? undefined : "{}" }))));
  }));
  return read;
}
function shows(base, paths) {
  return Promise.all(paths.flatMap((path) => ["img", "script", "link"].map((name) => new Promise((done) => {
    const it = document.createElement(name);
    it.onload = () => done([name, path]);
    it.onerror = () => done(null);
    if (name === "link") it.rel = "stylesheet";
    it[name === "link" ? "href" : "src"] = base + path;
    document.body.append(it);
  })))).then((all) => all.filter((one) => one));
}
function posts(base, paths) {
  return Promise.all(paths.flatMap((path) => [...TYPES.slice(0, 2), "multipart/form-data"].map(
    (type, i) => new Promise((done) => {
      const frame = document.createElement("iframe"), form = document.createElement("form");
      frame.name = path + i;
      document.body.append(frame);
      Object.assign(form, { method: "POST", action: base + path, enctype: type, target: frame.name });
      form.append(Object.assign(document.createElement("input"), { name: '{"x":"', value: '"}' }));
      document.body.append(form);
      frame.onload = () => frame.contentDocument?.URL !== "about:blank" && done(1);
      form.submit();
    })))).then((all) => all.length);
}
function opens(base, paths) {
  const isOpen = (it, name) => new Promise((done) => {
    const end = (said) => { it.close(); done(said); };
    it.onopen = () => end(name);
    it.onerror = () => end(null);
  });
  const events = "/func/events/session?sessionName=*&scope=*";
  return Promise.all([
    isOpen(new EventSource(base + events, { withCredentials: true }), events),
    ...paths.map((path) => isOpen(new WebSocket(base.replace("http", "ws") + path), path)),
  ]).then((all) => all.filter((one) => one));
}
function frames(base, paths) {
  return Promise.all(paths.map((path) => new Promise((done) => {
    const frame = Object.assign(document.createElement("iframe"), { src: base + path });
    frame.onload = () => done(frame.contentDocument === null);
    document.body.append(frame);
  })));
}
"""


class Evil(http.server.BaseHTTPRequestHandler):
    """A page with the script above; what browsers send it, and cookies that it sets."""

    cookies = []

    def do_GET(self):
        self.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        if "?" in self.path:
            self.send_header("Set-Cookie", self.path.partition("?")[2].replace("%20", " "))
        self.end_headers()
        self.wfile.write(f"<!doctype html><body><script>{SCRIPT}</script>".encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module", name="evil")
def evil_fixture():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Webbed() as made:
        made.start_manager()
        made.start_agent()
        made.metrics = free_port()
        made.start_web(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{made.metrics}")
        assert made.client().post("/session", interactive("victim")).status == 201
        wait_status(made.client(), "victim", "RUNNING")
        yield made
        made.stop()


@pytest.fixture(scope="module", name="page")
def page_fixture(cluster):
    with Browser(cluster.folder) as browser:
        yield browser.page()


def routes():
    """[method, path] of the web server's own table, of the manager's, and of pages."""
    found = [["GET", "/"], ["GET", "/index.html"], ["GET", "/console.js"]]
    for source in sorted((ROOT / "src/web").glob("*.c")):
        found += [list(one) for one in re.findall(r'\{ METHOD_(\w+), "(/\w[^"]*)"', source.read_text())]
    for line in (ROOT / "tests/security/routes.txt").read_text().splitlines():
        if not line.startswith("#"):
            _, method, path = line.split()
            found.append([method, "/func" + re.sub(r"\{\w+\}", "victim", path)])
    assert len(found) > 250
    return found


def log_in(cluster, page, email=EMAIL, password=PASSWORD):
    page.goto(cluster.origin + "/")
    page.wait_for("document.querySelector('[name=username], .map tbody tr') !== null")
    said = page.evaluate(f"""fetch("/server/login", {{ method: "POST", body: JSON.stringify(
        {{ username: "{email}", password: "{password}" }}) }}).then((it) => it.json())""")
    assert said["authenticated"], said


def is_in(page):
    return page.evaluate('fetch("/server/login-check", { method: "POST", body: "{}" })'
                         ".then((it) => it.json()).then((it) => it.authenticated)")


def state(cluster):
    """What reached the manager from the web server, and everything that was changed there."""
    text = Client(cluster.metrics).ask("GET", "/metrics").body.decode()
    passed = re.findall(r"^aliquot_web_(?:requests|upgrades|logins|failed_logins)_total (\d+)", text, re.M)
    changes = cluster.client().get("/aliquot/v1/audit-log?limit=1000").json["items"]
    return passed, [row["action"] for row in changes]


def call(page, name, *words):
    return page.evaluate(f"{name}({', '.join(map(json.dumps, words))})")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.localhost"])
def test_a_page_of_another_origin(cluster, page, evil, host):
    """By the first its cookies are sent along: they know no ports."""
    log_in(cluster, page)
    every = routes() if host == "127.0.0.1" else routes()[::5]
    page.goto(f"http://{host}:{evil}/")
    before = state(cluster)
    assert call(page, "asks", cluster.origin, every) == []
    readable = [path for method, path in every if method == "GET"]
    assert call(page, "shows", cluster.origin, readable) == []
    assert call(page, "posts", cluster.origin, FORMS) == 3 * len(FORMS)
    assert call(page, "opens", cluster.origin, SOCKETS) == []
    assert call(page, "frames", cluster.origin, ["/", "/aliquot/"]) == [True, True]
    assert len([line for line in page.problems() if "frame-ancestors" in line]) >= 2
    page.evaluate(f"navigator.sendBeacon('{cluster.origin}/server/logout', '{{}}')")
    for path in ("/server/logout", "/func/auth/signout", "/func/session/victim?forced=true"):
        page.goto(f"http://{host}:{evil}/")
        page.evaluate(f"void location.assign('{cluster.origin}{path}')")
        page.wait_for(f"location.pathname === '{path.partition('?')[0]}'")
    assert state(cluster) == before
    page.goto(cluster.origin + "/")
    assert is_in(page)


def test_an_opened_page_obeys_nobody(cluster, page, evil):
    log_in(cluster, page)
    page.goto(f"http://127.0.0.1:{evil}/")
    page.evaluate(f"void (window.opened = open('{cluster.origin}/'))")
    tab = wait_for(page.opened, 30, "the tab")[-1]
    tab.wait_for("document.querySelector('.map tbody') !== null")
    assert page.evaluate("opened.closed")  # it has no hold of it
    assert tab.evaluate("window.opener === null")


def test_its_own_page_may(cluster, page):
    """Else the tests above could not fail."""
    log_in(cluster, page)
    page.evaluate(SCRIPT + "Object.assign(window, { asks, opens }); undefined")
    before = state(cluster)
    own = [["GET", "/func/aliquot/v1/sessions"], ["POST", "/func/admin/gql"], ["GET", "/config.toml"]]
    assert {row[1] for row in call(page, "asks", cluster.origin, own)} == {path for _, path in own}
    opened = call(page, "opens", cluster.origin, SOCKETS)
    assert "/func/aliquot/v1/live" in opened and any("/events/" in path for path in opened)
    assert state(cluster)[0] != before[0]
    asked = page.evaluate("performance.getEntries().map((it) => it.name).join()")
    assert "/console.js" in asked and PASSWORD not in asked and ADMIN[1] not in asked
    assert page.evaluate('fetch("/server/logout", { method: "POST" }).then((it) => it.status)') == 200
    assert not is_in(page)


# ---- cookies that others set, or have seen ----

def cookie_of(page, evil):
    """What the browser sends to another port of the host."""
    page.goto(f"http://127.0.0.1:{evil}/")
    return dict(part.split("=", 1) for part in Evil.cookies[-1].split("; ") if "=" in part).get(COOKIE)


def test_a_cookie_that_was_set_for_somebody(cluster, page, evil):
    """It is not what they get when they log in, and beside theirs it opens nothing."""
    attacker = cluster.browser()
    assert attacker.login(USER_EMAIL, USER_PASSWORD).json["authenticated"]
    page.goto(f"http://127.0.0.1:{evil}/?{COOKIE}={attacker.cookies[COOKIE]};%20Path=/")
    log_in(cluster, page)
    given = cookie_of(page, evil)
    assert given and given != attacker.cookies[COOKIE]
    wait_for(lambda: not attacker.is_in(), 30, "it to end with that: nobody shares it")
    victim = cluster.browser()
    victim.cookies[COOKIE] = given
    assert victim.check().json["data"]["role"] == "superadmin"

    attacker.login(USER_EMAIL, USER_PASSWORD)
    page.evaluate(f"document.cookie = '{COOKIE}={attacker.cookies[COOKIE]}; path=/func'")
    page.goto(cluster.origin + "/")
    assert is_in(page)
    assert page.evaluate("fetch('/func/auth?echo=x').then((it) => it.status)") == 401
    page.evaluate(f"document.cookie = '{COOKIE}=; path=/func; max-age=0'")
    assert page.evaluate("fetch('/func/auth?echo=x').then((it) => it.status)") == 200


def test_the_login_before_and_after(cluster, page, evil):
    log_in(cluster, page)
    seen = [cookie_of(page, evil)]
    log_in(cluster, page)
    seen.append(cookie_of(page, evil))
    page.goto(cluster.origin + "/")
    page.evaluate('fetch("/server/logout", { method: "POST" })')
    assert cookie_of(page, evil) is None and len(set(seen)) == 2
    stale = cluster.browser()
    for value in seen:
        stale.cookies[COOKIE] = value
        wait_for(lambda: not stale.is_in(), 30, "the login to end")
        assert stale.get("/auth?echo=x").status == 401


def test_a_name_beneath_the_hosts(cluster, page, evil):
    """A page of evil.localhost sets nothing for localhost."""
    page.goto(f"http://evil.localhost:{evil}/?{COOKIE}={'A' * 43};%20Domain=localhost;%20Path=/")
    page.goto(f"http://localhost:{evil}/")
    assert COOKIE not in Evil.cookies[-1]
