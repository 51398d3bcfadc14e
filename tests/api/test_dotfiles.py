# SPDX-License-Identifier: Apache-2.0
"""/user-config, /group-config, /domain-config: dotfiles and bootstrap scripts are kept."""

import pytest

from client import USER, Client
from cluster import batch, interactive, wait_status

FILE = {"path": ".bashrc", "permission": "644", "data": "export A=1\n"}
SCOPES = [("user", {}), ("group", {"group": "default"}), ("domain", {"domain": "default"})]


def query(**params):
    return "?" + "&".join(f"{key}={value}" for key, value in params.items()) if params else ""


@pytest.fixture(params=SCOPES, ids=[scope for scope, _ in SCOPES], name="place")
def place_fixture(request, user, admin):
    """A path, its parameters, and who may change what is there; empty afterwards."""
    scope, owner = request.param
    path, client = f"/{scope}-config/dotfiles", user if scope == "user" else admin
    yield path, owner, client
    for one in client.get(path + query(**owner)).json:
        assert client.delete(path + query(path=one["path"], **owner)).json == {"success": True}


def test_the_life_of_a_dotfile(place, user):
    path, owner, client = place
    assert client.post(path, {**FILE, **owner}).json == {}
    assert user.get(path + query(**owner)).json == [
        {"path": ".bashrc", "permission": "644", "data": FILE["data"]}]
    one = path + query(path=".bashrc", **owner)
    assert user.get(one).json == {"path": ".bashrc", "perm": "644", "data": FILE["data"]}
    again = client.post(path, {**FILE, **owner})
    assert (again.status, again.slug) == (400, "generic-bad-request"), again
    changed = {**FILE, **owner, "data": "é", "permission": "600"}
    assert client.send("PATCH", path, changed).json == {}
    assert user.get(one).json == {"path": ".bashrc", "perm": "600", "data": "é"}
    assert client.delete(one).json == {"success": True}
    for gone in (client.get(one), client.delete(one), client.send("PATCH", path, changed)):
        assert (gone.status, gone.json["title"]) == (404, "No such dotfile.")


@pytest.mark.parametrize("field, value", [
    ("path", "/etc/passwd"), ("path", "../x"), ("path", "a/../b"), ("path", "a//b"),
    ("path", "a/"), ("path", "."), ("path", ".ssh"), ("path", ".ssh/authorized_keys"),
    ("path", "a\nb"), ("path", "x" * 256), ("permission", "888"), ("permission", "0644"),
    ("permission", "rw-"), ("data", "x" * 65537), ("data", None)])
def test_bad_dotfiles(place, field, value):
    path, owner, client = place
    reply = client.post(path, {**FILE, **owner, field: value})
    assert (reply.slug, list(reply.json["data"])) == ("invalid-api-params", [field]), reply


def test_their_room_is_small(place):
    path, owner, client = place
    assert client.post(path, {**FILE, **owner, "data": "é" * 16000}).status == 200
    large = {**FILE, **owner, "path": ".vimrc", "data": "x" * 33537}
    assert "33536 are left" in client.post(path, large).json["msg"]
    assert client.post(path, {**large, "data": "x" * 33536}).status == 200
    assert client.send("PATCH", path, {**FILE, **owner, "data": "y" * 32000}).status == 200
    assert client.send("PATCH", path, {**FILE, **owner, "data": "y" * 32001}).status == 400


def test_their_number_is_small(place):
    path, owner, client = place
    for n in range(100):
        assert client.post(path, {**FILE, **owner, "path": f".f{n}"}).status == 200
    assert "100 dotfiles already" in client.post(path, {**FILE, **owner}).json["msg"]


