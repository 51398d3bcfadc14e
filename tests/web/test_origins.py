# SPDX-License-Identifier: Apache-2.0
"""Pages of other origins read nothing, change nothing and open nothing."""

import pytest

from web import Answer, WebSocket, Webbed

EVIL = "https://evil.example"
PORTAL = "https://portal.example.org"


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Webbed() as made:
        made.start_manager()
        made.start_web(ALIQUOT_WEB_ALLOWED_ORIGINS=PORTAL)
        yield made
        made.stop()


@pytest.fixture(name="browser")
def browser_fixture(cluster):
    made = cluster.browser()
    assert made.login().json["authenticated"]
    return made


CHANGES = [("POST", "/server/login"), ("POST", "/server/logout"), ("POST", "/server/login-check"),
           ("POST", "/server/extend-login-session"), ("POST", "/server/update-password-no-auth"),
           ("POST", "/func/session"), ("DELETE", "/func/session/x"), ("PATCH", "/func/session/x"),
           ("PUT", "/func/x"), ("POST", "/func/auth/signup")]


@pytest.mark.gate
@pytest.mark.parametrize("headers", [{"Origin": EVIL}, {"Origin": "null"},
                                     {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "cross-site"},
                                     {"Sec-Fetch-Site": "same-site"}, {"Origin": ""}])
def test_others_change_nothing(cluster, browser, headers):
    for method, path in CHANGES:
        answer = browser.ask(method, path, b"{}", Content_Type="text/plain", **headers)
        assert (answer.status, answer.slug) == (403, "generic-forbidden"), (method, path, answer)
        assert "Access-Control-Allow-Origin" not in answer.headers
    answer = browser.socket("/func/stream/session/x/pty", **headers)
    assert isinstance(answer, Answer) and answer.status == 403
    assert browser.is_in()


def test_its_own_page_and_programs_do(cluster, browser):
    for headers in ({}, {"Origin": cluster.origin}, {"Sec-Fetch-Site": "same-origin"},
                    {"Origin": cluster.origin, "Sec-Fetch-Site": "same-origin"},
                    {"Sec-Fetch-Site": "none"}):
        assert browser.ask("POST", "/server/login-check", {}, **headers).json["authenticated"]
    ws = browser.socket("/func/stream/session/nothing/pty", Origin=cluster.origin)
    assert not isinstance(ws, WebSocket) and ws.status == 404


def test_an_allowed_page_may(cluster, browser):
    answer = browser.ask("POST", "/server/login-check", {}, Origin=PORTAL, Sec_Fetch_Site="cross-site")
    assert answer.json["authenticated"]
    assert answer.headers["Access-Control-Allow-Origin"] == PORTAL
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"
    asked = browser.ask("OPTIONS", "/func/session", Origin=PORTAL,
                        Access_Control_Request_Method="DELETE",
                        Access_Control_Request_Headers="x-backendai-version")
    assert (asked.status, asked.headers["Access-Control-Allow-Origin"]) == (204, PORTAL)
    assert "DELETE" in asked.headers["Access-Control-Allow-Methods"]
    asked = browser.ask("OPTIONS", "/func/session", Origin=EVIL, Access_Control_Request_Method="DELETE")
    assert "Access-Control-Allow-Origin" not in asked.headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8090", "127.0.0.1.evil.example", "", "["])
def test_names_that_lead_here_are_not_its_own(browser, host):
    for path in ("/", "/config.toml", "/func/"):
        answer = browser.ask("GET", path, Host=host)
        assert answer.status in (400, 403), answer


def test_https_marks(cluster):
    """Behind a server that speaks https for it."""
    with Webbed() as made:
        made.start_manager()
        made.start_web(ALIQUOT_WEB_PUBLIC_URL="https://gpu.example.org")
        browser = made.browser(origin="https://gpu.example.org")
        answer = browser.login()
        assert answer.json["authenticated"], answer
        lines = answer.headers.get_all("Set-Cookie")
        assert all(line.startswith("__Host-") and line.endswith("; Secure") for line in lines)
        assert answer.headers["Strict-Transport-Security"]
        assert browser.is_in()
        plain = made.browser()
        plain.cookies["AIOHTTP_SESSION"] = browser.cookies["__Host-AIOHTTP_SESSION"]
        assert not plain.is_in()
        assert 'apiEndpoint = "https://gpu.example.org"' in browser.ask("GET", "/config.toml").body.decode()
        made.stop()
