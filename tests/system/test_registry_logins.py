# SPDX-License-Identifier: Apache-2.0
"""Private images: a registry that wants a login, which the manager keeps and agents use."""

import json
import os
import shutil

import pytest

from client import USER
from cluster import Cluster, wait_for
from images import Layout, Registry, archive, file

pytestmark = pytest.mark.gate

for program in ("skopeo", "docker-registry"):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("unpacking images needs root", allow_module_level=True)

# "aliquot" with the password "secret", as htpasswd -B writes it
USERS = "aliquot:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"
V1 = "/aliquot/v1/registries"


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A cluster and the names of six images of a registry with a login."""
    folder = tmp_path_factory.mktemp("logins")
    registry = Registry(folder / "registry", USERS).start()
    layout = Layout(folder / "layout")
    names = []
    for i in range(6):
        layout.image(str(i), [archive([file(f"x{i}", os.urandom(1000))])])
        layout.push(str(i), registry, f"team/image:{i}", "--dest-creds", "aliquot:secret")
        names.append(f"{registry.address}/team/image:{i}")
    try:
        with Cluster(ALIQUOT_IMAGE_INSECURE=registry.address, ALIQUOT_IMAGE_KEEP_FREE="1",
                     ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
            cluster.start_manager()
            cluster.start_agent("node1")
            cluster.start_agent("node2")
            yield cluster, registry.address, names
    finally:
        registry.stop()


def pull(cluster, image):
    return cluster.cli("image", "pull", image)


def login(cluster, registry, password="secret", user="aliquot"):
    return cluster.cli("admin", "registry", "login", "-u", user, "--password-stdin", registry,
                       says=password + "\n")


def kept_by(cluster, agent):
    path = cluster.folder / agent / "images/logins.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_from_login_to_logout(scene):
    cluster, registry, names = scene
    refused = pull(cluster, names[0])
    assert refused.returncode != 0 and "aliquot admin registry" in refused.stdout + refused.stderr
    wrong = login(cluster, registry, "wrong")
    assert wrong.returncode == 0, wrong.stderr  # nobody has tried it yet
    assert pull(cluster, names[0]).returncode != 0
    done = login(cluster, registry)
    assert done.returncode == 0, done.stderr
    done = pull(cluster, names[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.stat().st_mode & 0o777 for path in cluster.folder.glob("*/images/logins.json")} \
        == {0o600}
    shown = json.loads(cluster.cli("admin", "registry", "ls", "-o", "json").stdout)
    rows = shown["items"] if isinstance(shown, dict) else shown
    assert rows == [{"name": registry, "url": f"https://{registry}", "username": "aliquot",
                     "has_password": True}]
    done = cluster.cli("admin", "registry", "logout", registry)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: kept_by(cluster, "node1") is None and kept_by(cluster, "node2") is None, 30,
             "agents to forget")
    assert pull(cluster, names[1]).returncode != 0
    gone = cluster.cli("admin", "registry", "logout", registry)
    assert gone.returncode != 0 and "no login is kept" in gone.stderr


def test_nothing_shows_the_password(scene):
    cluster, registry, _ = scene
    assert login(cluster, registry, "very-secret-word").returncode == 0
    client = cluster.client()
    tree = client.post("/config/get", {"key": "config/docker/registry", "prefix": True}).json
    assert tree["result"][registry]["password"].startswith("sealed:")
    texts = [json.dumps(tree), json.dumps(client.get(V1).json),
             client.get("/aliquot/v1/audit-log").body.decode(),
             *(path.read_text(errors="replace") for path in cluster.folder.rglob("*.log"))]
    for path in cluster.folder.glob("**/*.db*"):
        texts.append(path.read_bytes().decode(errors="replace"))
    assert len(texts) > 4 and not [text for text in texts if "very-secret-word" in text]
    assert client.delete(f"{V1}/{registry}").status == 204


def test_what_agents_and_managers_remember(scene):
    """The manager after it was killed, an agent that was away, one that is killed."""
    cluster, registry, names = scene
    cluster.programs["node2"].stop()
    assert login(cluster, registry).returncode == 0
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    cluster.start_agent("node2")
    wait_for(lambda: kept_by(cluster, "node2"), 60, "node2 to hear of the login")
    wait_for(lambda: cluster.agent("node1").get("connected")
             and cluster.agent("node2").get("connected"), 60, "the agents")
    done = pull(cluster, names[2])
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.programs["node1"].kill()
    assert kept_by(cluster, "node1")
    assert cluster.client().delete(f"{V1}/{registry}").status == 204
    cluster.programs["node1"].start()
    wait_for(lambda: kept_by(cluster, "node1") is None, 60, "node1 to hear that it is gone")


def test_keys_of_the_configuration_tree(scene):
    """As Backend.AI's administrators write them; a copy of the sealed text is as good."""
    cluster, registry, names = scene
    client = cluster.client()
    key = f"config/docker/registry/{registry}"
    reply = client.post("/config/set", {"key": key, "value": {
        "": f"http://{registry}", "username": "aliquot", "password": "secret"}})
    assert reply.status == 200 and reply.json["kept_without_effect"] == 0, reply
    assert pull(cluster, names[3]).returncode == 0
    tree = client.post("/config/get", {"key": key, "prefix": True}).json["result"]
    assert client.delete(f"{V1}/{registry}").status == 204
    assert client.post("/config/set", {"key": key, "value": tree}).status == 200
    assert pull(cluster, names[4]).returncode == 0
    refused = client.post("/config/set", {"key": key, "value": {
        "username": "other", "password": tree["password"][:-8] + "AAAAAAA="}})
    assert refused.status == 400 and refused.json["data"], refused
    assert client.get(V1).json["items"][0]["username"] == "aliquot"  # all of it or nothing
    assert client.delete(f"{V1}/{registry}").status == 204


