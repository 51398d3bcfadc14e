# SPDX-License-Identifier: Apache-2.0
"""Every argument of every mutation and query, and each member of what they take, given wrongly:
refused by its name, and nothing is changed.

The cases are made from the schema, as clients may ask for it.
"""

import json
import re

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER
from cluster import WAITS, Cluster, batch

V1 = "/aliquot/v1"
HUGE = "x" * (1 << 18)
REPLY_MAX = 32 << 10  # what is wrong is not sent back whole
NAME, NEW = "gqlf", "gqlf-new"

TYPES = """{ __schema { queryType { fields { ...field } } mutationType { fields { ...field } }
    types { name kind fields { name } inputFields { name defaultValue type { ...type } } } } }
fragment field on __Field { name type { ...type } args { name type { ...type } } }
fragment type on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }
"""

# What is of the right type is read and left alone, as the schema says it.
WITHOUT_EFFECT = {"allowed_vfolder_hosts", "max_concurrent_sftp_sessions", "max_quota_scope_size",
                  "max_vfolder_count", "max_vfolder_size", "clientMutationId", "architecture",
                  "driver_opts", "scheduler_opts", "resource_opts", "step_size",
                  "environ"}  # the scheduler's own: it takes what it knows


# What everybody does with what is the own: see test_gql_filters.py and tests/web.
THEIR_OWN = ("createVfolderV2", "createVFolderInProject", "myRevokeLoginSession")


class Schema:
    def __init__(self, client):
        found = client.gql(TYPES).json["data"]["__schema"]
        self.mutations = [field for field in found["mutationType"]["fields"]
                          if field["name"] not in THEIR_OWN]
        # Those have no value that is wrong.
        self.queries = [field for field in found["queryType"]["fields"]
                        if field["name"] not in ("scopedAuditLogsV2", "domainProjectsV2",
                                                 "projectDeployments")]
        self.types = {shape["name"]: shape for shape in found["types"]}

    def members(self, of):
        """Of an input object's type."""
        return self.types[base_of(of)]["inputFields"] or []

    def selection(self, of):
        """Enough to be asked for: what is there without arguments and below."""
        shape = self.types[base_of(of)]
        names = [field["name"] for field in shape["fields"] or []]
        return " ".join(["__typename"] + [name for name in ("ok", "msg") if name in names])


def base_of(of):
    while of["ofType"]:
        of = of["ofType"]
    return of["name"]


def written(of):
    """As a document has it: [String]!"""
    if of["kind"] == "NON_NULL":
        return written(of["ofType"]) + "!"
    return f"[{written(of['ofType'])}]" if of["kind"] == "LIST" else of["name"]


def is_list(of):
    return of["kind"] == "LIST" or of["kind"] == "NON_NULL" and of["ofType"]["kind"] == "LIST"


# ---- wrong values ----

RAW = {"a lone surrogate": b'"\\ud800"', "another": b'"a\\udfffb"', "no UTF-8": b'"\xff\xfe"',
       "half a character": b'"\xc3"', "a surrogate's bytes": b'"\xed\xa0\x80"'}
OTHERS = (True, 1.5, {"a": 1}, [[]])
OF_OTHER_TYPES = {
    "Boolean": ("true", 1, 1.5, {"a": 1}, [[]]),
    "Int": ("5", *OTHERS, 2**31, -2**31 - 1, 10**30),
    "BigInt": ("5", *OTHERS, 2**63, -2**63 - 1, 10**30),
    "UUID": ("abc", "", 5, HUGE, *OTHERS),
    "JSONString": ("{", 5, HUGE, *OTHERS, '{"a":' * 10000 + "1" + "}" * 10000),
    "ID": OTHERS,
}
OUT_OF_RANGE = {
    "Boolean": (), "UUID": (), "Int": (-5, -2**31), "BigInt": (-5, -2**63),
    "JSONString": ('{"gqlf": "1"}', '{"cpu": "-1"}', '{"cpu": ["1"]}', '["cpu"]', '"cpu"'),
}
TEXTS = (HUGE, "a\x01b", "a\x1b[31mb", "a\x7fb", "a\x9b31mb", "a\0b")


