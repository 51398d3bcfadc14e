# SPDX-License-Identifier: Apache-2.0
"""/services and GraphQL of model services, as clients of Backend.AI call them. Node and proxy are
played; tests/compat/test_service_clients.py has the real clients."""

import itertools
import time

import pytest

from client import ADMIN, USER
from cluster import Cluster, wait_for
from played_serving import Node, Proxy

numbers = itertools.count(1)
OURS = "/aliquot/v1/model-services"


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_AGENTS_HEARTBEAT="300s", ALIQUOT_AGENTS_TIMEOUT="1h") as cluster:
        cluster.start_manager()
        cluster.node, cluster.proxy = Node(cluster), Proxy(cluster)
        cluster.user, cluster.admin = cluster.client(USER), cluster.client(ADMIN)
        yield cluster
        cluster.proxy.end()
        cluster.node.stop()
        cluster.stop()


def body(name, replicas=0, **more):
    return {"name": name, "replicas": replicas, "image": "python:3", "arch": "x86_64",
            "group": "default", "domain": "default", "cluster_size": 1,
            "cluster_mode": "single-node", "startup_command": "serve", "open_to_public": False,
            "runtime_variant": "cmd",
            "config": {"environ": {"A": "1"}, "scaling_group": "default",
                       "resources": {"cpu": "1", "mem": "64m"}, "resource_opts": {"shmem": "16m"},
                       **more.pop("config", {})}, **more}


@pytest.fixture(name="make")
def make_fixture(there):
    made = []

    def make(replicas=0, **more):
        name = f"svc-{next(numbers)}"
        reply = there.user.post("/services", body(name, replicas, runtime_variant="vllm", **more))
        assert reply.status == 201, reply
        made.append(reply.json["endpoint_id"])
        return {"name": name, **reply.json}
    yield make
    for one in made:
        there.user.delete(f"{OURS}/{one}?force=true")
    wait_for(lambda: not there.user.get(OURS).json["items"], 60,
             lambda: f"the services to end: {[there.user.get(f'{OURS}/{one}').json for one in made]}")


def ask(client, query, **variables):
    reply = client.gql(query, variables).json
    assert "errors" not in reply, reply
    return reply["data"]


def fails(client, query, **variables):
    reply = client.gql(query, variables).json
    return reply["errors"][0]["message"]


def run_replicas(there, service, count):
    """They run and are ready; their sessions."""
    def all_run():
        found = [one["session"] for one in
                 there.user.get(f"{OURS}/{service}").json["replica_list"] if not one["draining"]]
        return len(found) == count and set(found) <= set(there.node.kernels) and found
    sessions = wait_for(all_run, 60, lambda: there.user.get(f"{OURS}/{service}").json)
    for session in sessions:
        there.node.health(session)
    wait_for(lambda: there.user.get(f"{OURS}/{service}").json["replicas"]["ready"] == count)
    return sessions


def test_rest(there, make):
    made = make(2)
    assert made["replicas"] == made["desired_session_count"] == 2 and not made["is_public"]
    assert made["active_routes"] == [] and made["runtime_variant"] == "vllm"
    path = f"/services/{made['endpoint_id']}"
    sessions = run_replicas(there, made["endpoint_id"], 2)
    shown = there.user.get(path).json
    assert {one["route_id"] for one in shown["active_routes"]} == set(sessions)
    assert shown["service_endpoint"].endswith(f"/serve/{made['name']}/")
    listed = there.user.get(f"/services?name={made['name']}").json
    assert [(one["id"], one["active_route_count"]) for one in listed] == [(made["endpoint_id"], 2)]
    assert there.user.get("/services?name=nosuch").json == []
    found = there.user.post("/services/_/search", {"filter": {"name": {"iContains": "SVC"}},
                                                   "limit": 1}).json
    assert found["pagination"]["limit"] == 1 and found["items"][0]["resource_slots"]["cpu"] == "1"
    assert there.user.post(path + "/sync").json == {"success": True}
    # one replica less, and the one that was named
    assert there.user.delete(f"{path}/routings/{sessions[1]}").json == {"success": True}
    wait_for(lambda: [one["route_id"] for one in there.user.get(path).json["active_routes"]]
             == [sessions[0]])
    assert there.user.get(path).json["replicas"] == 1
    assert there.user.delete(f"{path}/routings/{sessions[1]}").status == 404
    ratio = there.user.send("PUT", f"{path}/routings/{sessions[0]}", {"traffic_ratio": 0.25})
    assert ratio.json == {"success": True}
    assert there.user.get(path).json["active_routes"][0]["traffic_ratio"] == 0.25
    scaled = there.user.post(path + "/scale", {"to": 3}).json
    assert scaled["target_count"] == 3 and scaled["current_route_count"] >= 1
    assert there.user.get(f"{OURS}/{made['name']}").json["replicas"]["max"] == 3
    run_replicas(there, made["endpoint_id"], 3)
    assert there.user.delete(path).json == {"success": True}
    assert there.user.get("/services/_/runtimes").json["runtimes"][0]["human_readable_name"]


