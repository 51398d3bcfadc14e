# SPDX-License-Identifier: Apache-2.0
"""Images as users and administrators see them: aliquot image, the API, events of sessions."""

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import uuid

import pytest

from client import USER, sse_events, sse_messages
from cluster import WAITS, Cluster, batch, wait_for
from images import Layout, Registry, archive, file

pytestmark = pytest.mark.gate

for program in ("skopeo", "docker-registry"):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("unpacking images needs root", allow_module_level=True)


LABELS = {"ai.backend.kernelspec": "1", "ai.backend.resource.min.cpu": "1",
          "ai.backend.resource.min.mem": "64m", "ai.backend.accelerators": "cuda,rocm"}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A cluster of two agents and a registry with three images."""
    folder = tmp_path_factory.mktemp("images")
    registry = Registry(folder / "registry").start()
    layout = Layout(folder / "layout")
    base = archive([file("base", os.urandom(1 << 20))])
    names = {}
    for tag in ("a", "b", "c"):
        layout.image(tag, [base, archive([file(tag, tag.encode())])], Labels=LABELS)
        names[tag] = layout.push(tag, registry, f"team/image:{tag}")
    layout.image("operation", [base], Labels={"ai.backend.features": "batch operation"})
    names["operation"] = layout.push("operation", registry, "team/tool:1.2-py39-cuda11.3-slim")
    settings = {"ALIQUOT_IMAGE_INSECURE": registry.address, "ALIQUOT_IMAGE_KEEP_FREE": "1",
                "ALIQUOT_MANAGER_HEARTBEAT": "0.2s", "ALIQUOT_RUNTIME_DRIVER": "auto"}
    try:
        with Cluster(**settings) as cluster:
            cluster.start_manager()
            cluster.start_agent("node1")
            cluster.start_agent("node2")
            yield cluster, names
    finally:
        registry.stop()


def cli(cluster, *args, status=0):
    done = cluster.cli(*args)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def images(cluster, *args):
    return {row["names"][0]: row for row in
            json.loads(cli(cluster, "image", "ls", "-o", "json", *args).stdout)}


def test_pull_on_all_agents(scene):
    cluster, names = scene
    done = cli(cluster, "image", "pull", names["a"], "-o", "json")
    rows = json.loads(done.stdout)
    assert sorted(row["agent"] for row in rows) == ["node1", "node2"]
    assert {row["state"] for row in rows} == {"ready"}
    assert len({row["digest"] for row in rows}) == 1
    assert "pulling" in done.stderr
    row = wait_for(lambda: images(cluster).get(names["a"]), 60, "the list")
    wait_for(lambda: images(cluster)[names["a"]]["agents"] == ["node1", "node2"], 60, "both")
    assert row["size_bytes"] == (1 << 20) + 1 and not row["in_use"]
    items = cluster.client().get("/aliquot/v1/images").json["items"]
    assert items[0]["labels"]["ai.backend.kernelspec"] == "1"


def test_pull_on_one_agent_and_remove(scene):
    cluster, names = scene
    cli(cluster, "image", "pull", "--agent", "node2", names["b"])
    wait_for(lambda: images(cluster).get(names["b"], {}).get("agents") == ["node2"], 60, "node2")
    assert names["b"] not in images(cluster, "--agent", "node1")
    done = cli(cluster, "image", "rm", "--agent", "node2", names["b"], "-o", "json")
    assert json.loads(done.stdout)[0]["freed_bytes"] >= 1
    wait_for(lambda: names["b"] not in images(cluster), 60, "its end")
    done = cli(cluster, "image", "rm", "--agent", "node2", names["b"], status=1)
    assert "is not on this node" in done.stderr


def graphql(client, query, **variables):
    reply = client.gql(query, variables).json
    assert "errors" not in reply, reply
    return reply["data"]


def test_images_by_graphql(scene):
    """As Backend.AI's command line and web console ask for them."""
    cluster, names = scene
    user = cluster.client(USER)
    registry, _, name = names["a"].partition("/")
    cli(cluster, "image", "pull", "--agent", "node2", names["a"])
    cli(cluster, "image", "pull", "--agent", "node1", names["operation"])
    wait_for(lambda: {names["a"], names["operation"]} <= set(images(cluster)), 60, "the images")
    rows = graphql(user, """query($is_operation: Boolean) {  images(is_operation: $is_operation) {
        name registry architecture tag digest size_bytes aliases  }}""", is_operation=False)
    row, = [row for row in rows["images"] if row["tag"] == "a"]
    assert row.pop("digest").startswith("sha256:") and row.pop("architecture") == "x86_64"
    assert row == {"name": "team/image", "registry": registry, "tag": "a",
                   "size_bytes": (1 << 20) + 1, "aliases": []}
    assert "team/tool" not in [row["name"] for row in rows["images"]]
    rows = graphql(user, """query($installed: Boolean) { images(is_installed: $installed) {
        id humanized_name tag registry installed resource_limits { key min max }
        labels { key value } namespace base_image_name tags { key value } version
        supported_accelerators installed_agents hash } }""", installed=True)["images"]
    assert len({row["id"] for row in rows}) == len(rows)
    row, = [row for row in rows if row["tag"] == "a"]
    assert row["installed"] and "node2" in row["installed_agents"]
    assert {pair["key"]: pair["value"] for pair in row["labels"]} == LABELS
    assert sorted(map(str, row["resource_limits"])) == sorted(map(str, [
        {"key": "cpu", "min": "1", "max": "Infinity"},
        {"key": "mem", "min": "64m", "max": "Infinity"}]))
    assert row["supported_accelerators"] == ["cuda", "rocm"]
    cli(cluster, "image", "set", "--min", "mem=128m", "--max", "cpu=2", names["a"])
    shown = json.loads(cli(cluster, "image", "info", names["a"], "-o", "json").stdout)
    assert shown["resource_limits"] == {"cpu": {"min": "1", "max": "2"}, "mem": {"min": "134217728"}}
    one = graphql(user, "query($r: String!) { image(reference: $r) { resource_limits"
                  " { key min max } } }", r=names["a"])["image"]["resource_limits"]
    assert one == [{"key": "cpu", "min": "1", "max": "2"},
                   {"key": "mem", "min": "128m", "max": "Infinity"}]
    cli(cluster, "image", "set", names["a"])
    tool, = [row for row in rows if row["namespace"] == "team/tool"]
    assert (tool["base_image_name"], tool["version"]) == ("tool", "1.2")
    assert tool["tags"] == [{"key": "py", "value": "39"}, {"key": "cuda", "value": "11.3"},
                            {"key": "slim", "value": ""}]
    assert graphql(user, "{ images(is_installed: false) { id } }") == {"images": []}
    only = graphql(user, "{ images(is_operation: true) { name } }")
    assert only == {"images": [{"name": "team/tool"}]}
    for words, tags in (('load_filters: ["operational"]', {"1.2-py39-cuda11.3-slim"}),
                        ('image_filters: ["general"], filter_by_statuses: [ALIVE]', {"a"}),
                        ('load_filters: ["general", "operational"]', {"a", "1.2-py39-cuda11.3-slim"}),
                        ('load_filters: ["customized"]', set()), ("filter_by_statuses: [DELETED]", set())):
        found = graphql(user, "{ images(%s) { tag status is_local } }" % words)["images"]
        assert {row["tag"] for row in found} == tags, words
        assert all((row["status"], row["is_local"]) == ("ALIVE", False) for row in found)
    query = """query($reference: String!, $architecture: String) {
        image(reference: $reference, architecture: $architecture) { tag labels { key } } }"""
    one = graphql(user, query, reference=names["a"], architecture="x86_64")["image"]
    assert one["tag"] == "a" and len(one["labels"]) == len(LABELS)
    wrong = user.gql(query, {"reference": names["a"], "architecture": "aarch64"}).json
    assert wrong["data"]["image"] is None
    assert "No such environment image." in wrong["errors"][0]["message"]
    check_image_nodes(user, rows)
    session = user.post("/session", batch("with-image", "true", image=names["a"], **WAITS)).json
    kernels = graphql(user, """query($id: GlobalIDField!) { compute_session_node(id: $id) {
        kernel_nodes { edges { node { image_reference image { id tag registry } } } } } }""",
                      id=session["sessionId"])["compute_session_node"]["kernel_nodes"]["edges"]
    [image] = [edge["node"]["image"] for edge in kernels]
    assert (image["tag"], image["registry"]) == ("a", registry)
    user.delete("/session/" + session["sessionId"])


