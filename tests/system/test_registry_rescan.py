# SPDX-License-Identifier: Apache-2.0
"""A registry's images are listed after a rescan: real registry, and one that lies."""

import base64
import contextlib
import json
import os
import shutil
import threading

import pytest

from client import USER, sse_events
from cluster import Cluster, wait_for
from images import Layout, Registry, archive, file, sha256
from lying_registry import KEY, body, configure, liar, names, rescan

for program in ("skopeo", "docker-registry"):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed", allow_module_level=True)

# "aliquot" with the password "secret", as htpasswd -B writes it
USERS = "aliquot:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"
MUTATION = "mutation($r: String) { rescan_images(registry: $r) { ok msg task_id } }"


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """One with a login, with three repositories, 120 tags and an image for two architectures."""
    folder = tmp_path_factory.mktemp("rescan")
    registry = Registry(folder / "registry", USERS).start()
    layout = Layout(folder / "layout")
    layer = archive([file("x", os.urandom(1000))])
    arm = layout.image("arm", [layer], architecture="arm64", Labels={"a": "1"})
    amd = layout.image("amd", [layer], Labels={"ai.backend.role": "COMPUTE", "é": "ü"})
    layout.index("both", (arm, "arm64"), (amd, "amd64"))
    options = ("--dest-creds", "aliquot:secret")
    try:
        for i in range(12):
            layout.push("amd", registry, f"team/image:v{i}", *options)
        layout.push("both", registry, "team/both:1", "--all", *options)
        layout.push("arm", registry, "other/image:1", *options)
        yield registry
    finally:
        registry.stop()


@pytest.fixture(autouse=True)
def empty(cluster):
    yield
    cluster.client().post("/config/delete", {"key": KEY, "prefix": True})


@pytest.mark.gate
def test_what_is_found(cluster, registry):
    at = registry.address
    configure(cluster, at, username="aliquot", password="secret")
    assert names(cluster) == []
    code, said = rescan(cluster, at)
    assert code == 0 and "2 images" in said, said
    wanted = sorted([f"{at}/other/image:1", *(f"{at}/team/image:v{i}" for i in range(12)),
                     f"{at}/team/both:1", f"{at}/team/both:1"])
    assert names(cluster) == wanted
    rows = cluster.client().gql(
        "{ images { name registry tag architecture digest size_bytes installed"
        " labels { key value } } }").json["data"]["images"]
    both = {row["architecture"]: row for row in rows if row["name"] == "team/both"}
    assert set(both) == {"x86_64", "aarch64"} and not any(row["installed"] for row in rows)
    assert {"key": "é", "value": "ü"} in both["x86_64"]["labels"]
    assert all(row["size_bytes"] > 0 and row["registry"] == at for row in rows)
    # they stay over a restart, and go with the registry
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")
    assert names(cluster) == wanted
    assert cluster.client().delete(f"/aliquot/v1/registries/{at}").status == 204
    assert names(cluster) == []


@pytest.mark.gate
def test_projects(cluster, registry):
    configure(cluster, registry.address, username="aliquot", password="secret", project="other, none")
    assert rescan(cluster, registry.address)[0] == 0
    assert names(cluster) == [f"{registry.address}/other/image:1"]


def test_failures_change_nothing(cluster, registry):
    at = registry.address
    configure(cluster, at, username="aliquot", password="secret")
    assert rescan(cluster, at)[0] == 0
    before = names(cluster)
    configure(cluster, at, username="aliquot", password="wrong-word")
    code, said = rescan(cluster, at)
    assert code != 0 and "login" in said and "wrong-word" not in said, said
    assert names(cluster) == before
    code, said = rescan(cluster, "no.such.example")
    assert code != 0 and "no registry" in said, said
    for path in cluster.folder.rglob("*.log"):
        assert "wrong-word" not in path.read_text(errors="replace")


@pytest.mark.gate
def test_graphql(cluster, registry):
    client = cluster.client()

    def end_of(name):
        answer = client.gql(MUTATION, {"r": name}).json["data"]["rescan_images"]
        assert answer["ok"], answer
        sock, stream, _ = client.stream("/events/background-task?task_id=" + answer["task_id"])
        with contextlib.closing(sock):
            event, data = list(sse_events(stream))[-2]
        assert event == "bgtask_done", (event, data)
        return data["message"]
    assert end_of(None) == "there are no registries"
    configure(cluster, registry.address, username="aliquot", password="secret")
    assert "images are listed" in end_of(registry.address)
    refused = cluster.client(USER).gql(MUTATION, {"r": registry.address})
    assert not refused.json["data"]["rescan_images"]["ok"]
    assert cluster.client(USER).post(f"/aliquot/v1/registries/{registry.address}/rescan",
                                     {}).status in (401, 403)


CATALOGUE = body({"repositories": ["a/b"]})
TAGS = body({"name": "a/b", "tags": ["1"]})