def wrong_values(schema, name, of):
    if of["kind"] == "NON_NULL":
        yield None
        of = of["ofType"]
    typed = name not in WITHOUT_EFFECT
    if of["kind"] == "LIST":
        yield from (5, True, {"a": 1}, [[]], [{"a": 1}])
        if typed:
            yield from (["x"] * 2000, [None])
    elif schema.members(of):
        yield from (5, "text", True, [1], {"no_such_member": 1})
    else:
        yield from OF_OTHER_TYPES.get(of["name"], (5, *OTHERS))
        if typed:
            yield from OUT_OF_RANGE.get(of["name"], TEXTS)


def cases(schema, field, good):
    """(what is wrong, the variables with it) of all arguments and their members."""
    for arg in field["args"]:
        name = arg["name"]
        if arg["type"]["kind"] == "NON_NULL":
            yield name, {key: value for key, value in good.items() if key != name}
        for value in wrong_values(schema, name, arg["type"]):
            yield name, {**good, name: value}
        for member in schema.members(arg["type"]):
            given = good.get(name, {})
            if member["type"]["kind"] == "NON_NULL" and member["defaultValue"] is None:
                yield member["name"], {**good, name: {key: value for key, value in given.items()
                                                      if key != member["name"]}}
            for value in wrong_values(schema, member["name"], member["type"]):
                yield member["name"], {**good, name: {**given, member["name"]: value}}


def ask(client, schema, root, field, variables):
    args = [arg for arg in field["args"] if arg["name"] in variables]
    head = ", ".join(f"${arg['name']}: {written(arg['type'])}" for arg in args)
    given = ", ".join(f"{arg['name']}: ${arg['name']}" for arg in args)
    below = schema.selection(field["type"])
    return client.post("/admin/gql", {
        "query": f"{root} {f'({head})' if head else ''} {{ {field['name']}"
                 f"{f'({given})' if given else ''} {below and f'{{ {below} }}'} }}",
        "variables": variables})


def refusal(reply, name):
    """What is said, or None: it was not refused."""
    if reply.json.get("errors"):
        return json.dumps(reply.json["errors"])
    done = reply.json["data"][name]
    return done["msg"] if isinstance(done, dict) and done.get("ok") is False else None


# ---- mutations ----

@pytest.fixture(scope="module")
def own():
    """A cluster of this file's own, for what is left in it."""
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        for key in (ADMIN, DOMAIN_ADMIN, USER):
            cluster.client().send("PATCH", f"{V1}/keypairs/{key[0]}", {"rate_limit": 0})
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def root(own):
    return own.client()


@pytest.fixture(scope="module")
def schema(root):
    return Schema(root)


def make(client, query, **variables):
    reply = client.gql(query, variables)
    assert not reply.json.get("errors"), reply
    [done] = reply.json["data"].values()
    assert done.get("ok", True) is True, done
    return done


@pytest.fixture(scope="module")
def there(root, own):
    """One of each kind of object, of which every change but the one that is wrong would be right."""
    make(root, f'mutation {{ create_domain(name: "{NAME}", props: {{}}) {{ ok msg }} }}')
    gid = make(root, f'mutation {{ create_group(name: "{NAME}", props: {{domain_name: "{NAME}"}})'
                      ' { ok msg group { id } } }')["group"]["id"]
    make(root, f'mutation {{ create_user(email: "{NAME}@example.com", props: {{domain_name: "{NAME}",'
                ' password: "long enough"}) { ok msg } }')
    for kind in ("keypair_resource_policy", "user_resource_policy", "project_resource_policy",
                 "scaling_group"):
        make(root, f'mutation {{ create_{kind}(name: "{NAME}", props: {{}}) {{ ok msg }} }}')
    make(root, f'mutation {{ create_resource_preset(name: "{NAME}", props: {{resource_slots: "{{'
                r'\"cpu\": \"1\"}"}) { ok msg } }')
    make(root, f'mutation {{ create_container_registry(hostname: "{NAME}.example:5000", props: {{'
                'url: "https://x", type: "docker"}) { container_registry { hostname } } }')
    root.send("PUT", f"{V1}/image-aliases/{NAME}", {"image": "debian:12"})
    session = root.post("/session", batch(NAME, "true", **WAITS)).json["sessionId"]
    [user] = [row["id"] for row in root.get(V1 + "/users?limit=1000").json["items"]
              if row["email"] == NAME + "@example.com"]
    [key] = [row["access_key"] for row in root.get(V1 + "/keypairs?limit=1000").json["items"]
             if row["user"] == NAME + "@example.com"]
    service = root.post(f"{V1}/model-services", {"name": NAME, "image": "sh", "command": "serve",
                                                 "port": 8000, "replicas": 0}).json["id"]
    rule = make(root, "mutation ($props: EndpointAutoScalingRuleInput!) {"
                      f' create_endpoint_auto_scaling_rule_node(endpoint: "{service}", props: $props)'
                      " { ok msg rule { row_id } } }", props=RULE)["rule"]["row_id"]
    token = root.post(f"{V1}/model-services/{NAME}/tokens", {}).json["id"]
    revision = root.gql(f'{{ deployment(id: "{service}") {{ currentRevisionId }} }}').json["data"]
    project = root.gql("{ groups_by_name(name: \"default\") { id } }").json["data"]["groups_by_name"]
    return {"gid": gid, "session": session, "access_key": key, "user": user,
            "agent": own.agent()["id"], "service": service, "rule": rule, "token": token,
            "revision": revision["deployment"]["currentRevisionId"], "project": project[0]["id"]}


