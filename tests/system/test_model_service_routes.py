# SPDX-License-Identifier: Apache-2.0
"""What proxies hear of model services, and what follows from what they report. Node and proxies are
played; the manager is a real one."""

import hashlib
import json
import time
import urllib.request
import uuid

import pytest

from client import USER
from cluster import Cluster, wait_for
from link_storage import LinkStorage
from played_serving import Node, Proxy
from ports import free_port

PATH = "/aliquot/v1/model-services"


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_AGENTS_HEARTBEAT="300s", ALIQUOT_AGENTS_TIMEOUT="1h") as cluster:
        port = free_port()
        cluster.start_manager(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{port}")
        cluster.metrics = f"http://127.0.0.1:{port}/metrics"
        cluster.node = Node(cluster)
        cluster.user = cluster.client(USER)
        yield cluster
        cluster.node.stop()
        cluster.stop()


@pytest.fixture(name="proxy")
def proxy_fixture(there):
    proxy = Proxy(there)
    yield proxy
    proxy.end()


@pytest.fixture(name="make")
def make_fixture(there):
    made = []

    def make(name, **more):
        reply = there.user.post(PATH, {
            "name": name, "image": "python:3", "command": "serve", "port": 8000,
            "resources": {"cpu": "1", "mem": "64m"}, **more})
        assert reply.status == 201, reply
        made.append(reply.json["id"])
        return reply.json
    yield make
    for one in made:
        there.user.delete(f"{PATH}/{one}", {"force": True})
    wait_for(lambda: not there.user.get(PATH).json["items"], what="the services to end")


def shown(there, name):
    return there.user.get(f"{PATH}/{name}").json


def sessions_of(there, name, count):
    """Sessions of as many replicas, whose kernels run on the node."""
    def look():
        found = [one["session"] for one in shown(there, name)["replica_list"]]
        return len(found) == count and set(found) <= set(there.node.kernels) and found
    return wait_for(look, what=lambda: f"{count} replicas, there are {shown(there, name)}")


def ready(there, name, count):
    sessions = sessions_of(there, name, count)
    for session in sessions:
        there.node.health(session)
    wait_for(lambda: shown(there, name)["replicas"]["ready"] == count, what="ready replicas")
    return sessions


def test_replicas_are_listed_once_they_are_ready(there, proxy, make):
    service = make("listed", replicas=2, limits={"cap": 4, "queue": 7}, public=True)
    route = wait_for(lambda: proxy.services.get("listed"))
    assert not route.get("replicas") and route["wanted"] == 2
    assert (route["cap"], route["queue_max"], route["affinity"]) == (4, 7, "none")
    assert route["is_public"] and route["access_key"] == USER[0]
    sessions = sessions_of(there, "listed", 2)
    there.node.health(sessions[0])
    wait_for(lambda: set(proxy.replicas("listed")) == {sessions[0]})
    there.node.health(sessions[1])
    wait_for(lambda: set(proxy.replicas("listed")) == set(sessions))
    assert shown(there, "listed")["status"] == "ready"
    there.node.health(sessions[0], "unhealthy", "GET / answered 500")
    wait_for(lambda: proxy.replicas("listed")[sessions[0]].get("is_unhealthy"))
    assert "answered 500" in str(shown(there, "listed")["replica_list"])
    there.node.health(sessions[0])
    wait_for(lambda: not proxy.replicas("listed")[sessions[0]].get("is_unhealthy"))
    assert shown(there, "listed")["url"] == "http://127.0.0.1:5050/serve/listed/"
    there.user.delete(f"{PATH}/{service['id']}")
    wait_for(lambda: "listed" not in proxy.services)


def test_versions_grow(there, proxy, make):
    make("growing", replicas=0)
    for i in range(5):
        there.user.send("PATCH", f"{PATH}/growing", {"tag": str(i)})
    wait_for(lambda: len(proxy.versions) >= 3)
    assert proxy.versions == sorted(set(proxy.versions))
    there.programs["manager"].kill()
    there.programs["manager"].start()
    wait_for(there.is_serving, 60)
    before = proxy.versions[-1]
    proxy.stop()
    proxy.versions.clear()
    proxy.services = {}
    proxy.start()
    wait_for(lambda: "growing" in proxy.services)
    assert proxy.versions[0] > before
    there.node.stop()
    there.node = Node(there)


def test_tokens_reach_proxies_and_go(there, proxy, make):
    make("guarded", replicas=0)
    made = there.user.post(f"{PATH}/guarded/tokens",
                           {"paths": ["/v1"], "rate": 2, "budget": 100}).json
    route = wait_for(lambda: proxy.services.get("guarded", {}).get("tokens"))
    assert route == [{"id": made["id"], "paths": ["/v1"], "rate_milli": 2000, "budget": 100,
                      "hash": hashlib.sha256(made["token"].encode()).hexdigest()}], route
    proxy.use(proxy.services["guarded"], arrived=3, ok=3,
              tokens=[{"id": made["id"], "requests": 3, "prompt_tokens": 60,
                       "completion_tokens": 50}])
    wait_for(lambda: proxy.services["guarded"]["tokens"][0].get("is_spent"))
    listed = wait_for(lambda: there.user.get(f"{PATH}/guarded/tokens").json["items"])
    assert (listed[0]["used"], listed[0]["requests"]) == (110, 3)
    assert there.user.delete(f"{PATH}/guarded/tokens/{made['id']}").status == 204
    wait_for(lambda: not proxy.services["guarded"].get("tokens"))


def test_a_replica_drains_until_all_proxies_have_finished(there, proxy, make):
    """It is listed as draining at once, and ends when both have confirmed that and are done."""
    make("drained", replicas=2)
    sessions = ready(there, "drained", 2)
    other = Proxy(there, "other")
    try:
        wait_for(lambda: set(other.replicas("drained")) == set(sessions))
        service = proxy.services["drained"]
        other.use(service, in_flight=1,
                  replicas=[{"session_id": one, "in_flight": 1} for one in sessions])
        other.confirms = False
        there.user.send("PATCH", f"{PATH}/drained", {"replicas": 1})
        gone = wait_for(lambda: next((one for one, route in proxy.replicas("drained").items()
                                      if route.get("is_draining")), None))
        kept = next(one for one in sessions if one != gone)
        assert not proxy.replicas("drained")[kept].get("is_draining")
        wait_for(lambda: other.replicas("drained")[gone].get("is_draining"))
        other.use(service, in_flight=0, replicas=[{"session_id": gone, "in_flight": 0}])
        wait_for(lambda: not any(one["in_flight"] for one in
                                 shown(there, "drained")["replica_list"] if one["session"] == gone))
        assert gone in there.node.kernels  # it has not confirmed
        other.use(service, in_flight=1, replicas=[{"session_id": gone, "in_flight": 1}])
        other.confirm()
        wait_for(lambda: any(one["in_flight"] for one in
                             shown(there, "drained")["replica_list"] if one["session"] == gone))
        assert gone in there.node.kernels  # something is under way
        other.use(service, in_flight=0, replicas=[{"session_id": gone, "in_flight": 0}])
        wait_for(lambda: gone not in there.node.kernels)
        wait_for(lambda: set(proxy.replicas("drained")) == {kept})
    finally:
        other.end()


def test_without_proxies_a_replica_ends_at_once(there, make):
    make("lonely", replicas=1, limits={"drain_timeout": 2})
    session = ready(there, "lonely", 1)[0]
    there.user.send("PATCH", f"{PATH}/lonely", {"replicas": 0})
    wait_for(lambda: session not in there.node.kernels)
    wait_for(lambda: shown(there, "lonely")["status"] == "sleeping")


def test_caps_follow_demand(there, proxy, make):
    make("capped", replicas=0, limits={"cap": 8})
    wait_for(lambda: proxy.services.get("capped", {}).get("cap") == 8)
    other = Proxy(there, "second")
    try:
        wait_for(lambda: (proxy.services["capped"]["cap"],
                          other.services.get("capped", {}).get("cap")) == (4, 4))
        proxy.use(proxy.services["capped"], in_flight=6, queued=0)
        wait_for(lambda: (proxy.services["capped"]["cap"], other.services["capped"]["cap"]) == (7, 1))
        other.use(other.services["capped"], queued=6)
        wait_for(lambda: (proxy.services["capped"]["cap"], other.services["capped"]["cap"]) == (4, 4))
    finally:
        other.end()
    wait_for(lambda: proxy.services["capped"]["cap"] == 8)


def test_figures(there, proxy, make):
    service = make("counted", replicas=1)
    session = ready(there, "counted", 1)[0]
    proxy.use(service, in_flight=2, queued=1, arrived=10, ok=5, client_errors=1, server_errors=1,
              refused=2, broken=1, duration_usec=7_000_000, first_byte_usec=700_000, waited=2,
              queue_usec=100_000,
              replicas=[{"session_id": session, "in_flight": 2, "requests": 7, "failures": 1}])
    figures = wait_for(lambda: shown(there, "counted")["figures"]["requests"] and
                       shown(there, "counted")["figures"])
    recent = figures.pop("recent")
    assert figures == {"in_flight": 2, "queued": 1, "requests": 10, "ok": 5, "client_errors": 1,
                       "server_errors": 1, "failures": 1, "refused": 2, "broken": 1, "waited": 2,
                       "mean_ms": 1000, "mean_first_byte_ms": 100, "mean_queue_ms": 50,
                       "prompt_tokens": 0, "completion_tokens": 0, "cached_tokens": 0,
                       "cold_starts": 0, "mean_cold_start_ms": None}
    assert (recent["requests"], recent["ok"], recent["error_ratio"]) == (10, 5, 0.25)
    assert recent["p99_ms"] is None  # a proxy without buckets
    replica = shown(there, "counted")["replica_list"][0]
    assert (replica["in_flight"], replica["requests"], replica["failures"]) == (2, 7, 1)
    stranger = "11111111-2222-3333-4444-555555555555"
    proxy.use({"id": stranger}, arrived=1)
    proxy.use(service, arrived=10**16)  # no proxy has seen so many
    proxy.use(service, arrived=1, replicas=[{"session_id": stranger, "in_flight": 5}])
    wait_for(lambda: shown(there, "counted")["figures"]["requests"] == 11)
    proxy.stop()
    wait_for(lambda: shown(there, "counted")["figures"]["in_flight"] == 0)
    assert shown(there, "counted")["figures"]["ok"] == 5


def test_figures_of_revisions_and_tokens(there, proxy, make):
    service = make("compared", replicas=1)
    session = ready(there, "compared", 1)[0]
    token = there.user.post(f"{PATH}/compared/tokens", {"label": "bench", "budget": 1000}).json
    wait_for(lambda: proxy.services["compared"].get("tokens"), what="the token")
    answered = {"session_id": session, "revision": 1, "requests": 10, "ok": 8, "server_errors": 1,
                "failures": 1, "duration_usec": 900_000, "first_byte_usec": 90_000,
                "duration_buckets": [0, 0, 0, 0, 9], "first_byte_buckets": [0, 9],
                "prompt_tokens": 50, "completion_tokens": 10, "cached_tokens": 40}
    counted = {"id": token["id"], "requests": 10, "ok": 8, "server_errors": 1, "refused": 3,
               "prompt_tokens": 50, "completion_tokens": 10, "cached_tokens": 40}
    proxy.use(service, arrived=10, ok=8, server_errors=1, refused=3, duration_usec=900_000,
              prompt_tokens=50, completion_tokens=10, cached_tokens=40, replicas=[answered],
              tokens=[counted])
    wait_for(lambda: shown(there, "compared")["figures"]["requests"] == 10)
    got = shown(there, "compared")
    (revision,) = got["revision_figures"]
    assert (revision["revision"], revision["requests"], revision["ok"]) == (1, 10, 8)
    for recent in (revision["recent"], got["figures"]["recent"]):
        assert (recent["error_ratio"], recent["p50_ms"], recent["p99_ms"]) == (0.2, 75, 99.5)
        assert recent["p50_first_byte_ms"] == 7.5 and recent["cached_tokens"] == 40
        assert recent["per_second"] > 0 and recent["tokens_per_second"] > 0
    replica = got["replica_list"][0]
    assert (replica["recent"]["mean_ms"], replica["recent"]["error_ratio"]) == (100, 0.2)
    assert "p99_ms" not in replica["recent"]
    (shown_token,) = there.user.get(f"{PATH}/compared/tokens").json["items"]
    assert shown_token["figures"] == {**{k: v for k, v in counted.items() if k != "id"},
                                      "client_errors": 0}
    with urllib.request.urlopen(there.metrics) as reply:
        metrics = reply.read().decode()
    assert 'aliquot_service_revision_requests_total{service="compared",revision="1",' \
        'class="server-error"} 1\n' in metrics
    assert 'aliquot_service_duration_seconds_bucket{service="compared",revision="1",' \
        'le="0.1"} 9\n' in metrics
    # what its replica did counts for the revision after its end
    there.node.end(session, 1)
    wait_for(lambda: all(one["session"] != session
                         for one in shown(there, "compared")["replica_list"]))
    proxy.use(service, replicas=[answered])
    wait_for(lambda: shown(there, "compared")["revision_figures"][0]["requests"] == 20)


def test_a_cold_start_is_counted(there, proxy, make):
    # Proxies of tests before went without a word, and are waited for until the time is over.
    service = make("sleeper", replicas="0-1", scaling={"window": 5, "idle": 5},
                   limits={"drain_timeout": 2})
    ready(there, "sleeper", 1)
    wait_for(lambda: any(one.get("is_draining") for one in proxy.replicas("sleeper").values()), 60,
             "the replica to drain")
    wait_for(lambda: proxy.use(service) or shown(there, "sleeper")["status"] == "sleeping", 60,
             lambda: f"the service to sleep: {shown(there, 'sleeper')}")
    assert shown(there, "sleeper")["figures"]["cold_starts"] == 0
    proxy.use(service, arrived=1, queued=1, oldest_usec=1_000_000)
    ready(there, "sleeper", 1)
    figures = wait_for(lambda: shown(there, "sleeper")["figures"]["cold_starts"]
                       and shown(there, "sleeper")["figures"])
    assert figures["cold_starts"] == 1 and figures["mean_cold_start_ms"] > 1000


RULES = ("query($id: String!) { endpoint_auto_scaling_rule_nodes(endpoint: $id) { edges { node "
         "{ comparator last_triggered_at } } } }")
ADD_RULE = ("mutation($id: String!, $props: EndpointAutoScalingRuleInput!) { "
            "create_endpoint_auto_scaling_rule_node(endpoint: $id, props: $props) { ok msg } }")
LIVE = ("query($id: UUID!) { endpoint(endpoint_id: $id) { live_stat routings { session live_stat } } }")


def test_clients_of_backendai_see_figures_and_when_rules_acted(there, proxy, make):
    service = make("ruled", replicas="1-2")
    session = ready(there, "ruled", 1)[0]
    for comparator, threshold, step in (("GREATER_THAN", "50", 1), ("LESS_THAN", "10", -1)):
        done = there.user.gql(ADD_RULE, {"id": service["id"], "props": {
            "metric_source": "kernel", "metric_name": "busy", "threshold": threshold,
            "comparator": comparator, "step_size": step, "cooldown_seconds": 60}}).json
        assert done["data"]["create_endpoint_auto_scaling_rule_node"]["ok"], done

    def triggered():
        edges = there.user.gql(RULES, {"id": service["id"]}).json["data"][
            "endpoint_auto_scaling_rule_nodes"]["edges"]
        return {edge["node"]["comparator"]: edge["node"]["last_triggered_at"] for edge in edges}
    assert triggered() == {"GREATER_THAN": None, "LESS_THAN": None}
    order = there.node.kernels[session]

    def measure():
        there.node.say({"type": "statistics", "at_usec": int(time.time() * 1e6),
                        "interval_usec": 1_000_000,
                        "metrics": [{"key": "busy", "unit": 0, "show": 0, "stats": 0}],
                        "kernels": [{"kernel_id": order["kernel_id"], "session_id": session,
                                     "attempt": order["attempt"], "values": [[0, 90, 100]]}]})
        return shown(there, "ruled")["replicas"]["wanted"] == 2
    wait_for(measure, 60, "the rule to act")
    assert triggered()["GREATER_THAN"] and not triggered()["LESS_THAN"]
    proxy.use(service, in_flight=4, arrived=1, replicas=[
        {"session_id": session, "revision": 1, "in_flight": 4, "requests": 1, "server_errors": 1}])
    wait_for(lambda: shown(there, "ruled")["figures"]["in_flight"] == 4)
    endpoint = there.user.gql(LIVE, {"id": service["id"]}).json["data"]["endpoint"]
    routing = next(one for one in endpoint["routings"] if one["session"] == session)
    for stat in (json.loads(endpoint["live_stat"]), json.loads(routing["live_stat"])):
        assert stat["in_flight"] == {"current": "4", "capacity": None, "pct": "0.00",
                                     "unit_hint": "count"}
    acted = triggered()
    there.programs["manager"].kill()
    there.node.stop()
    there.programs["manager"].start()
    wait_for(there.is_serving, 60)
    assert triggered() == acted
    there.node.incarnation = str(uuid.uuid4())  # for the end of the replica
    assert there.node.connect(there.node.hello(slots=there.node.slots))
    there.node.send({"type": "heartbeat", "incarnation": there.node.incarnation, "seq": 1, "kernels": [
        {"kernel_id": order["kernel_id"], "session_id": one, "attempt": order["attempt"],
         "state": "RUNNING", "at_usec": 1} for one, order in there.node.kernels.items()]})
    there.node.serve()
    # other rules have not acted
    done = there.user.gql(ADD_RULE, {"id": service["id"], "props": {
        "metric_source": "kernel", "metric_name": "other", "threshold": "1",
        "comparator": "GREATER_THAN_OR_EQUAL", "step_size": 1, "cooldown_seconds": 60}}).json
    assert done["data"]["create_endpoint_auto_scaling_rule_node"]["ok"], done
    assert {*triggered().values()} == {None}


def test_a_proxy_with_a_domain(there, make):
    make("addressed", replicas=0)
    proxy = Proxy(there, "wild", domain_url="https://apps.example.org:8443")
    try:
        urls = wait_for(lambda: shown(there, "addressed")["urls"])
        assert urls == ["http://127.0.0.1:5050/serve/addressed/",
                        "https://addressed--serve.apps.example.org:8443/"]
    finally:
        proxy.end()
    assert wait_for(lambda: shown(there, "addressed")["urls"] == [])


def test_a_proxy_asks_for_the_way_to_a_replica(there, proxy, make):
    service = make("reached", replicas=1)
    session = ready(there, "reached", 1)[0]
    wait_for(lambda: proxy.replicas("reached"))

    def ask(**more):
        number = "22222222-2222-3333-4444-%012d" % len(proxy.answers)
        proxy.say({"type": "app.check", "request_id": number, "session_id": session,
                   "app": "model-service", "access_key": USER[0], "service_id": service["id"],
                   **more})
        proxy.say({"type": "app.check", "request_id": "3" + number[1:], "session_id": number,
                   "app": "x", "access_key": USER[0]})  # is refused after it
        wait_for(lambda: [one for one in proxy.answers if one["request_id"] == "3" + number[1:]])
        return [one["kind"] for one in proxy.answers if one["request_id"] == number]
    assert ask() == []
    assert ask(service_id="11111111-2222-3333-4444-555555555555") == ["generic-forbidden"]
    assert ask(access_key="AKIAIOSFODNN7EXAMPLE") == ["generic-forbidden"]
    assert ask(session_id="11111111-2222-3333-4444-555555555555") == ["session-ended"]


# ---- definitions ----

DEFINITION = """
models:
  - name: digits
    model_path: /models
    service:
      start_command: python serve.py --model {model_path}
      port: 8123
      health_check: {path: /healthz, max_retries: 3}
"""


@pytest.fixture(name="storage", scope="module")
def storage_fixture(there):
    with LinkStorage(there) as storage:
        made = there.user.post("/folders", {"name": "digits", "host": "local:volume1"})
        assert made.status in (200, 201), made
        there.digits = made.json["id"]
        yield storage


def write(storage, folder, **texts):
    storage.texts = {name.replace("_", "-") + "." + ext: text for (name, ext), text in
                     ((key.rsplit("__", 1), text) for key, text in texts.items())}
    for files in storage.folders.values():
        files.clear()
        files.update({name: len(text) for name, text in storage.texts.items()})
    assert folder


def test_a_definition_in_the_folder_is_read(there, storage, make):
    write(storage, there.digits, model_definition__yaml=DEFINITION)
    one = make("defined", replicas=0, model="digits", command=None, port=None)["revision"]
    assert one["port"] == 8123 and "python serve.py --model" in one["command"]
    assert (one["health"]["path"], one["health"]["retries"]) == ("/healthz", 3)
    assert (one["model_name"], one["model_target"]) == ("digits", "/models")
    assert one["definition"] == "model-definition.yaml"
    assert one["model"].replace("-", "") == there.digits.replace("-", "")
    storage.texts["model-definition.yaml"] = DEFINITION.replace("8123", "8124")
    path = f"{PATH}/defined/revisions"
    again = there.user.post(path, {"environ": {"A": "1"}}).json["revision"]
    assert again["port"] == 8124 and again["environ"]["A"] == "1"
    assert again["command"] == one["command"]  # not wrapped twice
    given = there.user.post(path, {"port": 9000}).json["revision"]
    assert given["port"] == 9000
    assert there.user.post(path, {"tag": "x"}).status == 400
    assert there.user.post(path, {}).json["revision"]["port"] == 9000
    assert there.user.post(path, {"port": None}).json["revision"]["port"] == 8124


def test_a_definition_of_the_other_name_and_none(there, storage, make):
    write(storage, there.digits, model_definition__yml=DEFINITION)
    one = make("othername", replicas=0, model="digits", command=None, port=None)["revision"]
    assert one["definition"] == "model-definition.yml"
    write(storage, there.digits)
    one = make("nodefinition", replicas=0, model="digits")["revision"]
    assert one["definition"] is None and one["port"] == 8000
    refused = there.user.post(PATH, {"name": "portless", "image": "python:3", "model": "digits"})
    assert refused.status == 400 and "port" in refused.json["data"], refused


def test_bad_definitions(there, storage, make):
    write(storage, there.digits, model_definition__yaml="models: [{name: x, port: 1}, }")
    asked = {"name": "baddef", "image": "python:3", "model": "digits"}
    refused = there.user.post(PATH, asked)
    assert refused.status == 400 and "model-definition.yaml" in refused.json["data"]["definition"], \
        refused
    refused = there.user.post(PATH, {**asked, "definition": "nosuch.yaml"})
    assert refused.status in (400, 404) and "nosuch.yaml" in str(refused.json), refused
    storage.fails["read"] = "EIO"
    refused = there.user.post(PATH, asked)
    assert refused.status >= 500, refused
    storage.fails.clear()
    assert there.user.get(f"{PATH}/baddef").status == 404
    assert make
