# SPDX-License-Identifier: Apache-2.0
"""Paths that clients of other ages ask for, and what is answered where there is nothing."""

from cluster import interactive, wait_status


def test_sessions_are_kernels_to_clients_before_2020(user, name):
    session = user.post("/kernel", interactive(name)).json["sessionId"]
    wait_status(user, name, "RUNNING")
    try:
        shown, now = user.get(f"/kernel/{name}").json, user.get(f"/session/{name}").json
        assert {**shown, "age": 0} == {**now, "age": 0} and shown["status"] == "RUNNING"
        assert user.get(f"/kernel/_/match?id={session[:8]}").json["matches"][0]["id"] == session
        assert user.get(f"/stream/kernel/{name}/apps").json == \
            user.get(f"/stream/session/{name}/apps").json
        assert user.get("/kernel/nobody-has-this").status == 404
        assert user.send("PUT", f"/kernel/{name}").slug == "method-not-allowed"
    finally:
        assert user.delete(f"/kernel/{name}").status == 200
        wait_status(user, session, "TERMINATED")
    for path in ("/kernel/a/b/c", "/kernels", "/Kernel", "/aliquot/v1/kernel"):
        assert user.get(path).slug == "url-not-found", path


def test_the_app_proxy_of_a_resource_group(admin, user, nobody):
    assert user.get("/scaling-groups/default/wsproxy-version").json == {"wsproxy_version": "v1"}
    assert user.get("/scaling-groups/default/wsproxy-version?group=default").status == 200
    missing = user.get("/scaling-groups/nowhere/wsproxy-version")
    assert (missing.status, missing.slug) == (404, "object-not-found")
    assert missing.json["title"] == "No such scaling group."
    assert user.get("/scaling-groups/default/wsproxy-version?group=none").status == 404
    assert nobody.get("/scaling-groups/default/wsproxy-version").status == 401
    assert admin.post("/aliquot/v1/resource-groups", {"name": "not-yours"}).status == 201
    try:
        assert user.get("/scaling-groups/not-yours/wsproxy-version").status == 404
    finally:
        assert admin.delete("/aliquot/v1/resource-groups/not-yours").status == 200


def test_images_are_not_imported(user):
    for reply in (user.get("/image/import"), user.post("/image/import", {"src": "a:1"})):
        assert (reply.status, reply.slug) == (503, "not-implemented")
        assert "by its name" in reply.json["msg"]


def test_a_balancer_asks_for_health(nobody):
    reply = nobody.get("/health")
    assert reply.status == 200 and reply.json["status"] == "healthy"
    assert reply.json["component"] == "manager"


def test_where_the_caller_comes_from(user):
    assert user.gql("{ myClientIp { clientIp } }").json == {
        "data": {"myClientIp": {"clientIp": "127.0.0.1"}}}
