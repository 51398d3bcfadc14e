# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, from 22.03 to 26.9: the configuration tree, dotfiles,
reports of errors and of usage.
"""

import json

import pytest

import real_client
from client import ADMIN, USER

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")
OLD = VERSIONS[:2]


def get(bai, *words):
    """The JSON at the end, after the line that the client is older than the manager."""
    text = bai.says("admin", "etcd", "get", *words).rstrip()
    begin = "{" if text.endswith("}") else '"' if text.endswith('"') else "null"
    return json.loads(text[text.index(begin):])


@pytest.mark.backendai("admin etcd get", "admin etcd set", "admin etcd delete")
def test_etcd(cluster, bai):
    assert get(bai, "config/redis/addr") is None
    for key, value in (("config/redis/addr", "127.0.0.1:6379"), ("config/redis", "own"),
                       ("config/redis2", "other"), ("config/limit", "3"),
                       ("config/tree", '{"a": {"": "1", "b": true}, "c/d": "2"}')):
        assert "Successfully set" in bai.says("admin", "etcd", "set", key, value)
    assert get(bai, "config/redis/addr") == "127.0.0.1:6379"
    assert get(bai, "config/limit") == "3"
    assert get(bai, "-p", "config/redis") == {"": "own", "addr": "127.0.0.1:6379"}
    assert get(bai, "-p", "config/tree") == {"a": {"": "1", "b": "true"}, "c": {"d": "2"}}
    bai.says("admin", "etcd", "set", "manager/announcement", "Tonight")
    assert cluster.client(ADMIN).get("/manager/announcement").json["message"] == "Tonight"
    assert "frozen" in bai.fails("admin", "etcd", "set", "manager/status", "odd")
    assert "Successfully deleted" in bai.says("admin", "etcd", "delete", "config/limit")
    bai.says("admin", "etcd", "delete", "-p", "config/redis")
    assert get(bai, "config/redis2") == "other" and get(bai, "config/redis/addr") is None
    bai.says("admin", "etcd", "delete", "-p", "")
    assert cluster.client(ADMIN).post("/config/get", {"key": "", "prefix": True}).json == {
        "result": {}}


def test_others_are_refused(cluster, server):
    user = real_client.RealClient(server, cluster.address, USER)
    for words in (("get", "a"), ("set", "a", "b"), ("delete", "a")):
        assert "401" in user.fails("admin", "etcd", *words)


@pytest.mark.backendai("dotfile create", "dotfile list", "dotfile get", "dotfile update",
                       "dotfile delete")
@pytest.mark.parametrize("owner", ((), ("-d", "default"), ("-d", "default", "-g", "default")),
                         ids=("mine", "domain", "project"))
def test_dotfiles(bai, owner):
    path = ".config/tool"
    made = bai.says("dotfile", "create", path, "--perm", "644", *owner, answer="colour = red\n")
    assert f"Dotfile {path} created" in made
    assert "already" in bai.fails("dotfile", "create", path, *owner, answer="other\n")
    listed = bai.does("dotfile", "list", *owner)
    assert all(text in listed for text in (path, "colour = red", "644"))
    assert bai.does("dotfile", "get", path, *owner).split()[-3:] == ["colour", "=", "red"]
    assert "updated" in bai.says("dotfile", "update", path, *owner, answer="dark = yes\n")
    assert bai.does("dotfile", "get", path, *owner).split()[-3:] == ["dark", "=", "yes"]
    assert "deleted" in bai.says("dotfile", "delete", path, *owner, answer="y\n")
    assert "no dotfile" in bai.fails("dotfile", "get", path, *owner)
    assert "There is no dotfiles" in bai.does("dotfile", "list", *owner)


@pytest.mark.backendai("server-logs list")
def test_server_logs(cluster, bai, version):
    for number in range(2):
        assert cluster.client(ADMIN).post("/logs/error", {
            "severity": "error", "source": "cli", "message": f"{version} broke {number}",
            "context_lang": "py", "context_env": {}, "request_url": "http://there",
            "request_status": 502, "traceback": "line 7"}).json == {"success": True}
    newest, older = bai.does("server-logs", "list", "-l", "2").split("----\n")[1:]
    assert f"{version} broke 1" in newest and f"{version} broke 0" in older
    assert all(text in newest for text in ("ERROR cli", "502 http://there", "line 7"))
    second = bai.does("server-logs", "list", "--mark-read", "-l", "1", "-n", "2")
    assert f"{version} broke 0" in second and "broke 1" not in second
    logs = cluster.client(ADMIN).get("/logs/error").json["logs"]
    assert [log["is_read"] for log in logs[:2]] == [False, True]


@pytest.mark.backendai("admin resource vfolder-types", "admin resource recalculate-usage")
@pytest.mark.backendai("admin resource docker-registries", versions=("22.3.2", "23.9.10"))
def test_resources(cluster, bai, version):
    assert "user" in bai.does("admin", "resource", "vfolder-types").split()
    assert "re-calculated" in bai.does("admin", "resource", "recalculate-usage")
    if version in OLD:
        cluster.client(ADMIN).post("/config/set", {"key": "config/docker/registry/hub",
                                                   "value": "https://hub.example"})
        assert "hub" in bai.does("admin", "resource", "docker-registries")
        cluster.client(ADMIN).post("/config/delete", {"key": "config/docker", "prefix": True})


def test_agents_that_are_not_there(bai):
    for word in ("status", "agent-start", "agent-stop", "agent-restart"):
        assert "there is no agent 'none'" in bai.fails("admin", "watcher", word, "none")