RULE = {"metric_source": "kernel", "metric_name": "cpu_util", "threshold": "1",
        "comparator": "less_than", "step_size": 1, "cooldown_seconds": 1}


def deployment_inputs(there):
    """Of mutations that know model services as deployments; agents have no image for a revision."""
    of, service = {"modelDeploymentId": there["service"]}, {"id": there["service"]}
    return {
        "createModelDeployment": {
            "metadata": {"projectId": there["project"], "name": NEW},
            "networkAccess": {"openToPublic": False}, "replicaCount": 0,
            "defaultDeploymentStrategy": {"type": "ROLLING"}},
        "updateModelDeployment": service, "deleteModelDeployment": service,
        "addModelRevision": {
            "deploymentId": there["service"], "clusterConfig": {"mode": "SINGLE_NODE", "size": 1},
            "resourceConfig": {"resourceSlots": {"entries": []}}, "image": {"id": "none"},
            "modelRuntimeConfig": {"runtimeVariantId": there["service"]}},
        "activateDeploymentRevision": {"deploymentId": there["service"], "revisionId": there["revision"]},
        "createAccessToken": of, "deleteAccessToken": {"id": there["token"]},
        "createAutoScalingRule": {**of, "metricSource": "KERNEL", "metricName": "cpu_util",
                                  "maxThreshold": "1", "stepSize": 1, "timeWindow": 1},
        "updateAutoScalingRule": {"id": there["rule"], "stepSize": 2},
        "deleteAutoScalingRule": {"id": there["rule"]},
    }


def good_of(field, there):
    """What the arguments must be for the mutation to be done, were nothing wrong."""
    name = field["name"]
    is_new = name.startswith("create")
    own = NEW if is_new else NAME
    values = {
        "name": own, "gid": there["gid"], "user_group": there["gid"], "domain": NAME,
        "email": own + "@example.com", "user_id": NAME + "@example.com",
        "access_key": there["access_key"], "scaling_group": NAME, "scaling_groups": [NAME],
        "hostname": own + ".example:5000", "registry_name": NEW + ".example:5000", "type": "docker",
        "url": "https://x", "references": ["debian:12"], "target_agents": [there["agent"]],
        "reference": "debian:12", "target": "debian:12", "image_id": "debian:12", "alias": NEW,
        "id": there["agent"] if name == "modify_agent" else NAME + ".example:5000",
        "input": {"id": there["session"], "priority": 10},
        "props": {}, "userId": there["user"], "agent_id": there["agent"],
        "endpoint_id": there["service"], "endpoint": there["service"],
    }
    values["input"] = deployment_inputs(there).get(name, values["input"])
    if name.endswith("_endpoint_auto_scaling_rule_node"):
        values.update(id=there["rule"], props=RULE if is_new else {"threshold": "2"})
    elif name == "modify_endpoint":
        values["props"] = {"replicas": 0}
    if name == "create_group" or name == "create_user":
        values["props"] = {"domain_name": NAME}
    elif name == "adminCreateUserV2":
        values["input"] = {"email": NEW + "@example.com", "username": NEW, "password": "long enough",
                           "domainName": NAME, "needPasswordChange": False, "status": "ACTIVE",
                           "role": "USER"}
    elif name == "updateUserV2":
        values["input"] = {"fullName": "Said"}
    elif name == "adminUpdateKeypairResourcePolicyV2":
        values["input"] = {"allowedVfolderHosts": [{"host": "x", "permissions": ["upload-file"]}]}
    elif name == "adminUpdateUserV2":
        values["input"] = {"description": "said"}
    elif name == "adminBulkUpdateUsersV2":
        values["input"] = {"users": [{"userId": there["user"], "input": {"description": "said"}}]}
    elif name == "adminBulkPurgeUsersV2":
        values["input"] = {"userIds": [there["user"]]}
    elif name == "modify_group":
        values["props"] = {"user_update_mode": "add", "user_uuids": [there["user"]]}
    elif name == "modify_image":
        values["props"] = {"resource_limits": [{"key": "cpu", "min": "1"}]}
    elif name == "create_resource_preset":
        values["props"] = {"resource_slots": '{"cpu": "1"}'}
    elif name == "create_container_registry":
        values["props"] = {"url": "https://x", "type": "docker"}
    elif name == "create_container_registry_node_v2":
        values["props"] = {"url": "https://x", "type": "docker",
                           "registry_name": NEW + ".example:5000"}
    required = [arg["name"] for arg in field["args"] if arg["type"]["kind"] == "NON_NULL"
                or arg["name"] == "name" and name.endswith("_resource_preset")]
    return {arg: values[arg] for arg in required}