@pytest.mark.parametrize("answers, word", [
    ({}, "no list of its repositories"),
    ({"/v2/_catalog": (200, {}, b"<html>")}, "repositories"),
    ({"/v2/_catalog": body({"repositories": "x"})}, "repositories"),
    ({"/v2/_catalog": body({"repositories": ["../../etc"]})}, "no name"),
    ({"/v2/_catalog": body({"repositories": [7]})}, "no name"),
    ({"/v2/_catalog": body({"repositories": ["a?b"]})}, "no name"),
    ({"/v2/_catalog": (200, {}, b" " * (3 << 20))}, ""),
    ({"/v2/_catalog": (200, {"Link": "x"}, CATALOGUE[2])}, "more than 20000"),
    ({"/v2/_catalog": (500, {}, b"")}, "status 500"),
    ({"/v2/_catalog": (401, {"WWW-Authenticate": "Digest x"}, b"")}, "neither Basic nor Bearer"),
    ({"/v2/_catalog": (302, {"Location": "/v2/_catalog"}, b"")}, "status 302"),
    ({"/v2/_catalog": (302, {"Location": "http://169.254.169.254/latest"}, b"")}, ""),
    ({"/v2/_catalog": (302, {"Location": "http://[::ffff:169.254.169.254]/x"}, b"")}, ""),
    ({"/v2/_catalog": CATALOGUE, "/v2/a/b/tags/list": body({"tags": ["../x"]})},
     "repository 'a/b': it has a tag"),
    ({"/v2/_catalog": CATALOGUE, "/v2/a/b/tags/list": TAGS,
      "/v2/a/b/manifests/1": (503, {}, b"")}, "repository 'a/b': it answers with status 503"),
    ({"/v2/_catalog": CATALOGUE, "/v2/a/b/tags/list": TAGS,
      "/v2/a/b/manifests/1": body({"config": {"digest": sha256(b"other")}}),
      "/v2/a/b/blobs/" + sha256(b"other"): body({"architecture": "amd64", "rootfs": {}})},
     "not what its digest says"),
])
def test_registries_that_lie(cluster, answers, word):
    with liar(answers) as server:
        configure(cluster, server.address)
        code, said = rescan(cluster, server.address)
    assert code != 0 and word in said, said
    assert names(cluster) == []


CUT = (200, {"Content-Length": "1000"}, b'{"repositories": [')


def after(faults, answer):
    """The faults, one each, for those who ask first."""
    left = list(faults)
    return lambda _: left.pop(0) if left else answer