def test_failures_are_told_and_forgotten(there, make):
    there.node.fails = True
    try:
        made = make(1)
        path = f"/services/{made['endpoint_id']}"
        wait_for(lambda: there.user.get(path + "/errors").json["retries"] >= 1, 60)
        told = there.user.get(path + "/errors").json
        assert told["errors"][0]["error"]["repr"]
        data = ask(there.user, "query($id: UUID!) { endpoint(endpoint_id: $id) { status retries "
                   "errors { session_id errors { repr } } } }", id=made["endpoint_id"])["endpoint"]
        assert data["status"] == "UNHEALTHY" and data["retries"] >= 1
        assert data["errors"][0]["errors"][0]["repr"]
    finally:
        there.node.fails = False
    assert there.user.post(path + "/errors/clear").status == 204
    run_replicas(there, made["endpoint_id"], 1)


def test_tokens(there, make):
    made = make()
    path = f"/services/{made['endpoint_id']}/token"
    token = there.user.post(path, {"duration": "3d"}).json["token"]
    assert token.startswith("aqs-")
    until = int(time.time()) + 3600
    assert there.user.post(path, {"valid_until": until}).json["token"] != token
    for wrong, field in (({}, "duration"), ({"valid_until": 1000}, "valid_until"),
                         ({"duration": "soon"}, "duration"),
                         ({"duration": "1h", "valid_until": until}, "valid_until")):
        reply = there.user.post(path, wrong)
        assert reply.status == 400 and field in reply.json["data"], reply
    listed = ask(there.user, "query($id: UUID!) { endpoint_token_list(limit: 10, offset: 0, "
                 "endpoint_id: $id) { total_count items { id token endpoint_id domain project "
                 "session_owner created_at valid_until } } }", id=made["endpoint_id"])
    page = listed["endpoint_token_list"]
    assert page["total_count"] == 2 and token not in str(page)
    assert page["items"][0]["id"][:8] in page["items"][0]["token"]
    one = ask(there.user, "query($t: String!) { endpoint_token(token: $t) { valid_until } }",
              t=page["items"][1]["id"])
    assert one["endpoint_token"]["valid_until"] == page["items"][1]["valid_until"]


@pytest.mark.parametrize("more, field", (
    ({"name": "abc"}, "name"), ({"replicas": -1}, "replicas"), ({"replicas": 1000}, "replicas"),
    ({"config": {"extra_mounts": {"a:b": {}}}}, "config.extra_mounts"),
    ({"config": {"nosuch": 1}}, "config.nosuch"), ({"callback_url": "http://x"}, "callback_url"),
    ({"config": {"resources": {"cpu": "-1"}}}, "resources.cpu"), ({"tag": "aliquot:trial"}, "tag"),
    ({"runtime_variant": "nosuch"}, "runtime")))
def test_refused(there, more, field):
    reply = there.user.post("/services", {**body(f"svc-{next(numbers)}"), **more})
    assert reply.status == 400 and field in reply.json["data"], reply


def test_other_spellings(there, make):
    made = make()
    for more in ({"clientSessionToken": "svc-old", "desired_session_count": 0, "lang": "python:3",
                  "groupName": "default", "domainName": "default", "clusterSize": 1,
                  "clusterMode": "single-node", "startupCommand": "serve", "openToPublic": True,
                  "runtimeVariant": "vllm", "config": {"resources": {"cpu": 1, "mem": "64m"},
                                                       "modelVersion": 1, "scalingGroup": None}},):
        reply = there.user.post("/services", more)
        assert reply.status == 201 and reply.json["is_public"], reply
        assert there.user.delete(f"/services/{reply.json['endpoint_id']}").status == 200
    again = there.user.post("/services", body(made["name"], runtime_variant="vllm"))
    assert again.status == 409, again


