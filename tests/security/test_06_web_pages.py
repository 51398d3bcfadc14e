# SPDX-License-Identifier: Apache-2.0
"""A web page in somebody's browser cannot use their manager, least of all one with published keys."""

import http.client
import json

import pytest

from client import ADMIN, Client
from cluster import Cluster, wait_for

pytestmark = pytest.mark.gate

PAGE = "https://evil.example"
CONSOLE = "https://console.example.org"


@pytest.fixture(scope="module")
def dev():
    with Cluster() as cluster:
        cluster.start_manager(ALIQUOT_API_ALLOW_ORIGINS=CONSOLE)
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def served():
    """As it is served for a team: no --dev."""
    with Cluster() as cluster:
        cluster.start_manager(dev=False, ALIQUOT_API_ALLOW_ORIGINS=CONSOLE)
        yield cluster
        cluster.stop()


def ask(cluster, method="GET", path="/aliquot/v1/sessions", host=None, **more):
    """With the keys that everybody knows, signed for the host that is named."""
    client = Client(cluster.address, ADMIN)
    client.host = host or client.host
    sent = {"Host": client.host, **client.headers(method, path, "text/plain"),
            **{name.replace("_", "-"): value for name, value in more.items()}}
    connection = http.client.HTTPConnection(*cluster.address, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        response.text = response.read().decode()
        return response
    finally:
        connection.close()


def allowed(response):
    return response.headers["Access-Control-Allow-Origin"]


# ---- with --dev ----

@pytest.mark.parametrize("origin", [PAGE, "null", "http://localhost:3000", "http://127.0.0.1",
                                    CONSOLE, "http://localhost.evil.example"])
def test_other_origins_are_refused(dev, origin):
    for method in ("GET", "OPTIONS"):
        response = ask(dev, method, Origin=origin, Access_Control_Request_Method="POST")
        assert response.status == 403 and not allowed(response), (method, response.text)
    response = ask(dev, path="/nowhere", Origin=origin)
    assert response.status == 403, "whether there is something or not"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8081", "127.0.0.1.evil.example",
                                  "localhost.evil.example", "192.168.1.5:8081", "0.0.0.0:8081",
                                  "[::2]:8081"])
def test_names_that_may_be_rebound_are_refused(dev, host):
    """A page of evil.example whose name then leads to 127.0.0.1 is of the same origin."""
    assert ask(dev, host=host).status == 403
    assert ask(dev, host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin").status == 403


def test_what_another_site_makes_the_browser_ask_for_is_refused(dev):
    """Without an Origin: links, images, forms."""
    assert ask(dev, Sec_Fetch_Site="cross-site").status == 403
    assert ask(dev, "POST", "/auth/authorize", Sec_Fetch_Site="cross-site").status == 403


def test_websockets_of_other_pages_are_refused(dev):
    """Browsers ask no leave for these."""
    response = ask(dev, path="/stream/session/x/pty", Origin=PAGE, Connection="Upgrade",
                   Upgrade="websocket", Sec_WebSocket_Version="13",
                   Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==")
    assert response.status == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:{port}", "127.0.0.1:{port}", "127.1.2.3",
                                  "[::1]:{port}"])
def test_programs_of_this_machine_are_served(dev, host):
    response = ask(dev, host=host.format(port=dev.address[1]))
    assert response.status == 200 and not allowed(response), response.text


def test_the_managers_own_pages_are_served(dev):
    own = "http://%s:%d" % dev.address
    assert ask(dev, Origin=own, Sec_Fetch_Site="same-origin").status == 200
    assert ask(dev, Sec_Fetch_Site="none").status == 200, "typed by the user"


# ---- without ----

def test_only_listed_origins_may_read(served):
    for path in ("/", "/nowhere", "/aliquot/v1/health"):
        response = ask(served, path=path, Origin=CONSOLE)
        assert allowed(response) == CONSOLE and response.headers["Vary"] == "Origin"
        for origin in (PAGE, "null", CONSOLE + ".evil.example", "http://console.example.org"):
            assert not allowed(ask(served, path=path, Origin=origin)), (path, origin)


def test_only_listed_origins_may_send(served):
    asked = {"Access_Control_Request_Method": "POST",
             "Access_Control_Request_Headers": "authorization"}
    response = ask(served, "OPTIONS", "/session", Origin=CONSOLE, **asked)
    assert response.status == 200 and allowed(response) == CONSOLE
    assert response.headers["Access-Control-Allow-Headers"] == "authorization"
    assert not allowed(ask(served, "OPTIONS", "/session", Origin=PAGE, **asked))


def test_programs_are_not_concerned(served):
    """They have no Origin; names of all kinds lead to a manager."""
    response = ask(served, path="/aliquot/v1/health", host="manager.example.com")
    assert response.status == 200 and not allowed(response)


def test_no_page_is_listed_at_first():
    with Cluster() as cluster:
        cluster.start_manager(dev=False)
        assert not allowed(ask(cluster, path="/", Origin=PAGE))
        cluster.stop()


def test_the_configuration_tree_says_it_in_place_of_the_file():
    key = "config/api/allow-origins"
    with Cluster() as cluster:
        done = cluster.run("aliquot-manager", "--state", cluster.folder / "manager", "--json",
                           "init")
        made = json.loads(done.stdout)
        admin = (made["access_key"], made["secret_key"])
        cluster.start_manager(dev=False, ALIQUOT_API_ALLOW_ORIGINS=CONSOLE)
        client = cluster.client(admin)

        def who():
            return [page for page in (PAGE, CONSOLE) if allowed(ask(cluster, path="/", Origin=page))]

        for value, pages in (("https://x.example, " + PAGE, [PAGE]), ("*", [PAGE, CONSOLE]),
                             ("", [])):
            assert client.post("/config/set", {"key": key, "value": value}).status == 200
            assert who() == pages
        assert client.post("/config/set", {"key": key, "value": PAGE}).status == 200
        cluster.programs["manager"].kill()
        cluster.programs["manager"].start()
        wait_for(cluster.is_serving, 30, "the manager")
        assert who() == [PAGE]
        assert client.post("/config/delete", {"key": key}).status == 200
        assert who() == [CONSOLE]
        cluster.stop()
