# SPDX-License-Identifier: Apache-2.0
"""Model services against who is not their owner: rights of administrators, what strangers learn, and
limits that many requests at once do not pass."""

import base64
import concurrent.futures
import contextlib
import http.server
import itertools
import socket
import threading
import urllib.parse

import pytest

from cluster import Cluster, wait_for
from link_storage import LinkStorage
from two_domains import OTHER, TwoDomains

PATH = "/aliquot/v1/model-services"
TOKENS_MAX, SERVICES_MAX = 256, 100  # of a service; of a user
numbers = itertools.count(1)
MODIFY = ("mutation($id: UUID!, $props: ModifyEndpointInput!) { modify_endpoint(endpoint_id: $id, "
          "props: $props) { ok msg } }")
CREATE = ("mutation($input: CreateDeploymentInput!) { createModelDeployment(input: $input) { "
          "deployment { id } } }")
ADD = "mutation($input: AddRevisionInput!) { addModelRevision(input: $input) { revision { id } } }"


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        there = TwoDomains(cluster)
        there.cluster = cluster
        with LinkStorage(cluster):
            wait_for(lambda: there.admin.get("/folders/_/hosts").json["allowed"])
            yield there
            remove_all(there.user)
            remove_all(there.admin)
        cluster.stop()


def body(name, **more):
    return {"name": name, "image": "sh", "command": "serve", "port": 8000, "replicas": 0,
            "resources": {"cpu": "1", "mem": "64m"}, **more}


def make(client, **more):
    """A new service, with its path."""
    made = client.post(PATH, {**body(f"svc-{next(numbers)}"), **more})
    assert made.status == 201, made
    return {**made.json, "path": f"{PATH}/{made.json['id']}"}


def remove_all(client):
    for one in client.get(PATH).json["items"]:
        client.delete(f"{PATH}/{one['id']}", {"force": True})
    wait_for(lambda: client.get(PATH).json["total"] == 0, 60, "the services to end")


def end(client, one):
    assert client.delete(one["path"], {"force": True}).status == 204
    wait_for(lambda: client.get(one["path"]).json["status"] == "ended", 60, "its end")


def at_once(requests):
    """The statuses of requests that are sent at the same time."""
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        return [reply.status for reply in pool.map(lambda send: send(), requests)]


# ---- administrators of a domain ----

def folder_of(client):
    made = client.post("/folders", {"name": f"f{next(numbers)}"})
    assert made.status == 201, made
    return made.json["id"]


def test_a_domains_administrator_does_not_deploy_for_a_superadmin(there):
    """A revision mounts the owner's folders, and has the owner's limits."""
    folder = folder_of(there.admin)
    mine = make(there.admin)
    assert there.boss.get(mine["path"]).status == 200
    reply = there.boss.post(mine["path"] + "/revisions", {"model": folder, "command": "cat /models/*"})
    assert reply.status == 403 and "ask the owner or a superadmin" in str(reply.json), reply
    done = there.boss.gql(MODIFY, {"id": mine["id"], "props": {
        "extra_mounts": [{"vfolder_id": folder}]}}).json["data"]["modify_endpoint"]
    assert not done["ok"] and "ask the owner or a superadmin" in done["msg"], done
    runtimes = there.boss.gql("{ runtimeVariants { edges { node { id } } } }").json["data"]
    said = there.boss.gql(ADD, {"input": {
        "deploymentId": mine["id"], "clusterConfig": {"mode": "SINGLE_NODE", "size": 1},
        "resourceConfig": {"resourceSlots": {"entries": []}}, "image": {"id": mine["id"]},
        "modelMountConfig": {"vfolderId": folder},
        "modelRuntimeConfig": {"runtimeVariantId": base64.b64decode(
            runtimes["runtimeVariants"]["edges"][0]["node"]["id"]).decode().split(":")[1]}}}).json
    assert "ask the owner or a superadmin" in str(said["errors"]), said
    assert there.admin.get(mine["path"] + "/revisions").json["total"] == 1
    assert there.admin.post(mine["path"] + "/revisions", {"model": folder}).status == 201
    assert there.boss.send("PATCH", mine["path"], {"tag": "seen"}).status == 200


def test_a_domains_administrator_deploys_for_users_of_the_domain(there):
    one = make(there.user)
    assert there.boss.post(one["path"] + "/revisions", {"port": 9000}).status == 201
    assert there.strange_boss.post(one["path"] + "/revisions", {"port": 9000}).status == 404