def check_image_nodes(user, rows):
    """The same images, page by page and one by one."""
    found = graphql(user, """{ image_nodes { count edges { node { id row_id namespace
        base_image_name tag version architecture digest labels { key value } } } } }""")["image_nodes"]
    nodes = [edge["node"] for edge in found["edges"]]
    assert found["count"] == len(nodes) == len(rows) >= 2
    for node, row in zip(nodes, rows):
        assert base64.b64decode(node["id"]).decode() == "ImageNode:" + row["id"]
        assert (node["row_id"], node["labels"]) == (None, row["labels"])
        for text in (node["id"], row["id"]):
            one = graphql(user, "query($id: GlobalIDField!) { image_node(id: $id) { tag } }", id=text)
            assert one["image_node"] == {"tag": row["tag"]}
    page = graphql(user, "{ image_nodes(last: 1) { edges { node { id } cursor } } }")["image_nodes"]
    assert page["edges"][0]["node"]["id"] == page["edges"][0]["cursor"] == nodes[-1]["id"]
    page = graphql(user, "query($c: String) { image_nodes(before: $c) { edges { node { id } } } }",
                   c=nodes[-1]["id"])["image_nodes"]
    assert [edge["node"]["id"] for edge in page["edges"]] == [node["id"] for node in nodes[:-1]]
    said = graphql(user, "{ image_nodes { edges { node { permissions } } } }")["image_nodes"]["edges"]
    assert {tuple(edge["node"]["permissions"]) for edge in said} == {("read_attribute", "create_container")}
    for words, kept in (('filter: "tag == \\"a\\""', lambda row: row["tag"] == "a"),
                        ('filter: "!(tag like \\"a%\\") & size_bytes > 0"', lambda row: row["tag"] != "a"),
                        ('filter: "registry contains \\"nowhere\\""', lambda row: False),
                        ("filter_by_statuses: [DELETED]", lambda row: False),
                        ('permission: "forget_image"', lambda row: False),
                        ('permission: "create_container"', lambda row: True)):
        found = graphql(user, "{ image_nodes(%s) { count edges { node { tag } } } }" % words)["image_nodes"]
        want = [node["tag"] for node in nodes if kept(node)]
        assert [edge["node"]["tag"] for edge in found["edges"]] == want, words
        assert found["count"] == len(want)
    for order, key in (("tag", "tag"), ("+architecture, -tag", "tag"), ("-namespace", "namespace")):
        found = graphql(user, '{ image_nodes(order: "%s", first: 1) { count edges { node { id tag namespace } }'
                        " pageInfo { hasNextPage } } }" % order)["image_nodes"]
        want = sorted((node[key] for node in nodes), reverse="-" in order)
        assert found["edges"][0]["node"][key] == want[0] and found["pageInfo"]["hasNextPage"]
    for words, error in (('filter: "tag == 1"', "'tag' is not compared with a number"),
                         ('order: "labels"', "Query order parsing error"),
                         ('permission: "convert_to_image"', "is no permission of these")):
        refused = user.gql("{ image_nodes(%s) { count } }" % words).json["errors"][0]["message"]
        assert error in refused


