# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, in session mode: it logs in at the web server."""

import pytest

import real_client
from client import ADMIN, USER
from runtimes import settings_of
from web import USER_EMAIL, USER_PASSWORD, Webbed

FIRST, SECOND = "first-Password-1", "second-Password-2"
VERSIONS = ("22.3.2", "23.9.10", "26.9.6")


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    """Manager, agent and web server."""
    with Webbed(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host") as made:
        made.start_manager()
        made.start_agent()
        made.start_web()
        yield made
        made.check_nothing_left()
        made.stop()


@pytest.fixture(name="user")
def user_fixture(cluster, server):
    client = real_client.RealClient(server, ("127.0.0.1", cluster.web_port), USER)
    client.env = {"BACKEND_ENDPOINT_TYPE": "session", "BACKEND_ENDPOINT": cluster.origin}
    return client


def logins(cluster):
    """Keys of the user's logins."""
    return [row["access_key"] for row in cluster.client(USER).get("/aliquot/v1/logins").json["items"]]


@pytest.mark.backendai("login", "logout", "ps", "run", "session create", "session destroy")
def test_a_session_with_a_login(cluster, user, version):
    """Requests, and the WebSocket by which code runs."""
    assert user.run("ps").returncode != 0
    user.says("login", answer=f"{USER_EMAIL}\n{USER_PASSWORD}\n")
    assert logins(cluster) == [USER[0]]
    name = "web-" + version[:2]
    user.does("session", "create", "-t", name, "-r", "cpu=1", "-r", "mem=256m", "host")
    assert name in user.does("ps")
    user.does("session", "destroy", name)
    shown = user.does("run", "-t", name + "-code", "--rm", "-r", "cpu=1", "-r", "mem=256m", "-c",
                      "print('sum', 40 + 2)", "host")
    assert "sum 42" in shown
    user.says("logout")
    assert user.run("ps").returncode != 0
    assert logins(cluster) == []


def test_a_wrong_password(user):
    done = user.run("login", answer=f"{USER_EMAIL}\nwrong\n")
    assert done.returncode == 1 and "Login failed" in done.stdout + done.stderr, done


@pytest.mark.backendai("update-password")
def test_a_new_password(cluster, user):
    user.says("login", answer=f"{USER_EMAIL}\n{USER_PASSWORD}\n")
    user.says("update-password", USER_PASSWORD, SECOND, SECOND)
    assert logins(cluster) == []  # it ends them
    user.says("login", answer=f"{USER_EMAIL}\n{SECOND}\n")
    assert logins(cluster) == [USER[0]]
    assert cluster.client(ADMIN).send("PATCH", f"/aliquot/v1/users/{USER_EMAIL}",
                                      {"password": USER_PASSWORD}).status in (200, 204)


@pytest.mark.backendai("update-password-no-auth", versions=("26.9.6",))
def test_a_password_that_has_expired(cluster, user, version):
    """Older clients ask the manager itself."""
    if version != "26.9.6":
        return
    email, admin = "late@example.org", cluster.client(ADMIN)
    assert admin.post("/aliquot/v1/users", {"email": email, "domain": "default", "password": FIRST,
                                            "need_password_change": True}).status == 201
    assert admin.post("/aliquot/v1/keypairs", {"user": email}).status == 201
    assert "password" in user.fails("login", answer=f"{email}\n{FIRST}\n")
    user.says("update-password-no-auth", "default", email, FIRST, SECOND)
    user.says("login", answer=f"{email}\n{SECOND}\n")
    user.says("logout")