ENDPOINT = """endpoint_id name image domain project resource_group resource_slots url model
    model_definition_path model_vfolder { name } model_mount_destination extra_mounts { name }
    created_user created_user_email session_owner session_owner_email tag startup_command
    bootstrap_script callback_url environ resource_opts replicas desired_session_count cluster_mode
    cluster_size open_to_public runtime_variant { name human_readable_name } created_at destroyed_at
    routings { routing_id endpoint session status health_status traffic_ratio created_at error_data
    live_stat } retries status lifecycle_stage errors { session_id } live_stat"""
LIST = ("query($f: String, $o: String) { endpoint_list(limit: 10, offset: 0, filter: $f, order: $o)"
        " { total_count items { name status lifecycle_stage routings { status } } } }")


def test_endpoints(there, make):
    first, second = make(1, tag="blue"), make(0, open_to_public=True)
    session, = run_replicas(there, first["endpoint_id"], 1)
    one = ask(there.user, "query($id: UUID!) { endpoint(endpoint_id: $id) { " + ENDPOINT + " } }",
              id=first["endpoint_id"])["endpoint"]
    assert (one["name"], one["status"], one["lifecycle_stage"]) == (first["name"], "HEALTHY", "created")
    assert one["runtime_variant"] == {"name": "vllm", "human_readable_name": "vLLM"}
    assert one["tag"] == "blue" and one["session_owner_email"] == "user@lablup.com"
    assert one["resource_opts"] == '{"shmem":"16m"}' and '"A":"1"' in one["environ"]
    assert [(route["session"], route["status"], route["traffic_ratio"])
            for route in one["routings"]] == [(session, "HEALTHY", 1.0)]
    page = ask(there.user, LIST, f=None, o=None)["endpoint_list"]
    assert [item["name"] for item in page["items"]] == [second["name"], first["name"]]
    for chosen, names in ((f'name == "{first["name"]}"', [first["name"]]),
                          ("open_to_public == true", [second["name"]]),
                          ('lifecycle_stage != "destroyed" & tag == "blue"', [first["name"]]),
                          ('created_user_email ilike "%lablup%"', [second["name"], first["name"]])):
        page = ask(there.user, LIST, f=chosen, o=None)["endpoint_list"]
        assert [item["name"] for item in page["items"]] == names, chosen
    page = ask(there.user, LIST, f=None, o="created_at")["endpoint_list"]
    assert [item["name"] for item in page["items"]] == [first["name"], second["name"]]
    assert "filter" in fails(there.user, LIST, f="nosuch == 1", o=None).lower()
    routes = ask(there.user, "query($id: UUID) { routing_list(limit: 5, offset: 0, endpoint_id: $id, "
                 "filter: \"status == 'healthy'\") { total_count items { session } } }".replace(
                     "'", '\\"'), id=first["endpoint_id"])["routing_list"]
    assert routes == {"total_count": 1, "items": [{"session": session}]}
    route = ask(there.user, "query($id: UUID!) { routing(routing_id: $id) { endpoint status } }",
                id=session)["routing"]
    assert route == {"endpoint": one["url"], "status": "HEALTHY"}


def test_those_that_have_ended(there, make):
    made = make()
    assert there.user.delete(f"/services/{made['endpoint_id']}").status == 200
    wait_for(lambda: there.user.get(f"{OURS}/{made['endpoint_id']}").json["status"] == "ended")
    page = ask(there.user, LIST, f=f'name == "{made["name"]}"', o=None)["endpoint_list"]
    assert page["total_count"] == 0
    page = ask(there.user, LIST, f=f'name == "{made["name"]}" & lifecycle_stage == "destroyed"',
               o=None)["endpoint_list"]
    assert [item["status"] for item in page["items"]] == ["DESTROYED"]
    one = ask(there.user, "query($id: UUID!) { endpoint(endpoint_id: $id) { destroyed_at url } }",
              id=made["endpoint_id"])["endpoint"]
    assert one["destroyed_at"] and one["url"] is None