def test_collect_unused(scene):
    cluster, names = scene
    cli(cluster, "image", "pull", names["c"])
    done = cli(cluster, "image", "gc", "-o", "json")
    assert {row["freed_bytes"] for row in json.loads(done.stdout)} == {0}
    done = cli(cluster, "image", "gc", "--unused", "-o", "json")
    assert all(row["freed_bytes"] >= 1 << 20 for row in json.loads(done.stdout))
    wait_for(lambda: images(cluster) == {}, 60, "nothing")


def test_failures_are_told(scene):
    cluster, names = scene
    done = cli(cluster, "image", "pull", "--agent", "node1", names["a"] + "x", status=1)
    assert "manifest unknown" in done.stderr and "check name and tag" in done.stderr
    done = cli(cluster, "image", "pull", "Bad Name", status=4)
    assert "image" in done.stderr
    cli(cluster, "image", "pull", "--agent", "nobody", names["a"], status=5)
    done = cli(cluster, "image", "pull", "--agent", "node1", "rootfs:/etc", status=1)
    assert "does not admit" in done.stderr


def test_only_superadmins_order(scene):
    cluster, names = scene
    user = cluster.client(USER)
    assert user.get("/aliquot/v1/images").status == 200
    assert user.post("/aliquot/v1/images/pull", {"image": names["a"]}).status in (401, 403)


