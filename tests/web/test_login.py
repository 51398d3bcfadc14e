# SPDX-License-Identifier: Apache-2.0
"""People log in with e-mail and password: cookies, logins that last, and what ends them."""

import hashlib
import os
import re

import pytest

from client import ADMIN, USER
from cluster import wait_for
from web import COOKIE, EMAIL, PASSWORD, USER_EMAIL, USER_PASSWORD, Webbed, hide

ACTIVE = {"role": "superadmin", "status": "active"}


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Webbed() as made:
        made.start_manager(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1")
        made.start_web(ALIQUOT_WEB_TRUSTED_PROXIES="127.0.0.1")
        yield made
        made.stop()


@pytest.fixture(name="browser")
def browser_fixture(cluster):
    return cluster.browser()


@pytest.mark.gate
def test_somebody_logs_in_and_out(cluster, browser):
    assert browser.check().json == {"authenticated": False, "data": None, "session_id": ""}
    answer = browser.login()
    assert answer.status == 200, answer
    assert answer.json == {"authenticated": True, "data": {"access_key": ADMIN[0], **ACTIVE}}
    line = answer.headers.get_all("Set-Cookie")[0]
    assert re.fullmatch(rf"{COOKIE}=[\w-]{{43}}; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict",
                        line)
    assert ADMIN[1] not in str(answer.headers) + answer.body.decode()
    checked = browser.check().json
    assert checked["authenticated"] and checked["data"] == answer.json["data"]
    assert checked["session_id"] not in ("", browser.cookies[COOKIE])
    assert browser.get("/auth?echo=hello").json == {"authorized": "yes", "echo": "hello"}
    stolen = dict(browser.cookies)
    assert browser.ask("POST", "/server/logout", {}).status == 200
    assert COOKIE not in browser.cookies
    browser.cookies = stolen
    assert not browser.is_in()
    assert browser.get("/auth?echo=hello").status == 401


def test_wrong_password_is_an_answer(browser):
    answer = browser.login(USER_EMAIL, "wrong")
    assert answer.status == 200, answer
    assert answer.json["authenticated"] is False
    assert answer.json["data"]["type"].endswith("/auth-failed")
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("body", [{"username": "", "password": ""}, {}, {"username": EMAIL}])
def test_empty_login_is_no_failure(browser, body):
    answer = browser.ask("POST", "/server/login", body)
    assert (answer.status, answer.slug) == (400, "invalid-api-params")


def test_nul_in_a_password_is_refused(browser):
    """It would end the password there."""
    answer = browser.login(EMAIL, PASSWORD + "\0other")
    assert (answer.status, answer.slug) == (400, "invalid-api-params"), answer
    assert "NUL" in answer.json["msg"] and PASSWORD not in str(answer), answer


def test_a_browser_with_an_odd_name(browser):
    """User-Agent may have any bytes; which a login is told apart by must be text."""
    for name in ("odd \xff\xfe", "\u00e9".encode().decode("latin-1") * 200):
        answer = browser.ask("POST", "/server/login", {"username": EMAIL, "password": PASSWORD},
                             User_Agent=name)
        assert answer.status == 200 and answer.json["authenticated"], answer


def test_hidden_body(cluster, browser):
    body = hide(cluster.origin, {"username": EMAIL, "password": PASSWORD})
    answer = browser.ask("POST", "/server/login", body, X_BackendAI_Encoded="true",
                         Content_Type="application/json")
    assert answer.json["authenticated"], answer
    for broken in (body[:-4] + "AAAA", body[:17], "x" + body[1:], "", "A" * 20, body + "!"):
        answer = browser.ask("POST", "/server/login", broken, X_BackendAI_Encoded="true")
        assert answer.status == 400, answer
        assert answer.slug in ("generic-bad-request", "invalid-api-params")


def test_a_login_outlives_restarts(cluster, browser):
    browser.login()
    cookie = browser.cookies[COOKIE]
    for name in ("web", "manager"):
        cluster.programs[name].kill()
        cluster.programs[name].start()
        wait_for(lambda: browser.ask("GET", "/health").status == 200
                 if cluster.is_webbed({}) else False, 60, "the web server to be connected")
        assert browser.is_in()
        wait_for(lambda: browser.get("/auth?echo=x").status == 200, 30, "the manager to answer")
    assert browser.cookies[COOKIE] == cookie
    for name in ("web", "manager"):
        assert cookie not in cluster.log_of(name) and ADMIN[1] not in cluster.log_of(name)
    if "ALIQUOT_TEST_POSTGRES" in os.environ:
        return
    stored = b"".join(path.read_bytes() for path in (cluster.folder / "manager").glob("aliquot.db*"))
    assert cookie.encode() not in stored
    assert hashlib.sha256(cookie.encode()).digest() in stored


def test_manager_away(cluster, browser):
    browser.login()
    cluster.programs["manager"].kill()
    try:
        wait_for(lambda: browser.ask("GET", "/health").status == 503, 30, "the web server to notice")
        for answer in (browser.get("/auth?echo=x"), browser.check(), browser.login()):
            assert (answer.status, answer.slug) == (502, "bad-gateway"), answer
            assert answer.headers["Retry-After"] == "1"
        assert browser.ask("GET", "/livez").status == 200
        assert browser.ask("GET", "/readyz").status == 503
    finally:
        cluster.programs["manager"].start()
        wait_for(lambda: cluster.is_webbed({}), 60, "the manager")
    assert browser.is_in()


# ---- what ends a login ----

def make_user(cluster, name, **more):
    admin = cluster.client()
    made = admin.post("/aliquot/v1/users", {"email": f"{name}@example.org", "username": name,
                                            "password": "first-Password-1", "domain": "default",
                                            **more})
    assert made.status == 201, made
    return made.json


def make_person(cluster, name, **more):
    """A user who has logged in with two browsers."""
    user = make_user(cluster, name, **more)
    keys = cluster.client().get("/aliquot/v1/keypairs?limit=1000").json["items"]
    if not [key for key in keys if key["user_id"] == user["id"]]:
        assert cluster.client().post("/aliquot/v1/keypairs",
                                     {"user": user["id"]}).status == 201
    browsers = [cluster.browser(), cluster.browser()]
    for browser in browsers:
        answer = browser.login(f"{name}@example.org", "first-Password-1")
        assert answer.json["authenticated"], answer
    return user, browsers


@pytest.fixture(name="person")
def person_fixture(cluster, request):
    return make_person(cluster, re.sub(r"\W", "-", request.node.name)[:30])


def test_a_blocked_user_is_out(cluster, person):
    user, browsers = person
    stream = open_events(browsers[0])
    assert cluster.client().send("PATCH", f"/aliquot/v1/users/{user['id']}",
                                  {"status": "inactive"}).status in (200, 204)
    assert stream.readline_until_end() is True
    assert not any(browser.is_in() for browser in browsers)
    cluster.client().send("PATCH", f"/aliquot/v1/users/{user['id']}", {"status": "active"})
    assert not any(browser.is_in() for browser in browsers)


def test_a_new_password_ends_logins(cluster, person):
    _, browsers = person
    stream = open_events(browsers[0])
    answer = browsers[1].post("/auth/update-password", {
        "old_password": "first-Password-1", "new_password": "second-Password-2",
        "new_password2": "second-Password-2"})
    assert answer.status == 200 and not private(answer), answer
    assert stream.readline_until_end() is True
    assert not any(browser.is_in() for browser in browsers)


def test_people_see_and_end_their_logins(cluster, person):
    _, browsers = person
    listed = browsers[0].get("/aliquot/v1/logins").json
    assert listed["total"] == 2
    own = browsers[0].check().json["session_id"]
    other = next(row["id"] for row in listed["items"] if row["id"] != own)
    assert cluster.client(USER).delete(f"/aliquot/v1/logins/{other}").status == 404
    assert browsers[0].ask("DELETE", f"/func/aliquot/v1/logins/{other}").status == 204
    assert browsers[0].is_in() and not browsers[1].is_in()
    answer = browsers[0].ask("DELETE", f"/func/aliquot/v1/logins/{own}")
    assert answer.status == 204 and not private(answer), answer
    assert not browsers[0].is_in()


def private(answer):
    """Headers that the manager has for web servers."""
    return [name for name in answer.headers if name.lower().startswith("x-aliquot-")]


OWN_ENDS = (
    lambda user, own: ("/admin/gql", {
        "query": "mutation($id: UUID!) { myRevokeLoginSession(sessionId: $id) { success } }",
        "variables": {"id": own}}),
    lambda user, own: ("/auth/signout", {"email": user["email"], "password": "first-Password-1"}),
)


@pytest.mark.parametrize("number", range(len(OWN_ENDS)))
def test_who_ends_the_own_login_is_answered(cluster, number):
    """Though it is gone when the answer comes."""
    user, [browser, _] = make_person(cluster, f"ends-own-{number}")
    answer = browser.post(*OWN_ENDS[number](user, browser.check().json["session_id"]))
    assert answer.status == 200 and not private(answer), answer
    assert not browser.is_in()


def test_an_administrator_who_changes_the_own_account_is_answered(cluster):
    """By a password, or a keypair that is put out of use, as pages for administrators do it."""
    user, [browser, other] = make_person(cluster, "own-admin", role="superadmin")
    for answer in (
            browser.post("/admin/gql", {
                "query": "mutation($email: String!, $props: ModifyUserInput!)"
                         " { modify_user(email: $email, props: $props) { ok msg } }",
                "variables": {"email": user["email"], "props": {"password": "second-Password-2"}}}),
            other.login(user["email"], "second-Password-2"),
            other.ask("PATCH", "/func/aliquot/v1/keypairs/" + other.check().json["data"]["access_key"],
                      {"is_active": False})):
        assert answer.status in (200, 204) and not private(answer), answer
    assert not browser.is_in() and not other.is_in()


class Events:
    """An event stream that is read to its end."""

    def __init__(self, connection, reply):
        self.connection, self.reply = connection, reply

    def readline_until_end(self):
        try:
            while self.reply.readline():
                pass
        except OSError:
            pass
        except Exception as err:  # the chunks end early
            assert "IncompleteRead" in repr(err), err
        self.connection.close()
        return True


def open_events(browser):
    connection = browser.connect()
    connection.request("GET", "/func/events/session?sessionName=*&scope=*", None,
                       browser.headers({"Accept": "text/event-stream"}))
    reply = connection.getresponse()
    assert (reply.status, reply.headers.get_content_type()) == (200, "text/event-stream")
    return Events(connection, reply)


# ---- guessing ----

def guess_until_refused(browser):
    for _ in range(60):
        answer = browser.login(USER_EMAIL, "guess", X_Forwarded_For="192.0.2.2")
        if answer.status == 429:
            return answer
    raise AssertionError(f"nothing keeps it from guessing: {answer}")


def test_guessing_is_limited_but_not_for_who_was_here(cluster):
    owner = cluster.browser()
    assert owner.login(USER_EMAIL, USER_PASSWORD, X_Forwarded_For="192.0.2.1").json["authenticated"]
    owner.ask("POST", "/server/logout", {})
    answer = guess_until_refused(cluster.browser())
    assert answer.slug == "rate-limit-exceeded" and int(answer.headers["Retry-After"]) >= 1
    # from the stranger's own address, which shares nothing with the owner but it
    assert owner.login(USER_EMAIL, USER_PASSWORD, X_Forwarded_For="192.0.2.2").json["authenticated"]
    forged = cluster.browser()
    forged.cookies["aliquot_browser"] = owner.cookies["aliquot_browser"][:-1] + "0"
    guess_until_refused(forged)
    other = cluster.browser()
    other.cookies["aliquot_browser"] = owner.cookies["aliquot_browser"]
    assert other.login("admin@lablup.com", "guess", X_Forwarded_For="192.0.2.2").status == 200


# ---- cookies ----

def test_no_fixation(cluster, browser):
    browser.cookies[COOKIE] = "A" * 43
    assert browser.login().json["authenticated"]
    first = browser.cookies[COOKIE]
    assert first != "A" * 43
    assert browser.login().json["authenticated"]
    old = cluster.browser()
    old.cookies[COOKIE] = first
    assert browser.cookies[COOKIE] != first
    wait_for(lambda: not old.is_in(), 10, "the first login to end")


@pytest.mark.parametrize("value", ["", "x", "A" * 43, "A" * 44, "A" * 5000, "..%2f", "\"", "é"])
def test_strange_cookies(browser, value):
    browser.cookies[COOKIE] = value.encode("utf-8").decode("latin-1")
    assert browser.check().json["authenticated"] is False
    assert browser.get("/auth?echo=x").status == 401