def test_nobody_sees_those_of_others(there, make):
    made = make()
    person = there.admin.post("/aliquot/v1/users", {"email": "other@lablup.com", "domain": "default",
                                                    "groups": ["default"]}).json
    key = there.admin.post("/aliquot/v1/keypairs", {"user": person["email"]}).json
    other = there.client((key["access_key"], key["secret_key"]))
    query = "query($id: UUID!) { endpoint(endpoint_id: $id) { name } }"
    assert "no such" in fails(other, query, id=made["endpoint_id"])
    assert other.get(f"/services/{made['endpoint_id']}").status == 404
    assert other.post(f"/services/{made['endpoint_id']}/scale", {"to": 0}).status == 404
    assert ask(there.admin, query, id=made["endpoint_id"])["endpoint"]["name"] == made["name"]


MODIFY = ("mutation($id: UUID!, $props: ModifyEndpointInput!) { modify_endpoint(endpoint_id: $id, "
          "props: $props) { ok msg endpoint { replicas open_to_public environ image "
          "resource_slots cluster_size } } }")


def test_modify(there, make):
    made = make()
    path = f"{OURS}/{made['name']}"

    def modify(**props):
        return ask(there.user, MODIFY, id=made["endpoint_id"], props=props)["modify_endpoint"]
    done = modify(replicas=0, open_to_public=True)
    assert done["ok"] and done["endpoint"]["open_to_public"], done
    assert there.user.get(path).json["revision"]["number"] == 1
    done = modify(environ='{"B": "2"}', resource_slots='{"cpu": "2", "mem": "128m"}',
                  resource_opts='{"shmem": "32m"}', cluster_mode="SINGLE_NODE",
                  image={"name": "python:3"}, name=made["name"])
    assert done["ok"] and done["endpoint"]["environ"].count("B"), done
    shown = there.user.get(path).json
    assert shown["revision"]["number"] == 2 and shown["revision"]["shmem"] == "32m"
    assert shown["revision"]["resources"]["cpu"] == "2" and shown["public"]
    for props, text in (({"name": "another"}, "name"), ({"replicas": -1}, "replicas"),
                        ({"environ": "[]"}, "environ"), ({"cluster_size": 0}, "cluster_size"),
                        ({"cluster_mode": "x"}, "cluster_mode"),
                        ({"runtime_variant": "nosuch"}, "runtime"),
                        ({"extra_mounts": [{"vfolder_id": "a/b"}]}, "extra_mounts"),
                        ({"resource_slots": '{"cpu": "x"}'}, "resource_slots.cpu")):
        done = modify(**props)
        assert not done["ok"] and text in done["msg"], (props, done)
    assert there.user.get(path).json["revision"]["number"] == 2


RULES = ("query($id: String!) { endpoint_auto_scaling_rule_nodes(endpoint: $id) { count edges { node "
         "{ id row_id metric_source metric_name threshold comparator step_size cooldown_seconds "
         "min_replicas max_replicas created_at last_triggered_at endpoint } } } }")
CREATE = ("mutation($id: String!, $props: EndpointAutoScalingRuleInput!) { "
          "create_endpoint_auto_scaling_rule_node(endpoint: $id, props: $props) { ok msg rule { "
          "row_id created_at } } }")
CHANGE = ("mutation($id: String!, $props: ModifyEndpointAutoScalingRuleInput!) { "
          "modify_endpoint_auto_scaling_rule_node(id: $id, props: $props) { ok rule { threshold "
          "comparator min_replicas max_replicas metric_source } } }")
DELETE = "mutation($id: String!) { delete_endpoint_auto_scaling_rule_node(id: $id) { ok msg } }"
PROPS = {"metric_source": "kernel", "metric_name": "cpu_util", "threshold": "80",
         "comparator": "GREATER_THAN", "step_size": 1, "cooldown_seconds": 60, "min_replicas": None,
         "max_replicas": 5}


