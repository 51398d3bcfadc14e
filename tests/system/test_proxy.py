# SPDX-License-Identifier: Apache-2.0
"""Browsers reach apps of sessions through aliquot-proxy: by a token once, by a cookie afterwards,
and never what is somebody else's."""

import concurrent.futures
import contextlib
import http.client
import json
import re
import socket
import subprocess
import time
import urllib.request

import pytest

from client import USER
from cluster import Cluster, running, wait_for
from images import Layout, archive, file, folder
from ports import free_port
from runtimes import settings_of
from test_apps import python_layer
from world import BUILD, World

# Says what it was asked; "Upgrade: echo" gives back what comes; POST gives back the body.
WEB = r"""
import http.server, json, sys, time
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def say(self, body=b""):
        if self.path.startswith("/leave"):
            self.send_response(302)
            self.send_header("Location", "/there")
            self.send_header("Set-Cookie", "own=1; Path=/; Domain=example.org; HttpOnly")
            for name in ("Service-Worker-Allowed", "Clear-Site-Data", "Strict-Transport-Security",
                         "Alt-Svc", "NEL", "Report-To"):
                self.send_header(name, "/")
            for name in ("aliquot_app", "__Host-aliquot_app", "AIOHTTP_SESSION", " AIOHTTP_SESSION ", "=AIOHTTP_SESSION",
                         "__Host-AIOHTTP_SESSION", "aliquot_browser"):
                self.send_header("Set-Cookie", f"{name}=set; Path=/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        text = body or json.dumps({"path": self.path, "word": sys.argv[2],
                                   "headers": dict(self.headers.items())}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def stream(self, count):
        self.send_response(200)
        self.send_header("Content-Length", str(100 * count))
        self.end_headers()
        for i in range(count):
            self.wfile.write(b"%099d\n" % i)
            self.wfile.flush()
            time.sleep(0.02)
    def do_GET(self):
        if self.path.startswith("/stream/"):
            return self.stream(int(self.path.split("/")[2]))
        if self.headers.get("Upgrade") != "echo":
            return self.say()
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                         b"Upgrade: echo\r\n\r\n")
        while True:
            got = self.connection.recv(65536)
            if not got:
                break
            self.connection.sendall(got)
        self.close_connection = True
    def do_POST(self):
        self.say(self.rfile.read(int(self.headers["Content-Length"])))
time.sleep(float(sys.argv[3]))
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""
LABEL = "web:http:8000,other:http:8001,late:http:8002,never:http:8003"


def definition(word, late=0):
    return {"command": ["python3", "/app/web.py", "{ports[0]}", word, str(late)]}


DEFINITIONS = {"web": definition("web"), "other": definition("other"), "late": definition("late", 4),
               "never": {"command": ["sleep", "1000"], "start_timeout": 1}}


def make_image(cluster):
    """An image with the apps."""
    layout = Layout(cluster.folder / "layout")
    own = archive([folder("tmp", mode=0o1777), folder("app"),
                   file("app/web.py", WEB.encode()), folder("etc"), folder("etc/backend.ai"),
                   folder("etc/backend.ai/service-defs"),
                   *(file(f"etc/backend.ai/service-defs/{name}.json", json.dumps(text).encode())
                     for name, text in DEFINITIONS.items())])
    layout.image("apps", [python_layer(), own], Labels={
        "ai.backend.service-ports": LABEL, "ai.backend.runtime-path": "/usr/bin/python3"})
    return layout.reference("apps")


class Proxied(Cluster):
    def start_proxy(self, name="proxy", **settings):
        self.port = getattr(self, "port", None) or free_port()
        state = self.folder / name
        if not (state / "proxy.crt").exists():
            token = self.client().post("/aliquot/v1/join-tokens", {"proxy": "main"}).json["token"]
            done = self.run("aliquot-proxy", "--state", state, "join", self.link, token)
            assert done.returncode == 0, done.stderr
        self.start_program(name, BUILD / "aliquot-proxy", "--state", state, "--listen",
                           f"127.0.0.1:{self.port}", ALIQUOT_METRICS_LISTEN="off",
                           ASAN_OPTIONS="quarantine_size_mb=1", **settings)  # memory is looked at
        wait_for(self.is_proxied, 60, "the proxy")

    def is_proxied(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/health")[0] == 200
        return False

    def ask(self, method, path, cookie=None, body=None, **headers):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        if cookie:
            headers["Cookie"] = cookie
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        with contextlib.closing(connection):
            return reply.status, reply.headers, reply.read()

    def token(self, session, app, client=None, address=None):
        reply = (client or self.client()).post(f"/session/{session}/start-service", {"app": app},
                                               timeout=60)
        assert reply.status == 200, reply
        assert reply.json["wsproxy_addr"] == (address or f"http://127.0.0.1:{self.port}")
        return reply.json["token"]

    def cookie(self, session, app, client=None):
        status, headers, _ = self.ask("GET", f"/_aliquot/setup?token={self.token(session, app, client)}")
        assert status == 302, headers
        assert re.fullmatch(rf"/app/[-0-9a-f]{{36}}/{app}/", headers["Location"])
        given = headers["Set-Cookie"]
        assert f"Path={headers['Location']};" in given, given
        assert "HttpOnly" in given and "SameSite=Lax" in given
        return given.split(";")[0]


@pytest.fixture(scope="module")
def cluster():
    with Proxied(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.image = make_image(cluster)
        cluster.start_proxy()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "apps", image=cluster.image) as session:
        yield session


def place(box, app="web"):
    return f"/app/{box}/{app}"


def echo(cluster, path, cookie):
    """A connection that was upgraded; what is sent comes back."""
    end = socket.create_connection(("127.0.0.1", cluster.port), timeout=60)
    end.sendall(f"GET {path}/ HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\nConnection: Upgrade\r\n"
                "Upgrade: echo\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        got = end.recv(4096)
        assert got, head
        head += got
    assert head.startswith(b"HTTP/1.1 101 "), head
    return end


def says_back(end, text):
    end.sendall(text)
    got = b""
    while len(got) < len(text):
        more = end.recv(65536)
        assert more, len(got)
        got += more
    return got == text


@pytest.mark.gate
def test_pages_and_bodies(cluster, box):
    cookie = cluster.cookie("apps", "web")
    status, _, body = cluster.ask("GET", place(box) + "/a/b?c=d", f"x=1; {cookie}; "
                                  "AIOHTTP_SESSION=a; __Host-AIOHTTP_SESSION=b; aliquot_browser=c; "
                                  "AIOHTTP_SESSION2=d; y=2")
    said = json.loads(body)
    assert status == 200 and said["path"] == "/a/b?c=d" and said["word"] == "web"
    headers = {name.lower(): value for name, value in said["headers"].items()}
    assert headers["cookie"] == "x=1; AIOHTTP_SESSION2=d; y=2"  # none of who has logged in
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["x-forwarded-prefix"] == place(box)
    assert headers["host"] == f"127.0.0.1:{cluster.port}"
    status, headers, _ = cluster.ask("GET", place(box), cookie)
    assert (status, headers["Location"]) == (301, place(box) + "/")
    for size in (0, 1, 300_000, 3_000_000):
        text = b"x" * size
        assert cluster.ask("POST", place(box) + "/", cookie, text)[2] == (text or cluster.ask(
            "POST", place(box) + "/", cookie, b"")[2])
    status, headers, _ = cluster.ask("GET", place(box) + "/leave", cookie)
    assert status == 302 and headers["Location"] == place(box) + "/there"
    assert headers.get_all("Set-Cookie") == [f"own=1; Path={place(box)}/; HttpOnly"]
    assert {name.lower() for name in headers} <= {"server", "date", "location", "set-cookie",
                                                  "content-length"}, headers
    status, headers, body = cluster.ask("HEAD", place(box) + "/", cookie)
    assert status == 501 and body == b""  # as the app says


def test_apps_of_another_kernel(cluster, box):
    """Each kernel has an address of its own; a cookie is for one of them."""
    with running(cluster.client(), "two", image=cluster.image, clusterSize=2) as session:
        reply = cluster.client().post("/session/two/start-service",
                                      {"app": "web", "kernel": "sub1"}, timeout=60).json
        assert reply["status"] == "started" and reply["target_id"] != session
        _, headers, _ = cluster.ask("GET", f"/_aliquot/setup?token={reply['token']}")
        path, cookie = headers["Location"], headers["Set-Cookie"].split(";")[0]
        assert path == f"/app/{reply['target_id']}/web/"
        status, _, body = cluster.ask("GET", path, cookie)
        assert (status, json.loads(body)["word"]) == (200, "web")
        assert cluster.ask("GET", place(session) + "/", cookie)[0] == 401
        states = [{app["name"]: app["state"] for app in cluster.client().get(
            f"/stream/session/two/apps?kernel={kernel}").json} for kernel in ("main1", "sub1")]
        assert [state["web"] for state in states] == ["not-started", "running"]
    assert cluster.ask("GET", path, cookie)[0] in (404, 410) and box


@pytest.mark.gate
def test_an_upgraded_connection_is_a_tunnel(cluster, box):
    cookie = cluster.cookie("apps", "web")
    with echo(cluster, place(box), cookie) as end:
        for size in (1, 70_000, 2_000_000):
            assert says_back(end, b"e" * size) or size
    uses = cluster.client().get("/aliquot/v1/sessions/apps").json
    assert uses["last_access"]


@pytest.mark.gate
def test_tokens(cluster, box):
    token = cluster.token("apps", "web")
    assert cluster.ask("GET", f"/_aliquot/setup?token={token}")[0] == 302
    assert cluster.ask("GET", f"/_aliquot/setup?token={token}")[0] == 403  # used
    for bad in ("x", "0" * 64, token + "0", token[:-1]):
        assert cluster.ask("GET", f"/_aliquot/setup?token={bad}")[0] == 403, bad
    assert cluster.ask("GET", "/_aliquot/setup")[0] == 400
    assert cluster.ask("GET", "/_aliquot/setup?token=")[0] == 400


def test_a_flood_of_tokens(cluster, box):
    """Few are looked at together, and those that are good stay so."""
    good = [cluster.token("apps", "web") for _ in range(3)]
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda i: cluster.ask("GET", f"/_aliquot/setup?token={i:064x}")[0],
                                range(500)))
    assert set(answers) <= {403, 503} and answers.count(403) >= 64, answers
    for token in good:
        assert cluster.ask("GET", f"/_aliquot/setup?token={token}")[0] == 302


@pytest.mark.gate
def test_cookies(cluster, box):
    web, other = cluster.cookie("apps", "web"), cluster.cookie("apps", "other")
    assert cluster.ask("GET", place(box) + "/", web)[0] == 200
    assert json.loads(cluster.ask("GET", place(box, "other") + "/", other)[2])["word"] == "other"
    for cookie in (None, other, "aliquot_app=", "aliquot_app=x", web[:-1], web + "A",
                   web[:30] + ("A" if web[30] != "A" else "B") + web[31:]):
        status, _, body = cluster.ask("GET", place(box) + "/", cookie)
        assert status == 401 and b"aliquot app" in body, cookie
    # an old one, or of another path, beside the right one
    for cookie in (f"{other}; aliquot_app=x; {web}", f"{web}; {other}", f"aliquot_app=; {web}"):
        assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200, cookie
    status, _, body = cluster.ask("GET", place(box) + "/", Accept="text/html")
    assert status == 401 and body.startswith(b"<!doctype html>")
    for path in ("/app", "/app/", "/app/x/web/", f"/app/{box}", f"/app/{box}/", "/nothing", "/"):
        assert cluster.ask("GET", path, web)[0] == 404, path


@pytest.mark.gate
def test_who_may(cluster, box):
    """Another user gets no token for it, and one who has lost the right is cut off."""
    user = cluster.client(USER)
    assert user.post("/session/apps/start-service", {"app": "web"}).status == 404
    with running(user, "mine", image=cluster.image) as mine:
        cookie = cluster.cookie("mine", "web", user)
        assert cluster.ask("GET", place(mine) + "/", cookie)[0] == 200
        assert cluster.ask("GET", place(box) + "/", cookie)[0] == 401
        with echo(cluster, place(mine), cookie) as end:
            assert says_back(end, b"before")
            path = f"/aliquot/v1/keypairs/{USER[0]}"
            assert cluster.client().send("PATCH", path, {"is_active": False}).status in (200, 204)
            try:
                assert end.recv(1) == b""
                assert cluster.ask("GET", place(mine) + "/", cookie)[0] == 403
            finally:
                again = cluster.client().send("PATCH", path, {"is_active": True})
                assert again.status in (200, 204), again
        assert cluster.ask("GET", place(mine) + "/", cookie)[0] == 200
        assert user.send("DELETE", "/session/mine").status == 200


def test_a_session_that_has_ended(cluster, box):
    """Its cookie never reaches another session, though that has the same name and ports."""
    client = cluster.client()
    with running(client, "short", image=cluster.image) as first:
        cookie, token = cluster.cookie("short", "web"), cluster.token("short", "web")
        end = echo(cluster, place(first), cookie)
        assert says_back(end, b"before")
    with end:
        assert end.recv(1) == b""
    with running(client, "short", image=cluster.image) as second:
        assert cluster.ask("GET", place(first) + "/", cookie)[0] == 410
        assert cluster.ask("GET", place(second) + "/", cookie)[0] == 401
        assert cluster.ask("GET", f"/_aliquot/setup?token={token}")[0] == 410


def test_an_app_that_starts_late(cluster, box):
    """Asked by a person, a page says so and comes by itself; a program waits."""
    cookie = cluster.cookie("apps", "late")
    assert cluster.client().post("/session/apps/shutdown-service",
                                 {"service_name": "late"}).status == 204
    status, headers, body = cluster.ask("GET", place(box, "late") + "/", cookie, Accept="text/html")
    assert status == 503 and headers["Refresh"] == "1" and b"starting" in body
    assert json.loads(cluster.ask("GET", place(box, "late") + "/", cookie)[2])["word"] == "late"


@pytest.mark.gate
def test_backendai_s_way(cluster, box):
    group = cluster.client().get("/scaling-groups/default/wsproxy-version")
    assert group.json == {"wsproxy_version": "v2"}
    token = cluster.token("apps", "web")
    for prefix in ("/v2/proxy", "/proxy"):
        status, headers, body = cluster.ask("GET", f"{prefix}/{token}/{box}/add?app=web&protocol=http",
                                            Origin="http://console.example.org")
        assert status == 200 and headers["Access-Control-Allow-Origin"] == "http://console.example.org"
        added = json.loads(body)
        assert added["code"] == 200
    path = added["url"].removeprefix(f"http://127.0.0.1:{cluster.port}")
    shown = json.loads(cluster.ask("GET", path, Accept="application/json")[2])
    assert shown["reuse"] is True
    status, headers, _ = cluster.ask("GET", path, Accept="text/html")
    assert status == 302 and headers["Location"] == shown["redirect_url"]
    setup = shown["redirect_url"].removeprefix(f"http://127.0.0.1:{cluster.port}")
    assert cluster.ask("GET", setup)[0] == 302
    assert json.loads(cluster.ask("GET", f"/proxy/{token}/{box}/delete")[2]) == {"code": 200}
    assert cluster.ask("PUT", "/conf", body=b"{}")[0] == 501


@pytest.mark.gate
def test_the_command_line_shows_the_address(cluster, box):
    done = cluster.cli("app", "apps", "web", "--url")
    assert done.returncode == 0, done.stderr
    path = done.stdout.strip().removeprefix(f"http://127.0.0.1:{cluster.port}")
    status, headers, _ = cluster.ask("GET", path, Accept="text/html")
    assert status == 302
    setup = headers["Location"].removeprefix(f"http://127.0.0.1:{cluster.port}")
    assert cluster.ask("GET", setup)[0] == 302
    assert cluster.cli("app", "apps", "no-such", "--url").returncode == 5


def test_killed_programs(cluster, box):
    """Who had a cookie goes on as soon as both are back; a token outlives the manager."""
    cookie, token = cluster.cookie("apps", "web"), cluster.token("apps", "web")
    cluster.programs["proxy"].kill()
    cluster.programs["manager"].kill()
    cluster.start_manager()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    cluster.start_proxy()
    assert cluster.ask("GET", f"/_aliquot/setup?token={token}")[0] in (302, 403)  # 403: a minute
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200
    cluster.programs["manager"].kill()
    wait_for(lambda: cluster.ask("GET", "/health")[0] == 503, 60, "the manager's end")
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200  # by the ticket: test_data_path.py
    status, _, body = cluster.ask("GET", f"/_aliquot/setup?token={token}")
    assert status == 503 and b"manager is away" in body
    cluster.start_manager()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    wait_for(cluster.is_proxied, 60, "the proxy")
    assert cluster.ask("GET", place(box) + "/", cookie)[0] == 200


def test_a_drained_proxy(cluster, box):
    """What is under way ends in order; nothing new is taken."""
    cookie = cluster.cookie("apps", "web")
    text = b"z" * 100
    with socket.create_connection(("127.0.0.1", cluster.port), timeout=60) as end:
        end.sendall(f"POST {place(box)}/ HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n"
                    f"Content-Length: {len(text)}\r\n\r\n".encode() + text[:50])
        time.sleep(0.5)
        cluster.programs["proxy"].signal(15)
        wait_for(lambda: not accepts(cluster.port), 30, "the listener's end")
        end.sendall(text[50:])
        said = b""
        while got := end.recv(65536):
            said += got
        assert said.endswith(text), said
    assert cluster.programs["proxy"].process.wait(60) == 0
    cluster.start_proxy()


def accepts(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def test_joining(cluster, box):
    """A proxy needs a token that was made for it, and an agent cannot use that."""
    client = cluster.client()
    assert client.post("/aliquot/v1/join-tokens", {"proxy": "a", "agent_id": "b"}).status == 400
    assert client.post("/aliquot/v1/join-tokens", {"proxy": "a:b"}).status == 400
    for body in ({}, {"agent_id": "main"}, {"proxy": "another"}):
        token = client.post("/aliquot/v1/join-tokens", body).json["token"]
        done = cluster.run("aliquot-proxy", "--state", cluster.folder / "stranger", "join",
                           cluster.link, token)
        assert done.returncode == 1 and "token" in done.stderr, done.stderr
    token = client.post("/aliquot/v1/join-tokens", {"proxy": "main"}).json["token"]
    done = cluster.run("aliquot-agent", "--state", cluster.folder / "stranger", "join",
                       cluster.link, token, ALIQUOT_ID="main")
    assert done.returncode == 1 and "token" in done.stderr, done.stderr
    assert client.post("/aliquot/v1/agents/proxy:main/revoke", {}).status in (200, 204)
    assert cluster.programs["proxy"].process.wait(60) == 3
    assert client.get("/scaling-groups/default/wsproxy-version").json == {"wsproxy_version": "v1"}




@pytest.mark.gate
def test_a_cluster_of_one_machine_has_one():
    with World() as world:
        ports = [free_port() for _ in range(3)]
        up = subprocess.Popen(
            [BUILD / "aliquot-up", "--dev", "--state", world.folder / "up", "--port", str(ports[0]),
             "--link-port", str(ports[1]), "--proxy-port", str(ports[2])],
            env={**world.env, "ALIQUOT_METRICS_LISTEN": "off"}, stdout=subprocess.PIPE, text=True)
        try:
            said = "".join(iter(up.stdout.readline, "Ctrl-C ends the cluster and its sessions.\n"))
            assert f"apps     http://127.0.0.1:{ports[2]}\n" in said and "(1 joined" in said, said
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[2]}/health", timeout=60) as reply:
                assert json.load(reply)["component"] == "proxy"
            assert len(json.loads((world.folder / "up/up.json").read_text())["agent_pids"]) == 1
        finally:
            up.terminate()
        assert up.wait(60) == 0
        assert not accepts(ports[2])