def all_there_is(client):
    """What mutations change, and how much the audit log has of it."""
    kinds = ("domains", "groups", "users", "keypairs", "keypair-policies", "resource-groups",
             "registries", "resource-presets", "image-aliases", "image-limits")
    shown = {kind: client.get(f"{V1}/{kind}?limit=1000&all=true").json.get("items") for kind in kinds}
    for key in shown["keypairs"]:
        key.pop("last_used", None), key.pop("last_used_at", None), key.pop("num_queries", None)
    shown["services"] = client.get(f"{V1}/model-services?all=true").json["items"]
    shown["owners"] = client.gql("{ user_resource_policies { name max_vfolder_count }"
                                 " project_resource_policies { name max_vfolder_count } }").json
    shown["audit"] = client.get(V1 + "/audit-log?limit=1").json["total"]
    return shown


def is_unreadable(reply):
    """The body's JSON is refused before anything of it is looked at."""
    return reply.status == 400 and reply.slug in ("invalid-api-params", "generic-bad-request")


def fault_of(reply, root, member):
    """What is wrong with the reply to a wrong value of this argument or member; None: nothing."""
    if is_unreadable(reply):
        return None
    if reply.status != 200 or len(reply.body) > REPLY_MAX:
        return f"status {reply.status}, {len(reply.body)} bytes"
    said = refusal(reply, root)
    if said is None:
        return "done"
    is_missing = any(words in said for words in ("there is no ", "No such ", "no agent has",
                                                 "is not on this"))
    return None if is_missing or re.search(rf"\b{member}\b", said) else "it is not named"


@pytest.mark.exhaustive
def test_wrong_arguments_of_mutations(root, schema, there):
    findings, count = [], 0
    before = all_there_is(root)
    for field in schema.mutations:
        if field["name"] == "clear_images":
            continue  # of no registry that there is, none: done
        for member, variables in cases(schema, field, good_of(field, there)):
            reply = ask(root, schema, "mutation", field, variables)
            fault = fault_of(reply, field["name"], member)
            if fault:
                findings.append((fault, field["name"], member, str(variables)[:200], str(reply)[:300]))
            count += 1
        after = all_there_is(root)
        findings += [("changed", field["name"], kind) for kind in after if after[kind] != before[kind]]
        before = after
    assert not findings, "\n".join(map(str, findings))
    assert count > 2500


RAW = (b'"\\ud800"', b'"a\\udfffb"', b'"\xff\xfe"', b'"\xc3"', b'"\xed\xa0\x80"')


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_texts_that_are_none_are_refused_whole(root, schema, there, raw):
    """JSON has no name yet where its bytes cannot be read; the mutation is not begun."""
    before = all_there_is(root)
    for field in schema.mutations:
        good = good_of(field, there)
        body = json.dumps({"query": f"mutation {{ {field['name']} }}", "variables": {
            **good, field["args"][0]["name"]: "PLACE"}}).encode().replace(b'"PLACE"', raw)
        reply = root.post("/admin/gql", body)
        assert is_unreadable(reply), (field["name"], reply)
        assert "not valid JSON" in reply.json["data"]["body"], reply
    assert all_there_is(root) == before


# ---- queries ----