def test_rules(there, make):
    made = make()
    endpoint = made["endpoint_id"]
    assert ask(there.user, RULES, id=endpoint)["endpoint_auto_scaling_rule_nodes"]["count"] == 0
    rule = ask(there.user, CREATE, id=endpoint, props=PROPS)
    rule = rule["create_endpoint_auto_scaling_rule_node"]["rule"]
    assert rule["created_at"]
    ask(there.user, CREATE, id=endpoint, props={**PROPS, "comparator": "less_than_or_equal",
                                                "step_size": -1, "threshold": "20.5"})
    page = ask(there.user, RULES, id=endpoint)["endpoint_auto_scaling_rule_nodes"]
    nodes = [edge["node"] for edge in page["edges"]]
    assert [(one["metric_source"], one["comparator"], one["threshold"], one["step_size"],
             one["min_replicas"], one["max_replicas"], one["cooldown_seconds"], one["endpoint"])
            for one in nodes] == [
        ("KERNEL", "GREATER_THAN", "80", 1, None, 5, 60, endpoint),
        ("KERNEL", "LESS_THAN_OR_EQUAL", "20.5", -1, None, 5, 60, endpoint)]
    changed = ask(there.user, CHANGE, id=nodes[0]["id"],
                  props={"max_replicas": None, "min_replicas": 1, "threshold": "85",
                         "comparator": "greater_than_or_equal"})
    assert changed["modify_endpoint_auto_scaling_rule_node"]["rule"] == {
        "threshold": "85", "comparator": "GREATER_THAN_OR_EQUAL", "min_replicas": 1,
        "max_replicas": None, "metric_source": "KERNEL"}
    shown = there.user.get(f"{OURS}/{made['name']}").json
    assert shown["version"] == 4
    for source, name, signal in (("inference_framework", "vllm:num_requests_waiting", "metric"),
                                 ("PROMETHEUS", "sum(up)", "prometheus")):
        changed = ask(there.user, CHANGE, id=rule["row_id"],
                      props={"metric_source": source, "metric_name": name})
        assert changed["modify_endpoint_auto_scaling_rule_node"]["rule"]["metric_source"] == \
            source.upper()
        first = there.user.get(f"{OURS}/{made['name']}").json["scaling"]["rules"][0]
        assert first["signal"] == signal and name in (first.get("name"), first.get("query"))
    assert "name of a metric" in fails(there.user, CHANGE, id=rule["row_id"], props={
        "metric_source": "INFERENCE_FRAMEWORK", "metric_name": "rate(x[1m])"})
    for props, text in (({"threshold": "high"}, "threshold"), ({"metric_source": "x"}, "metric_source"),
                        ({"comparator": "equal"}, "comparator"), ({"step_size": 0}, "step"),
                        ({"cooldown_seconds": -1}, "cooldown_seconds"),
                        ({"max_replicas": 100000}, "max_replicas")):
        assert text in fails(there.user, CHANGE, id=rule["row_id"], props=props), props
    assert ask(there.user, DELETE, id=rule["row_id"])["delete_endpoint_auto_scaling_rule_node"]["ok"]
    assert "no auto-scaling rule" in fails(there.user, DELETE, id=rule["row_id"])
    assert ask(there.user, RULES, id=endpoint)["endpoint_auto_scaling_rule_nodes"]["count"] == 1


def test_a_trial_is_removed(there):
    def trials():
        return [one for one in there.user.get(OURS).json["items"] if one["tag"] == "aliquot:trial"]
    for is_good in True, False:
        reply = there.user.post("/services/_/try", body("svc-x", 1, runtime_variant="vllm"))
        assert reply.status == 200 and reply.json["task_id"], reply
        trial, = trials()
        session, = wait_for(lambda: [
            one["session"] for one in there.user.get(f"{OURS}/{trial['id']}").json["replica_list"]
            if one["session"] in there.node.kernels])
        if is_good:
            there.node.health(session)
        else:
            there.node.end(session, 3)
        wait_for(lambda: not trials(), 60, "the trial to be removed")


def test_a_trial_has_a_service_of_its_own(there):
    revision = {"image": "python:3", "command": "serve", "port": 8000,
                "resources": {"cpu": "1", "mem": "64m"}}
    reply = there.user.post(f"{OURS}/_/try", revision)
    assert reply.status == 200 and set(reply.json) == {"task_id", "name"}, reply
    trial = there.user.get(f"{OURS}/{reply.json['name']}").json
    assert (trial["tag"], trial["public"], trial["replicas"]["max"]) == ("aliquot:trial", False, 1)
    assert there.user.delete(f"{OURS}/{trial['id']}").status == 204
    for member in "name", "replicas", "public", "tag":
        reply = there.user.post(f"{OURS}/_/try", {**revision, member: "x"})
        assert reply.status == 400 and member in str(reply.json), reply


def test_a_trial_ends_with_its_manager(there):
    reply = there.user.post("/services/_/try", body("svc-y", 1, runtime_variant="vllm"))
    assert reply.status == 200, reply
    there.programs["manager"].kill()
    there.node.stop()
    there.start_manager()
    there.node.start()  # it has been given the replica, or not
    wait_for(lambda: all(one["tag"] != "aliquot:trial" for one in there.user.get(OURS).json["items"]),
             60, "the trial to be removed")