@pytest.mark.parametrize("name, body, field", [
    ("nodot", {"username": "u", "password": "p"}, "name"),
    ("a.example%2Fteam", {"username": "u", "password": "p"}, "name"),
    ("a.example:x", {"username": "u", "password": "p"}, "name"),
    ("https:%2F%2Fa.example", {"username": "u", "password": "p"}, "name"),
    ("a.example", {"username": "u:v", "password": "p"}, "username"),
    ("a.example", {"username": "u"}, "password"),
    ("a.example", {"password": "p"}, "username"),
    ("a.example", {"username": "", "password": "p"}, "username"),
    ("a.example", {"username": "u", "password": 7}, "password"),
    ("a.example", {"username": "u", "password": "p" * 2000}, "password"),
    ("a.example", {"username": "u", "password": "p", "type": "harbor"}, "type"),
])
def test_refusals(scene, name, body, field):
    cluster, *_ = scene
    reply = cluster.client().send("PUT", f"{V1}/{name}", body)
    assert reply.status == 400 and field in reply.json["data"], reply
    assert cluster.client().get(V1).json == {"items": [], "total": 0}


def test_docker_hub_has_two_names(scene):
    cluster, *_ = scene
    client = cluster.client()
    body = {"username": "u", "password": "p"}
    assert client.send("PUT", f"{V1}/index.docker.io", body).status == 204
    wait_for(lambda: "docker.io" in (kept_by(cluster, "node1") or {"auths": {}})["auths"], 30,
             "the login")
    for name in [row["name"] for row in client.get(V1).json["items"]]:
        assert client.delete(f"{V1}/{name}").status == 204


def test_only_superadmins(scene):
    cluster, registry, _ = scene
    user = cluster.client(USER)
    for reply in (user.get(V1), user.delete(f"{V1}/{registry}"),
                  user.send("PUT", f"{V1}/{registry}", {"username": "u", "password": "p"})):
        assert reply.status in (401, 403), reply