QUERY_VALUES = {  # beside those of another type
    "limit": (-1, 0, 1001, 2**31 - 1, -2**31), "offset": (-1, -2**31, 2**31 - 1),
    "first": (-1, 0, 101, 2**31 - 1), "last": (-1, 0, 101, 2**31 - 1),
    "filter": ("name ==", "nope == 1", "(" * 5000, HUGE, "name == 'a\x01'", "name ilike " + "'%" * 1000),
    "order": ("nope", "-", "+" * 1000, HUGE, "name,name,nope", "a\x01b"),
    "after": ("abc", "!!", HUGE, "a\x01b"), "before": ("abc", "!!", HUGE, "a\x01b"),
    "id": ("abc", "!!", "", HUGE, "VXNlck5vZGU6", "a\x01b"), "scope": ("abc", "user:", "domain:\x01", HUGE),
    "scope_id": ("abc", "user:", HUGE), "status": ("NOPE", HUGE, "a\x01b"),
}
# Of these some values are right: they find something, or nothing.
FINDS = ("limit", "offset", "first", "last", "filter", "order", "after", "before", "id", "scope",
         "scope_id", "status")


def good_query(field, there):
    """What the query cannot do without."""
    values = {"Int": 1, "UUID": there["gid"], "String": NAME, "ID": there["session"],
              "GlobalIDField": there["session"], "ScopeField": "system"}
    if field["name"] == "endpoint_auto_scaling_rule_nodes":
        values["String"] = there["service"]
    return {arg["name"]: values[base_of(arg["type"])] for arg in field["args"]
            if arg["type"]["kind"] == "NON_NULL"}


@pytest.mark.exhaustive
def test_wrong_arguments_of_queries(own, root, schema, there):
    user = own.client(USER)
    findings, count = [], 0
    for field in schema.queries:
        for member, variables in cases(schema, field, good_query(field, there)):
            reply = ask(root, schema, "query", field, variables)
            fault = None if is_unreadable(reply) else reply.status != 200 or len(reply.body) > REPLY_MAX
            is_text = isinstance(variables.get(member), str) or variables.get(member) == ["x"] * 2000
            if not fault and reply.status == 200 and not reply.json.get("errors"):
                shown = reply.json["data"][field["name"]]
                fault = not (is_text or member in FINDS or variables.get(member) == [None]) and shown
            if fault:
                findings.append((field["name"], member, str(variables)[:200], str(reply)[:300]))
            count += 1
        for member in {arg["name"] for arg in field["args"]} & set(QUERY_VALUES):
            for value in QUERY_VALUES[member]:
                for client in (root, user):
                    reply = ask(client, schema, "query", field,
                                {**good_query(field, there), member: value})
                    if reply.status != 200 or len(reply.body) > REPLY_MAX or NAME in str(reply) and client is user:
                        findings.append((field["name"], member, str(value)[:100], str(reply)[:300]))
                    count += 1
    assert not findings, "\n".join(map(str, findings))
    assert count > 500


# ---- other people's objects ----

def test_others_learn_nothing_of_what_there_is(own, root, schema, there):
    """A refusal is the same whether the object is there or not."""
    before = all_there_is(root)
    for keypair in (DOMAIN_ADMIN, USER):
        client = own.client(keypair)
        for field in schema.mutations:
            if (keypair is DOMAIN_ADMIN and ("endpoint" in field["name"]
                                             or field["name"] in deployment_inputs(there)
                                             or field["name"] == "modify_compute_session")
                    or field["name"] in ("updateUserV2", "createModelDeployment")):
                continue  # session and service are of the same domain; of oneself
            good = good_of(field, there)
            text = json.dumps(good).replace(NAME, "nobody").replace(
                there["gid"], "00000000-0000-4000-8000-000000000000").replace(
                there["session"], "00000000-0000-4000-8000-000000000000").replace(
                there["service"], "00000000-0000-4000-8000-000000000000").replace(
                there["rule"], "00000000-0000-4000-8000-000000000000").replace(
                there["access_key"], "AKIANOBODYHASTHISKEY")
            replies = [ask(client, schema, "mutation", field, variables)
                       for variables in (good, json.loads(text))]
            said = [re.sub("[0-9a-f-]{36}", "ID", refusal(reply, field["name"]))
                    for reply in replies]
            assert said[0] and said[0] == said[1], (field["name"], replies)
    after = all_there_is(root)
    assert {**after, "audit": 0} == {**before, "audit": 0}
