# SPDX-License-Identifier: Apache-2.0
"""Apps that have a port of aliquot-proxy: TCP, and pages where the proxy has no domain. Asked for in
the way of Backend.AI's console, which fetches, and then opens, the addresses that it is given."""

import contextlib
import http.client
import json
import re
import socket
import urllib.parse

import pytest

from client import USER
from cluster import running, wait_for
from images import Layout, archive, file, folder
from ports import free_ports
from runtimes import settings_of
from test_apps import python_layer
from test_proxy import WEB, Proxied, accepts, definition, says_back

ECHO = r"""
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"hello ")
        while got := self.request.recv(65536):
            if got == b"leave":
                return self.request.sendall(b"bye")
            self.request.sendall(got)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
"""
COUNT = 3  # ports that the proxy has


class Ported(Proxied):
    def restart_proxy(self, count=COUNT, **settings):
        """With ports of its own: those that another had rest, or are forgotten."""
        if "proxy" in self.programs:
            self.programs["proxy"].kill()
        self.first = free_ports(count)
        self.start_proxy(ALIQUOT_PROXY_PORTS=f"{self.first}-{self.first + count - 1}", **settings)


@pytest.fixture(scope="module")
def cluster():
    with Ported(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        definitions = {"web": definition("web"), "other": definition("other"),
                       "echo": {"command": ["python3", "/app/echo.py", "{ports[0]}"]}}
        own = archive([folder("tmp", mode=0o1777), folder("app"),
                       file("app/web.py", WEB.encode()), file("app/echo.py", ECHO.encode()),
                       folder("etc"), folder("etc/backend.ai"),
                       folder("etc/backend.ai/service-defs"),
                       *(file(f"etc/backend.ai/service-defs/{name}.json", json.dumps(text).encode())
                         for name, text in definitions.items())])
        layout.image("apps", [python_layer(), own], Labels={
            "ai.backend.service-ports": "web:http:8000,other:http:8001,echo:tcp:8002",
            "ai.backend.runtime-path": "/usr/bin/python3"})
        cluster.image = layout.reference("apps")
        cluster.restart_proxy()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "apps", image=cluster.image) as session:
        yield session


def path_of(cluster, url):
    assert url.startswith(f"http://127.0.0.1:{cluster.port}/"), url
    return url.removeprefix(f"http://127.0.0.1:{cluster.port}")


def setup_of(cluster, session, name, app, query, client=None):
    """The address at which the token of a user is made a right to the app."""
    token = cluster.token(name, app, client)
    added = json.loads(cluster.ask("GET", f"/v2/proxy/{token}/{session}/add?app={app}&{query}")[2])
    shown = json.loads(cluster.ask("GET", path_of(cluster, added["url"]),
                                   Accept="application/json")[2])
    assert shown["reuse"] is True
    return path_of(cluster, shown["redirect_url"])


def ask_from(address, cluster, path, port=None, cookie=None, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port or cluster.port, timeout=60,
                                            source_address=(address, 0))
    if cookie:
        headers["Cookie"] = cookie
    connection.request(method, path, None, headers)
    reply = connection.getresponse()
    with contextlib.closing(connection):
        return reply.status, reply.headers, reply.read()


def gateway(reply):
    """The port of an answer about a TCP app, read in both of the console's ways."""
    status, headers, body = reply
    assert status == 200 and headers["Content-Type"] == "application/json", (status, body)
    said = json.loads(body)
    address = urllib.parse.parse_qs(urllib.parse.urlsplit(said["redirectURI"]).query)
    assert address["directTCP"] == ["true"]
    found = re.search(r"gateway=tcp://([^:]+):(\d+)", urllib.parse.unquote(said["redirect"]))
    assert address["gateway"] == [f"tcp://{found[1]}:{found[2]}"] and found[1] == "127.0.0.1"
    return int(found[2])


def tcp(cluster, session, name, client=None, address="127.0.0.1", app="echo"):
    setup = setup_of(cluster, session, name, app, "protocol=tcp", client)
    return gateway(ask_from(address, cluster, setup + "&do-not-redirect=true"))


def page(cluster, session, app, query="protocol=http"):
    """The port to which a browser is led, and the cookie that it is given."""
    reply = cluster.ask("GET", setup_of(cluster, session, "apps", app, query), Accept="text/html")
    assert reply[0] == 302, reply
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", reply[1]["Location"])
    assert found, reply[1]["Location"]
    return int(found[1]), reply[1]["Set-Cookie"].split(";")[0]