@pytest.mark.gate
@pytest.mark.parametrize("faults", [
    [CUT], [(500, {}, b""), (502, {}, b"")], [(408, {}, b"")],
    [(429, {"Retry-After": "1"}, b"")], [(429, {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, b"")],
], ids=["cut", "500", "408", "429", "date"])
def test_answers_that_fail_for_a_while(cluster, faults):
    """Each kind of request is made again."""
    config = json.dumps({"architecture": "amd64", "rootfs": {}, "config": {}}).encode()
    with liar({"/v2/_catalog": after(faults, CATALOGUE), "/v2/a/b/tags/list": after(faults, TAGS),
               "/v2/a/b/manifests/1": after(faults, body(
                   {"config": {"digest": sha256(config), "size": 5}, "layers": [{"size": 7}]})),
               "/v2/a/b/blobs/" + sha256(config): after(faults, (200, {}, config))}) as server:
        configure(cluster, server.address)
        code, said = rescan(cluster, server.address)
        assert code == 0, said
        assert names(cluster) == [f"{server.address}/a/b:1"]
        assert len(server.seen) == 4 * (1 + len(faults)), server.seen


def test_architectures_by_other_names(cluster):
    """An image's architecture is listed by its name in OCI and in uname(2), whichever it says."""
    said = {"1": "x86_64", "2": "AMD64", "3": "aarch64", "4": "ARM64", "5": "VAX"}
    configs = {tag: json.dumps({"architecture": name, "rootfs": {}, "config": {}}).encode()
               for tag, name in said.items()}
    with liar({"/v2/_catalog": CATALOGUE,
               "/v2/a/b/tags/list": body({"name": "a/b", "tags": list(said)}), **{
                   f"/v2/a/b/manifests/{tag}": body({"config": {"digest": sha256(config)}})
                   for tag, config in configs.items()}, **{
                   f"/v2/a/b/blobs/{sha256(config)}": (200, {}, config)
                   for config in configs.values()}}) as server:
        configure(cluster, server.address)
        code, text = rescan(cluster, server.address)
        assert code == 0, text
    rows = cluster.client().get("/aliquot/v1/images").json["items"]
    assert sorted(row["architecture"] for row in rows) == ["VAX", "amd64", "amd64", "arm64", "arm64"]
    rows = cluster.client().gql("{ images { tag architecture } }").json["data"]["images"]
    assert {row["tag"]: row["architecture"] for row in rows} == {
        "1": "x86_64", "2": "x86_64", "3": "aarch64", "4": "aarch64", "5": "VAX"}


def test_answers_that_are_always_cut(cluster):
    """The rescan ends, and says why and after how many tries."""
    with liar({"/v2/_catalog": CUT}) as server:
        configure(cluster, server.address)
        code, said = rescan(cluster, server.address)
        assert code != 0 and "in the middle of its answer; 4 tries" in said, said
        assert len(server.seen) == 4, server.seen


def test_a_token_that_expires(cluster):
    """A new one is fetched, also if its service fails once."""
    config = json.dumps({"architecture": "amd64", "rootfs": {}, "config": {}}).encode()
    given = []

    def give(_):
        given.append(f"t{len(given)}")
        return body({"token": given[-1]})

    def limited(answer, uses):
        """Takes the token that was given last, for so many requests."""
        def reply(handler):
            if uses and given and handler.headers.get("Authorization") == f"Bearer {given[-1]}":
                uses.pop()
                return answer
            uses[:] = [1]
            return 401, {"WWW-Authenticate": f'Bearer realm="http://{server.address}/token"'}, b""
        return reply

    uses = []
    with liar({}) as server:
        server.answers = {
            "/token": after([(503, {}, b"")], None), "/v2/_catalog": limited(CATALOGUE, uses),
            "/v2/a/b/tags/list": limited(TAGS, uses),
            "/v2/a/b/manifests/1": limited(body(
                {"config": {"digest": sha256(config), "size": 5}, "layers": [{"size": 7}]}), uses),
            "/v2/a/b/blobs/" + sha256(config): limited((200, {}, config), uses)}
        first = server.answers["/token"]
        server.answers["/token"] = lambda handler: first(handler) or give(handler)
        configure(cluster, server.address)
        code, said = rescan(cluster, server.address)
        assert code == 0 and len(given) == 4, (said, given, server.seen)
        assert names(cluster) == [f"{server.address}/a/b:1"]


def test_what_is_no_image_is_left_out(cluster):
    chart = b'{"name": "chart"}'
    with liar({"/v2/_catalog": body({"repositories": ["a/b", "a/empty", "a/none"]}),
               "/v2/a/empty/tags/list": body({"tags": None}),
               "/v2/a/b/tags/list": TAGS,
               "/v2/a/b/manifests/1": body({"config": {"digest": sha256(chart)}, "layers": []}),
               "/v2/a/b/blobs/" + sha256(chart): (200, {}, chart)}) as server:
        configure(cluster, server.address)
        code, said = rescan(cluster, server.address)
        assert code == 0 and "0 images" in said, said


@pytest.mark.gate
def test_harbor_with_tokens(cluster):
    """Projects by Harbor's own API, a token for the registry's."""
    config = json.dumps({"architecture": "amd64", "rootfs": {}, "config": {}}).encode()
    basic = "Basic " + base64.b64encode(b"robot$x:secret").decode()

    def with_token(answer):
        return lambda handler: answer if handler.headers.get("Authorization") == "Bearer t0ken" \
            else (401, {"WWW-Authenticate": f'Bearer realm="http://{server.address}/service/token",'
                        'service="harbor",scope="repository:p/i:pull"'}, b"")

    with liar({}) as server:
        server.answers = {
            "/service/token": lambda handler: body({"token": "t0ken"})
            if handler.headers.get("Authorization") == basic else (401, {}, b""),
            "/api/v2.0/projects/p/repositories": body([{"name": "p/i"}]),
            "/v2/p/i/tags/list": with_token(body({"tags": ["1"]})),
            "/v2/p/i/manifests/1": with_token(body(
                {"config": {"digest": sha256(config), "size": 5}, "layers": [{"size": 7}]})),
            "/v2/p/i/blobs/" + sha256(config): with_token((200, {}, config))}
        configure(cluster, server.address, type="harbor2", project="p", username="robot$x",
              password="secret")
        code, said = rescan(cluster, server.address)
        assert code == 0, said
        assert "/service/token?service=harbor&scope=repository%3Ap%2Fi%3Apull" in \
            [path for path, _ in server.seen]
        assert names(cluster) == [f"{server.address}/p/i:1"]
        configure(cluster, server.address, type="harbor2", project="q", username="robot$x",
              password="secret")
        code, said = rescan(cluster, server.address)
        assert code != 0 and "no project 'q'" in said, said


def test_one_at_a_time_and_a_manager_that_ends(cluster):
    """A registry that does not answer holds up neither the next request nor the manager's end."""
    asked, ends = threading.Event(), threading.Event()

    def wait(_):
        asked.set()
        ends.wait(60)
        return CATALOGUE
    with liar({"/v2/_catalog": wait}) as server:
        configure(cluster, server.address)
        path = f"/aliquot/v1/registries/{server.address}/rescan"
        assert cluster.client().post(path).status == 202
        assert asked.wait(60)
        second = cluster.client().post(path)
        assert second.status == 503 and "already" in str(second.json)
        cluster.programs["manager"].stop()
        assert not ends.is_set()
        ends.set()
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")
    assert names(cluster) == []