def test_agent_that_goes_away(scene):
    """What was being pulled goes on when it is back."""
    cluster, names = scene
    cluster.programs["node1"].kill()
    done = cli(cluster, "image", "pull", "--agent", "node1", names["b"], status=1)
    assert "node1" in done.stderr
    cluster.programs["node1"].start()
    wait_for(lambda: cluster.cli("image", "pull", "--agent", "node1", names["b"]).returncode == 0,
             30, "the agent")


# ---- sessions ----

def static_shell():
    """Entries of a small image with a shell of this machine."""
    found = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    paths = {word for word in found.split() if word.startswith("/")} | {"/bin/sh"}
    return [file(path.lstrip("/"), open(path, "rb").read(), mode=0o755) for path in sorted(paths)]


@pytest.mark.skipif(not (shutil.which("crun") or shutil.which("runc")),
                    reason="no container runtime is installed")
def test_session_pulls_its_image(scene, tmp_path):
    """From a registry into a container, with bytes told by events."""
    cluster, names = scene
    registry, tag = names["a"].split("/")[0], "team/shell:1"
    layout = Layout(tmp_path / "layout")
    layout.image("t", [archive([*static_shell(), file("big", os.urandom(8 << 20)),
                                file("hello", b"from the image\n")])])
    subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", "--dest-tls-verify=false",
                    layout.reference("t"), f"docker://{registry}/{tag}"], check=True)
    client, pulls, last = cluster.client(), [], None
    sock, stream, _ = client.stream("/events/session?scope=session", timeout=60)
    with sock:
        reply = client.post("/session", {
            "name": "shell", "image": f"{registry}/{tag}", "type": "batch", "enqueueOnly": True,
            "startupCommand": "read line < /hello; echo $line",
            "config": {"resources": {"cpu": "1", "mem": "256m"}}})
        assert reply.status == 201, reply
        session = reply.json["sessionId"]
        for last, data in sse_events(stream):
            if last == "session_image_pull":
                pulls.append(data["image"])
            if last in ("session_terminated", "session_cancelled"):
                break
    log = client.get(f"/aliquot/v1/sessions/{session}/logs").body
    assert last == "session_terminated" and log == b"from the image\n", (last, log)
    assert pulls and all(pull["name"].endswith("team/shell:1") for pull in pulls)
    assert max(pull["totalBytes"] for pull in pulls) > 8 << 20
    wait_for(lambda: not images(cluster)[f"{registry}/{tag}"]["in_use"], 60, "its last use to end")


def mutate(cluster, text, fields="ok msg"):
    reply = cluster.client().gql("mutation { result: " + text + " { " + fields + " } }")
    return reply.json["data"]["result"]


def follow(client, task, seen=None):
    """[(event, data)] of a background task, as Backend.AI's client reads them."""
    seen = [] if seen is None else seen
    sock, stream, head = client.stream(f"/events/background-task?task_id={task}", timeout=60)
    with sock:
        assert " 200 " in head, head
        for event, data in sse_events(stream):
            seen.append((event, data))
            if event == "server_close":
                return seen
    return seen


@contextlib.contextmanager
def stopped(program):
    program.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        program.signal(signal.SIGCONT)