# ---- what strangers learn ----

def test_a_project_of_another_domain_is_as_if_it_did_not_exist(there):
    made = there.admin.post("/aliquot/v1/groups", {"name": "zz-secret", "domain": OTHER}).json
    said = [str(there.user.gql(CREATE, {"input": {
        "metadata": {"projectId": project, "domainName": domain, "name": "stray"},
        "networkAccess": {}, "defaultDeploymentStrategy": {"type": "ROLLING"}, "replicaCount": 1,
    }}).json["errors"]).replace(project, "ID")
        for project in (made["id"], "00000000-0000-4000-8000-000000000000")
        for domain in ("default", OTHER)]
    assert len(set(said)) == 1 and "there is no project" in said[0], said


def test_a_name_that_a_stranger_takes_hides_nothing(there):
    """What has ended is found by its name, whoever had the name later."""
    own = make(there.user, name="same-name", note="own")
    end(there.user, own)
    foreign = make(there.stranger, name="same-name", note="foreign")
    end(there.stranger, foreign)
    for client, one in ((there.user, own), (there.boss, own), (there.stranger, foreign),
                        (there.admin, foreign)):
        assert client.get(PATH + "/same-name").json["id"] == one["id"]
        note = one["revision"]["note"]
        assert note in str(client.get(PATH + "/same-name/history").json["items"][-1]), client
    for client, one in ((there.user, foreign), (there.stranger, own)):
        assert client.get(one["path"]).status == client.get(one["path"] + "/history").status == 404


def test_pages_of_a_list_have_the_callers_services_alone(there):
    mine = [make(there.user) for _ in range(5)]
    for one in mine[1:4]:
        end(there.user, one)
    theirs = make(there.stranger)
    end(there.stranger, theirs)
    for client in (there.user, there.boss, there.stranger, there.admin):
        for query in ("all_states=true", "all=true&all_states=true", "all=true", "all=false"):
            whole = client.get(f"{PATH}?{query}").json
            ids = [one["id"] for one in whole["items"]]
            assert whole["total"] == len(ids) == len(set(ids))
            pages = [client.get(f"{PATH}?{query}&limit=2&offset={at}").json
                     for at in range(0, len(ids) + 2, 2)]
            assert [one["id"] for page in pages for one in page["items"]] == ids
            assert {page["total"] for page in pages} == {len(ids)}
            if "all_states" in query and client is not there.admin:
                sees = client is there.user or (client is there.boss and "all=true" in query)
                assert {one["id"] for one in mine}.issubset(ids) == sees
                assert (theirs["id"] in ids) == (client is there.stranger)
    assert not {one["id"] for one in mine} & {
        one["id"] for one in there.strange_boss.get(PATH + "?all=true&all_states=true").json["items"]}


def test_tags_have_no_terminal_escapes(there):
    project = there.user.gql('{ groups_by_name(name: "default") { id } }'
                             ).json["data"]["groups_by_name"][0]["id"]
    for tag in ("\x1b]0;x\x07", "a\nb", "a\u202eb"):
        said = there.user.gql(CREATE, {"input": {
            "metadata": {"projectId": project, "domainName": "default", "name": "tagged",
                         "tags": ["fine", tag]},
            "networkAccess": {}, "defaultDeploymentStrategy": {"type": "ROLLING"},
            "replicaCount": 0}}).json
        assert "tags: have an invisible or control character" in str(said["errors"]), said


# ---- many at once ----

def test_many_requests_at_once_make_no_more_tokens_than_one_after_the_other(there):
    one = make(there.user)
    statuses = at_once([lambda: there.user.post(one["path"] + "/tokens", {})] * (TOKENS_MAX + 120))
    assert (statuses.count(201), statuses.count(412)) == (TOKENS_MAX, 120), statuses
    listed = there.user.get(one["path"] + "/tokens").json
    assert listed["total"] == TOKENS_MAX
    assert there.user.delete(f"{one['path']}/tokens/{listed['items'][0]['id']}").status == 204
    assert there.user.post(one["path"] + "/tokens", {}).status == 201


def test_many_requests_at_once_make_no_more_services_than_one_after_the_other(there):
    remove_all(there.user)
    names = [f"many-{i}" for i in range(SERVICES_MAX + 60)]
    statuses = at_once([lambda name=name: there.user.post(PATH, body(name)) for name in names])
    assert (statuses.count(201), statuses.count(412)) == (SERVICES_MAX, 60), statuses
    remove_all(there.user)
    make(there.user)