def connect(port, address="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(address, 0))


def greets(end):
    got = b""
    while len(got) < 6 and (more := end.recv(6 - len(got))):
        got += more
    return got == b"hello "


def is_let_in(port, address="127.0.0.1"):
    with connect(port, address) as end, contextlib.suppress(ConnectionResetError):
        return greets(end)
    return False


def test_a_tcp_app(cluster, box):
    setup = setup_of(cluster, box, "apps", "echo", "protocol=tcp")
    assert "protocol=tcp" in setup
    port = gateway(cluster.ask("GET", setup, Origin="http://console.example.org"))
    assert cluster.first <= port < cluster.first + COUNT
    assert gateway(cluster.ask("GET", setup)) == port  # the console asks twice
    status, _, body = cluster.ask("GET", setup, Accept="text/html")
    assert status == 200 and f"tcp://127.0.0.1:{port}".encode() in body
    with connect(port) as end:
        assert greets(end)
        for size in (1, 70_000, 3_000_000):
            assert says_back(end, b"e" * size)
        end.sendall(b"leave")
        assert end.recv(10) == b"bye" and end.recv(1) == b""
    # who has not shown a token is not let in, and the token is another's no more
    assert not is_let_in(port, "127.0.0.2")
    assert ask_from("127.0.0.2", cluster, setup)[0] == 403
    assert tcp(cluster, box, "apps", address="127.0.0.2") == port
    assert is_let_in(port, "127.0.0.2") and is_let_in(port)
    uses = cluster.client().get("/aliquot/v1/sessions/apps").json
    assert uses["last_access"]


def test_a_page_at_a_port(cluster, box):
    cluster.restart_proxy()
    wanted = cluster.first + COUNT - 1
    setup = setup_of(cluster, box, "apps", "web", f"protocol=http&port={wanted}"
                     "&redirect=/notebooks/a%20b%0d%0aX:y?c=d")
    status, headers, _ = cluster.ask("GET", setup)
    place = f"http://127.0.0.1:{wanted}"
    assert (status, headers["Location"]) == (302, f"{place}/notebooks/a%20b%0D%0AX:y?c=d")
    cookie, *rest = headers["Set-Cookie"].split("; ")
    assert cookie.startswith(f"aliquot_app_{wanted}=") and "Path=/" in rest and "HttpOnly" in rest
    again = cluster.ask("GET", setup)  # fetched before it is opened
    assert (again[0], again[1]["Location"], again[1]["Set-Cookie"]) == (302, headers["Location"], None)
    status, _, body = ask_from("127.0.0.1", cluster, "/x?y", wanted,
                               f"{cookie}; aliquot_app=x; aliquot_app_1=z; own=1")
    said = {name.lower(): value for name, value in json.loads(body)["headers"].items()}
    assert status == 200 and json.loads(body)["path"] == "/x?y"
    assert said["cookie"] == "own=1" and "x-forwarded-prefix" not in said
    for bad in (None, cookie[:-1], cookie.replace(f"_{wanted}", "")):
        assert ask_from("127.0.0.1", cluster, "/", wanted, bad)[0] == 401, bad
    # the cookie of one port is none of another
    setup = setup_of(cluster, box, "apps", "other", f"protocol=http&port={wanted}")
    location = cluster.ask("GET", setup)[1]["Location"]
    other = int(location.rsplit(":", 1)[1].rstrip("/"))
    assert other != wanted
    for name in (cookie, cookie.replace(f"_{wanted}", f"_{other}")):
        assert ask_from("127.0.0.1", cluster, "/", other, name)[0] == 401


def test_pages_have_ports_of_their_own(cluster, box):
    """Without a wish, and each app another, whose cookie is no right to its neighbour."""
    cluster.restart_proxy()
    web, other = page(cluster, box, "web"), page(cluster, box, "other", "")
    assert web[0] != other[0]
    assert {web[0], other[0]} <= set(range(cluster.first, cluster.first + COUNT))
    assert page(cluster, box, "web")[0] == web[0]
    for (port, cookie), (neighbour, _) in ((web, other), (other, web)):
        assert ask_from("127.0.0.1", cluster, "/a", port, cookie)[0] == 200
        for bad in (cookie, cookie.replace(f"_{port}=", f"_{neighbour}=")):
            assert ask_from("127.0.0.1", cluster, "/", neighbour, bad)[0] == 401
        # a page of the neighbour, or of an app at a path, changes nothing here, and this one does
        for origin, status in ((neighbour, 403), (cluster.port, 403), (port, 501)):
            assert ask_from("127.0.0.1", cluster, "/", port, cookie, method="DELETE",
                            Origin=f"http://127.0.0.1:{origin}")[0] == status, origin


def test_pages_without_a_port(cluster, box):
    """A path, where a domain gives each app an origin, or a server in front speaks https for it."""
    cluster.restart_proxy(ALIQUOT_PROXY_PUBLIC_URL=f"https://127.0.0.1:{cluster.port}")
    token = cluster.token("apps", "web", address=f"https://127.0.0.1:{cluster.port}")
    headers = cluster.ask("GET", f"/_aliquot/setup?token={token}")[1]
    assert headers["Location"] == f"/app/{box}/web/"
    cluster.restart_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
    token = cluster.token("apps", "web")
    shown = json.loads(cluster.ask("GET", f"/v2/proxy/auth?token={token}&session_id={box}&app=web",
                                   Accept="application/json")[2])
    host = f"web--{box.replace('-', '')}.localhost:{cluster.port}"
    assert shown["redirect_url"].startswith(f"http://{host}/")
    path = shown["redirect_url"].removeprefix(f"http://{host}")
    assert cluster.ask("GET", path, Host=host)[1]["Location"] == "/"


def test_all_ports_are_taken(cluster, box):
    """An app that has one keeps it; one that needs one is told why it gets none, and so is a page,
    which would share an origin with others at a path."""
    cluster.restart_proxy(1, ALIQUOT_PROXY_MAX_PORTS_PER_USER="2")
    assert {tcp(cluster, box, "apps") for _ in range(2)} == {cluster.first}
    for query in ("protocol=tcp", f"port={cluster.first}", "protocol=http"):
        setup = setup_of(cluster, box, "apps", "web", query)
        status, headers, body = cluster.ask("GET", setup)
        assert status == 503 and b"all ports" in body and b"[proxy] ports" in body, body
        assert not headers["Location"] and not headers["Set-Cookie"]
    said = cluster.log_of("proxy")
    assert "app web gets no port: all ports are taken" in said, said


def test_a_user_has_a_share_of_ports(cluster, box):
    """Half of few, so that others have theirs; what rests counts, and the error says what to do."""
    cluster.restart_proxy(3)
    ports = {page(cluster, box, app)[0] for app in ("web", "other")}
    assert len(ports) == 2
    for query in ("protocol=http", "protocol=tcp", f"port={cluster.first}"):
        status, headers, body = cluster.ask("GET", setup_of(cluster, box, "apps", "echo", query))
        assert status == 429 and b"2 ports" in body and b"max-ports-per-user" in body, body
        assert not headers["Location"] and not headers["Set-Cookie"]
    user = cluster.client(USER)
    with running(user, "mine", image=cluster.image) as mine:
        assert tcp(cluster, mine, "mine", user) not in ports
        assert user.send("DELETE", "/session/mine").status == 200


def test_where_a_setup_leads(cluster, box):
    """Never out of the app; and a fetch whose cookie would be lost leaves the token as it is."""
    cluster.restart_proxy(1)
    place = f"http://127.0.0.1:{cluster.first}/notebooks/a"
    for bad in ("//elsewhere", "/\\elsewhere", "elsewhere", "http://elsewhere/"):
        setup = setup_of(cluster, box, "apps", "web", "redirect=" + urllib.parse.quote(bad, ""))
        assert cluster.ask("GET", setup)[0] == 400, bad
    setup = setup_of(cluster, box, "apps", "web", "redirect=/notebooks/a")
    fetched = cluster.ask("GET", setup, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
    assert fetched[0] == 204 and not fetched[1]["Set-Cookie"]
    status, headers, _ = cluster.ask("GET", setup, Accept="text/html", **{
        "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert (status, headers["Location"]) == (302, place)
    assert headers["Set-Cookie"]
    # opened once more: the cookie, which this browser has or not, decides
    status, headers, _ = cluster.ask("GET", setup, Accept="text/html")
    assert (status, headers["Location"]) == (302, place)
    assert not headers["Set-Cookie"]
    assert ask_from("127.0.0.1", cluster, "/notebooks/a", cluster.first, Accept="text/html")[0] == 401


def test_a_port_whose_session_has_ended(cluster, box):
    """It is closed, and nobody else's before it has rested."""
    cluster.restart_proxy(2, ALIQUOT_PROXY_MAX_PORTS_PER_USER="2")
    client, user = cluster.client(), cluster.client(USER)
    with running(client, "short", image=cluster.image) as first:
        port = tcp(cluster, first, "short")
        setup = setup_of(cluster, first, "short", "web", "port=1")
        location = cluster.ask("GET", setup)[1]["Location"]
        page = int(location.rsplit(":", 1)[1].rstrip("/"))
        assert {port, page} == {cluster.first, cluster.first + 1}
        end = connect(port)
        assert greets(end)
    with end:
        assert end.recv(1) == b""
    with running(user, "mine", image=cluster.image) as mine:
        wait_for(lambda: not accepts(port) and not accepts(page), 60, "the ports' end")
        setup = setup_of(cluster, mine, "mine", "echo", "protocol=tcp", user)
        status, _, body = cluster.ask("GET", setup)
        assert status == 503 and b"all ports" in body, body
        # and a proxy that has forgotten them gives what the old ones do not open
        cluster.restart_proxy(1)
        assert tcp(cluster, mine, "mine", user, "127.0.0.3") == cluster.first
        assert not is_let_in(cluster.first) and is_let_in(cluster.first, "127.0.0.3")
        assert user.send("DELETE", "/session/mine").status == 200


def test_who_has_lost_the_right(cluster, box):
    cluster.restart_proxy(1)
    user = cluster.client(USER)
    with running(user, "mine", image=cluster.image) as mine:
        port = tcp(cluster, mine, "mine", user)
        with connect(port) as end:
            assert greets(end)
            path = f"/aliquot/v1/keypairs/{USER[0]}"
            assert cluster.client().send("PATCH", path, {"is_active": False}).status in (200, 204)
            try:
                assert end.recv(1) == b""
                wait_for(lambda: not accepts(port), 60, "the port's end")
            finally:
                cluster.client().send("PATCH", path, {"is_active": True})
        assert user.send("DELETE", "/session/mine").status == 200


def test_programs_that_are_killed_or_end(cluster, box):
    """A manager that is away takes no port; a proxy that ends closes them."""
    cluster.restart_proxy(1)
    port = tcp(cluster, box, "apps")
    cluster.programs["manager"].kill()
    wait_for(lambda: cluster.ask("GET", "/health")[0] == 503, 60, "the manager's end")
    assert not is_let_in(port)
    cluster.start_manager()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    wait_for(cluster.is_proxied, 60, "the proxy")
    assert is_let_in(port)
    with connect(port) as end:
        assert greets(end)
        cluster.programs["proxy"].signal(15)
        wait_for(lambda: not accepts(port), 30, "the port's end")
        assert says_back(end, b"still")
    assert cluster.programs["proxy"].process.wait(60) == 0
    cluster.restart_proxy()
    assert is_let_in(tcp(cluster, box, "apps"))


def test_without_ports(cluster, box):
    """TCP is refused by name, and a page has its path. What is set to nothing is not set."""
    cluster.programs["proxy"].kill()
    cluster.start_proxy(ALIQUOT_PROXY_PORTS="", ALIQUOT_PROXY_DOMAIN="", ALIQUOT_PROXY_PUBLIC_URL="")
    assert cluster.cookie("apps", "web")
    status, _, body = cluster.ask("GET", setup_of(cluster, box, "apps", "echo", "protocol=tcp"))
    assert status == 404 and b"[proxy] ports" in body
    status, headers, _ = cluster.ask("GET", setup_of(cluster, box, "apps", "web", "port=10250"))
    assert (status, headers["Location"]) == (302, f"/app/{box}/web/")
    for bad in ("x", "1", "2-1", "0-5", "1-70000", "1-2-3", f"{cluster.port}-{cluster.port}"):
        done = cluster.run("aliquot-proxy", "--state", cluster.folder / "proxy", "--listen",
                           f"127.0.0.1:{cluster.port}", ALIQUOT_PROXY_PORTS=bad)
        assert done.returncode == 1 and "no range of ports" in done.stderr, (bad, done.stderr)