def test_fetch_in_the_background(scene):
    """preload_image names a task, whose events tell how far it is, and then how it ended."""
    cluster, names = scene
    client, missing = cluster.client(), names["a"].replace("team/image", "team/no-such")
    events = []
    with stopped(cluster.programs["node2"]):  # for less than the link lives without an answer
        asked = mutate(cluster, f'preload_image(references: ["{names["b"]}"], target_agents: '
                                '["node1", "node2"])', "ok msg task_id")
        assert asked["ok"] and asked["task_id"], asked
        reader = threading.Thread(target=follow, args=(client, asked["task_id"], events))
        reader.start()
        wait_for(lambda: any("on agent node1: ready" in data["message"]
                             for _, data in list(events)), 14, "the image on node1")
    reader.join(60)
    updates = [data for event, data in events if event == "bgtask_updated"]
    assert [event for event, _ in events[-2:]] == ["bgtask_done", "server_close"], events
    assert len(updates) == len(events) - 2 and all(
        data["task_id"] == asked["task_id"] and data["total_progress"] == 200
        and 0 <= data["current_progress"] <= 200 for data in updates), events
    assert updates[-1]["current_progress"] == 200 and names["b"] in updates[-1]["message"]
    assert [data["current_progress"] for data in updates] == sorted(
        data["current_progress"] for data in updates)
    assert events[-2][1]["message"] == "2 fetches are done", events

    late = follow(client, asked["task_id"])  # of one that has ended: one event
    assert [event for event, _ in late] == ["bgtask_done", "server_close"], late
    assert late[0][1]["status"] == "done" and late[0][1]["task_id"] == asked["task_id"]
    path = f"/events/background-task?task_id={asked['task_id']}"
    with contextlib.closing(client.stream(path)[1]) as stream:
        number = next(sse_messages(stream))[2]
    for last, wanted in ((number, ["server_close"]), ("1", ["bgtask_done", "server_close"]),
                         ("", ["bgtask_done", "server_close"])):  # each state is told once
        with contextlib.closing(client.stream(path, extra={"Last-Event-ID": last})[1]) as stream:
            assert [event for event, _ in sse_events(stream)] == wanted
    assert " 400 " in client.stream(path, extra={"Last-Event-ID": "odd"})[2]
    for client_, task, status in ((cluster.client(USER), asked["task_id"], 404),  # not theirs
                                  (client, str(uuid.uuid4()), 404), (client, "x", 400)):
        assert client_.get(f"/events/background-task?task_id={task}").status == status
    failing = mutate(cluster, f'preload_image(references: ["{missing}"], target_agents: '
                              '["node1"])', "ok msg task_id")
    assert failing["ok"], failing
    last = follow(client, failing["task_id"])[-2]
    assert last[0] == "bgtask_failed", last
    assert "team/no-such" in last[1]["message"] and "node1" in last[1]["message"], last


def test_mutations(scene):
    """preload, unload and forget by GraphQL, as Backend.AI's clients do; with an alias."""
    cluster, names = scene
    name = names["c"]

    def agents():
        return images(cluster).get(name, {}).get("agents", [])
    cli(cluster, "image", "alias", "tri", name)
    assert json.loads(cli(cluster, "image", "alias", "-o", "json").stdout) == [
        {"alias": "tri", "image": name}]
    asked = mutate(cluster, 'preload_image(references: ["tri"], target_agents: ["node1"])')
    assert asked["ok"] and "1 fetches" in asked["msg"], asked
    wait_for(lambda: agents() == ["node1"], 30, "the image on node1")
    assert mutate(cluster, f'preload_image(references: ["{name}"], target_agents: [])')["ok"]
    wait_for(lambda: agents() == ["node1", "node2"], 30, "the image on both")
    shown = cluster.client().gql('{ image(reference: "%s") { aliases } }' % name).json["data"]
    assert shown["image"]["aliases"] == ["tri"]

    assert mutate(cluster, f'unload_image(references: ["{name}"], target_agents: ["node2"])') == {
        "ok": True, "msg": "success"}
    wait_for(lambda: agents() == ["node1"], 30, "it to leave node2")
    again = mutate(cluster, f'unload_image(references: ["{name}"], target_agents: ["node2"])')
    assert not again["ok"] and "node2" in again["msg"], again
    assert mutate(cluster, 'forget_image(reference: "tri")')["ok"]
    wait_for(lambda: not agents(), 30, "it to be forgotten")
    assert not mutate(cluster, 'forget_image(reference: "tri")')["ok"]
    cli(cluster, "image", "unalias", "tri")
    assert json.loads(cli(cluster, "image", "alias", "-o", "json").stdout) == []
    cli(cluster, "image", "unalias", "tri", status=5)


def test_clear_images(scene):
    """All of a registry, wherever they are."""
    cluster, names = scene
    registry = names["a"].split("/")[0]
    cli(cluster, "image", "pull", names["a"])
    cli(cluster, "image", "pull", "--agent", "node1", names["b"])
    wait_for(lambda: {names["a"], names["b"]} <= set(images(cluster)), 30, "both")
    assert mutate(cluster, 'clear_images(registry: "other.example")')["ok"]
    assert {names["a"], names["b"]} <= set(images(cluster))
    assert mutate(cluster, f'clear_images(registry: "{registry}")')["ok"]
    wait_for(lambda: not any(name.startswith(registry) for name in images(cluster)), 30,
             "all to go")