def test_a_large_list_is_written_in_turns_and_whole(there):
    """Not at once, however many ask: in chunks, as the client reads, one list of a user at a time."""
    large = {"environ": {f"E{i}": "x" * 3900 for i in range(16)}, "bootstrap": "y" * 30000,
             "command": "z" * 50000}
    made = [make(there.user, **large) for _ in range(20)]
    for one in made[10:]:
        end(there.user, one)
    for query in ("", "?all_states=true"):
        reply = there.user.get(PATH + query, timeout=300)
        assert reply.headers["Transfer-Encoding"] == "chunked" and len(reply.body) > 1 << 20
        count = sum(len(one["revision"]["command"]) >= 50000 for one in reply.json["items"])
        assert count == (20 if query else 10)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            sock = stack.enter_context(socket.create_connection(there.user.address, timeout=60))
            sock.sendall(there.user.request("GET", PATH + "?all_states=true"))
        assert there.boss.get(PATH + "?all=true&all_states=true", timeout=300).status == 200
    assert there.user.get(PATH, timeout=300).status == 200


# ---- Prometheus ----

class Slow(http.server.BaseHTTPRequestHandler):
    """Answers queries that are slow not at all, and sends those that are "away" elsewhere."""

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        query = form["query"][0]
        self.server.asked.append((self.path, query))
        if query.startswith("slow"):
            self.server.is_over.wait(120)
            return
        self.send_response(307 if query == "away" else 200)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        text = b'{"status":"success","data":{"resultType":"scalar","result":[0,"6"]}}'
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture(name="prometheus", scope="module")
def prometheus_fixture():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads, server.asked, server.is_over = True, [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.is_over.set()
    server.shutdown()


def test_slow_queries_of_a_user_do_not_keep_values_from_others(prometheus):
    """Eight are under way at a time; 160 that are cut after ten seconds would take 200."""
    with Cluster(ALIQUOT_SERVING_PROMETHEUS=f"http://127.0.0.1:{prometheus.server_port}") as cluster:
        cluster.start_manager()
        there = TwoDomains(cluster)

        def query(text):
            return {"signal": "prometheus", "query": text, "target": 2}

        def scaled(client, name, rules):
            made = client.post(PATH, {**body(name), "replicas": "1-4", "scaling": {"rules": rules}})
            assert made.status == 201, made
        for i in range(10):
            scaled(there.user, f"slow-{i}", [query(f"slow {i} {n}") for n in range(16)])
        wait_for(lambda: sum(text.startswith("slow") for _, text in prometheus.asked) >= 8)
        scaled(there.stranger, "other", [query("fast")])
        scaled(there.strange_boss, "moved", [query("away")])
        wait_for(lambda: there.stranger.get(PATH + "/other").json["replicas"]["wanted"] == 3, 60,
                 lambda: f"three replicas: {there.stranger.get(PATH + '/other').json}")
        wait_for(lambda: "307" in (there.strange_boss.get(PATH + "/moved").json["scaling_problem"] or ""),
                 60, "the redirection")
        assert {path for path, _ in prometheus.asked} == {"/api/v1/query"}
        cluster.stop()


def test_a_trial_belongs_to_who_asked_for_it(there):
    revision = {name: value for name, value in body("x").items() if name not in ("name", "replicas")}
    for client in there.stranger, there.strange_boss:
        foreign = client.post(f"{PATH}/_/try", {**revision, "owner_access_key": there.user.keypair[0]})
        assert foreign.status in (400, 403), foreign
    before = there.user.get(PATH).json["total"]
    tried = there.user.post(f"{PATH}/_/try", {**revision, "command": "sleep 60"})
    assert tried.status == 200, tried
    trial = f"{PATH}/{tried.json['name']}"
    follow = f"/events/background-task?task_id={tried.json['task_id']}"
    for client in there.stranger, there.strange_boss:
        assert client.get(follow).status == client.get(trial).status == 404
        assert client.delete(trial).status == 404
        assert client.post(f"{trial}/tokens", {"label": "mine"}).status == 404
    assert there.user.get(PATH).json["total"] == before + 1  # it counts against the limit
    assert there.user.delete(trial, {"force": True}).status == 204
    wait_for(lambda: there.user.get(PATH).json["total"] == before, 60, "the trial to end")