def test_who_may(user, domain_admin, admin):
    admin.post("/aliquot/v1/domains", {"name": "dots-other"})
    admin.post("/aliquot/v1/users", {"email": "dots@lablup.com", "domain": "dots-other"})
    key = admin.post("/aliquot/v1/keypairs", {"user": "dots@lablup.com"}).json
    stranger = Client(admin.address, (key["access_key"], key["secret_key"]))
    for path, owner in (("/group-config/dotfiles", {"group": "default", "domain": "default"}),
                        ("/domain-config/dotfiles", {"domain": "default"})):
        assert user.post(path, {**FILE, **owner}).status == 401
        assert domain_admin.post(path, {**FILE, **owner}).status == 200
        assert stranger.get(path + query(**owner)).status == 404
        assert domain_admin.delete(path + query(path=".bashrc", **owner)).status == 200
    assert domain_admin.post("/domain-config/dotfiles",
                             {**FILE, "domain": "dots-other"}).status == 404
    path, owner = "/user-config/dotfiles", {"owner_access_key": USER[0]}
    assert stranger.get(path + query(**owner)).status == 403
    assert domain_admin.post(path, {**FILE, **owner}).status == 200
    assert [one["path"] for one in user.get(path).json] == [".bashrc"]
    assert domain_admin.get(path).json == []
    misspelt = path + query(onwer_access_key=USER[0])  # as 22.03 lists them
    assert len(domain_admin.get(misspelt).json) == 1
    assert user.delete(path + "?path=.bashrc").status == 200
    assert user.get("/group-config/dotfiles?group=nobody").status == 404
    assert user.get("/domain-config/dotfiles?domain=nobody").status == 404


def test_bootstrap_script(user, domain_admin):
    path = "/user-config/bootstrap-script"
    assert user.get(path).json == ""
    assert user.post(path, {"script": "echo é"}).json == {}
    assert user.get(path).json == "echo é" and domain_admin.get(path).json == ""
    assert list(user.post(path, {"script": "x" * 65537}).json["data"]) == ["script"]
    assert user.get("/user-config/dotfiles").json == []
    assert user.post(path, {"script": ""}).json == {} and user.get(path).json == ""


def test_they_go_with_their_keypair(admin):
    key = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com"}).json
    theirs = Client(admin.address, (key["access_key"], key["secret_key"]))
    assert theirs.post("/user-config/dotfiles", FILE).status == 200
    assert theirs.post("/user-config/bootstrap-script", {"script": "true"}).status == 200
    assert admin.delete("/aliquot/v1/keypairs/" + key["access_key"]).status == 204
    assert theirs.get("/user-config/dotfiles").status == 401


def test_of_a_process(user, admin, cluster, name):
    """In its home directory, by permission; of several of one path the nearest counts."""
    files = (("domain", ".tool/deep", "domain\n", "644", {"domain": "default"}),
             ("group", ".tool/deep", "project\n", "640", {"group": "default"}),
             ("user", ".secret", "é\n", "600", {}))
    for scope, path, data, permission, owner in files:
        made = (user if scope == "user" else admin).post(f"/{scope}-config/dotfiles", {
            "path": path, "permission": permission, "data": data, **owner})
        assert made.status == 200, made
    try:
        command = 'cd; stat -c "%a %u %n" .tool/deep .secret; id -u; cat .tool/deep .secret'
        made = user.post("/session", batch(name, command, image="process"))
        wait_status(user, made.json["sessionId"], "TERMINATED")
        log = user.get(f"/aliquot/v1/sessions/{made.json['sessionId']}/logs").body.decode().splitlines()
        assert log == [f"640 {log[2]} .tool/deep", f"600 {log[2]} .secret", log[2], "project", "é"], log
    finally:
        for scope, path, _, _, owner in files:
            client = user if scope == "user" else admin
            client.delete(f"/{scope}-config/dotfiles" + query(path=path, **owner))


def test_of_a_process_that_left_links(user, cluster, name, tmp_path):
    """It starts again, and what its links lead to is not touched."""
    (tmp_path / "file").write_text("untouched")
    assert user.post("/user-config/dotfiles", {"path": ".a/b", "permission": "644", "data": "x"}).status == 200
    try:
        made = user.post("/session", interactive(name, image="process", bootstrap_script=(
            f"cat .a/b >> seen; rm -rf .a; ln -s {tmp_path} .a")))
        session = made.json["sessionId"]
        wait_status(user, session, "RUNNING")
        assert user.send("PATCH", f"/session/{name}").status == 204
        shown = wait_status(user, session, "ERROR", "TERMINATED")
        assert "dotfile '.a/b'" in str(user.get(f"/aliquot/v1/sessions/{session}").json), shown
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
    finally:
        user.delete("/user-config/dotfiles?path=.a/b")
