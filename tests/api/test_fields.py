# SPDX-License-Identifier: Apache-2.0
"""Every parameter of every route, given wrongly: refused with its name, before anything is done.

The cases are made from the route table's own documentation.
"""

import json
import re

import pytest

HUGE = "x" * (1 << 18)


@pytest.fixture(scope="module")
def routes(routes):
    """Those whose parameters may be a body: streamed ones are something else."""
    return [route for route in routes if not route["streams_body"]]


def concrete(path):
    return re.sub(r"\{\w+\}", "nobody-has-this", path)


def flat(params, within=lambda fields: fields, outer=""):
    """(dotted name, documentation, how a value gets into a body) of all parameters, also nested
    ones, which come with what else their object must have."""
    for param in params:
        def place(value, param=param):
            return within({**required(params, param["name"]), param["name"]: value})

        yield outer + param["name"], param, place
        yield from flat(param.get("fields", []), place, outer + param["name"] + ".")


GOOD = {"text": "abcd", "boolean": True, "uuid": "00000000-0000-4000-8000-000000000000",
        "scalar": "1", "texts": [], "integers": [], "object": {}, "json": 1, "struct": {}, "ignored": 1,
        "unsupported": None}


def good_value(param):
    if param["type"] == "integer":
        return param.get("min", 0)
    if param["type"] == "text":
        return "a" * max(4, param.get("min", 0))
    return GOOD[param["type"]]


def wrong_values(param):
    kind = param["type"]
    if kind == "text":
        yield from (5, True, [1], {"a": 1})
        if param.get("max"):
            yield "x" * (param["max"] + 1)
    elif kind == "scalar":
        yield from (True, 1.5, [1], {"a": 1}, "x" * (param["max"] + 1))
    elif kind == "boolean":
        yield from ("perhaps", 2, -1, [1], {"a": 1}, 1.5)
    elif kind == "integer":
        yield from ("many", -10**30, 10**30, 1.5, [1], {"a": 1}, True)
        if "max" in param:
            yield from (param["min"] - 1, param["max"] + 1)
    elif kind == "uuid":
        yield from ("abc", 5, HUGE)
    elif kind in ("texts", "integers"):
        yield from ([[]], [{}], {"a": 1}, [None])
    elif kind in ("object", "struct"):
        yield from (5, "text", [1])
    elif kind == "unsupported":
        yield from ("x", 5, [1], {"a": 1}, True)
    if not param["nullable"]:
        yield None


def required(params, but):
    """What must be there, all good."""
    return {p["name"]: good_value(p) for p in params if p["required"] and p["name"] != but}


def merge(base, more):
    return {**base, **more}


def send(client, route, body):
    return client.send(route["method"], concrete(route["path"]), body)


@pytest.mark.exhaustive
def test_wrong_values(admin, routes):
    count = 0
    for route in routes:
        if route["path"].startswith("/admin/g"):
            continue  # test_gql.py
        for name, param, place in flat(route["params"]):
            if param["type"] in ("ignored", "json"):
                continue
            for value in wrong_values(param):
                reply = send(admin, route, place(value))
                where = (route["method"], route["path"], name, str(value)[:80], reply)
                assert reply.status == 400 and reply.slug == "invalid-api-params", where
                assert name in reply.json["data"] or "body" in reply.json["data"], where
                count += 1
    assert count > 300


def test_required(admin, routes):
    for route in routes:
        if route["path"].startswith("/admin/g"):
            continue
        for param in route["params"]:
            if param["required"]:
                reply = send(admin, route, required(route["params"], param["name"]) or {})
                where = (route["method"], route["path"], param["name"], reply)
                assert reply.slug == "invalid-api-params", where
                assert param["name"] in reply.json["data"], where


def test_unknown_parameters(admin, routes):
    for route in routes:
        if route["path"].startswith("/admin/g") \
                or route["path"] in ("/", "/aliquot/v1/routes", "/aliquot/v1/health",
                                      "/image/import"):
            continue  # these look at no parameters
        body = merge(required(route["params"], None), {"no_such_parameter": 1})
        reply = send(admin, route, body)
        assert reply.slug == "invalid-api-params", (route["method"], route["path"], reply)
        assert "no_such_parameter" in reply.json["data"], (route["path"], reply)


def test_parameters_beside_a_body(admin):
    routes = admin.get("/aliquot/v1/routes").json["routes"]
    streamed = [route for route in routes if route["streams_body"]]
    assert len(streamed) >= 2
    for route in streamed:
        query = "&".join(f"{name}={value}" for name, value
                         in required(route["params"], None).items())
        reply = admin.send(route["method"], f"{concrete(route['path'])}?{query}&no_such_parameter=1",
                           b"bytes")
        assert reply.slug == "invalid-api-params", (route["path"], reply)
        assert "no_such_parameter" in reply.json["data"], (route["path"], reply)


SHORT_BODIES = ("/auth/authorize", "/auth/signup", "/auth/update-password-no-auth")  # read from anyone
BROKEN = {
    "no JSON": b"{",
    "not an object": b"[1]",
    "a number": b"5",
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "NUL": b'{"name": "a\\u0000b"}',
    "lone surrogate": b'{"name": "\\ud800"}',
    "duplicate": b'{"name": "abcd", "name": "abcd", "x": 1, "x": 2}',
    "deep": b"[" * 10000 + b"]" * 10000,
    "deep object": b'{"a":' * 10000 + b"1" + b"}" * 10000,
    "deep and open": b"[" * 10000,
    "huge number": b'{"a": 1' + b"0" * 5000 + b"}",
    "rubbish after": b'{} {}',
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_bodies(admin, routes, what):
    for route in routes:
        if not route["params"] or route["path"] == "/":
            continue
        if what in ("not an object", "deep") and route["path"] == "/aliquot/v1/sessions":
            continue  # takes lists; below
        reply = send(admin, route, BROKEN[what])
        if route["path"] in SHORT_BODIES and len(BROKEN[what]) > 16384:
            assert reply.status == 413, reply
            continue
        assert reply.status == 400, (route["method"], route["path"], reply)
        assert reply.slug in ("invalid-api-params", "generic-bad-request"), (route, reply)


def test_lists_of_sessions(admin):
    for body in (b"[]", b"[1]", b"[" * 10000 + b"]" * 10000,
                 json.dumps([{"name": "abcd", "image": "sh"}] * 1001).encode()):
        reply = admin.post("/aliquot/v1/sessions", body)
        assert reply.slug == "invalid-api-params", reply
    reply = admin.post("/aliquot/v1/sessions", [
        {"name": "first-one", "image": "sh"}, {"name": "second", "image": 5}])
    assert list(reply.json["data"]) == ["[1].image"], "the element is named"
    assert admin.get("/aliquot/v1/sessions/first-one").status == 404, "nothing was made"


def test_body_too_large(admin):
    reply = admin.post("/session", b'{"name": "' + b"x" * (9 << 20) + b'"}')
    assert reply.status == 413


def test_queries_are_decoded_the_same(admin):
    assert admin.get("/session/_/match?id=abc&nope=1").json["data"] == {
        "nope": "unknown; this request has no such parameter. It has id, owner_access_key"}
    assert "id" in admin.get("/session/_/match").json["data"]
    assert admin.get("/session/_/match?id=a&id=b").slug == "invalid-api-params"
    assert admin.get("/session/_/match?id=%ff").status == 400
    assert admin.get("/session/_/match?id=%zz").status == 400
    assert "limit" in admin.get("/aliquot/v1/sessions?limit=-1").json["data"]
    assert "limit" in admin.get("/aliquot/v1/sessions?limit=1001").json["data"]
    assert admin.get("/aliquot/v1/sessions?limit=1000&filter=name%20%3D%3D%20%22x%22").status == 200
    assert admin.get("/aliquot/v1/sessions?filter=name%20%3D").slug == "invalid-api-params"
    assert admin.get("/aliquot/v1/sessions?order=nope").slug == "invalid-api-params"
    assert admin.get("/aliquot/v1/sessions?status=NONSENSE").slug == "invalid-api-params"


def test_body_wins_over_query(admin):
    reply = admin.send("GET", "/auth?echo=query", {"echo": "body"})
    assert reply.json["echo"] == "body"
    assert "echo" in admin.send("GET", "/auth?echo=query", {}).json["data"], "never merged"


@pytest.mark.parametrize("body, field, says", [
    ({"config": {"resource_opts": {"shmme": "64m"}}}, "config.resource_opts.shmme",
     "did you mean 'shmem'? It has shmem, allow_fractional_resource_fragmentation"),
    ({"config": {"resource_opts": {"allow_fractional_resource_fragmentatoin": True}}},
     "config.resource_opts.allow_fractional_resource_fragmentatoin",
     "did you mean 'allow_fractional_resource_fragmentation'?"),
    ({"config": {"resource_opts": {"frobnicate": 1}}}, "config.resource_opts.frobnicate",
     "It has shmem, allow_fractional_resource_fragmentation"),
    ({"config": {"resource_opts": {"allow_fractional_resource_fragmentation": "perhaps"}}},
     "config.resource_opts.allow_fractional_resource_fragmentation", "not a truth value"),
    ({"config": {"resource_opts": [1]}}, "config.resource_opts", "not an object"),
    ({"config": {"resorces": {}}}, "config.resorces", "did you mean 'resources'?"),
    ({"config": {"agentList": [], "agent_lists": []}}, "config.agent_lists",
     "did you mean 'agent_list'?"),
    ({"prioritiy": 3}, "prioritiy", "did you mean 'priority'?"),
    ({"session_group": {"nam": "x"}}, "session_group.nam", "did you mean 'name'?"),
    ({"config": {"resources": {"cpu": "1", "mme": "1g"}}}, "config.resources.mme",
     "unknown slot type 'mme'; did you mean 'mem'? known are cpu, mem"),
])
def test_a_slip_is_named_with_what_is_near(admin, body, field, says):
    reply = admin.post("/session", {"name": "never-made", "image": "sh", **body})
    assert reply.status == 400 and list(reply.json["data"]) == [field], reply
    assert says in reply.json["data"][field], reply


@pytest.mark.parametrize("opts", [
    None, {}, {"shmem": None}, {"shmem": "64m"}, {"shmem": 67108864},
    {"shmem": "0.0625g", "allow_fractional_resource_fragmentation": False},
    {"allow_fractional_resource_fragmentation": "yes"},
])
def test_what_clients_say_of_resources(admin, opts):
    """All of it is read before the session is refused for another reason."""
    reply = admin.post("/session", {
        "name": "opts-fine", "image": "sh", "dependencies": ["nobody-there"],
        "config": {"resources": {"cpu": "1", "mem": "1g"}, "resource_opts": opts}})
    assert "nobody-there" in reply.json["msg"], reply


def with_number(body, number):
    """Its JSON text, with the number as it is written in place of NUMBER."""
    return json.dumps(body).replace('"NUMBER"', number).encode()


TEMPLATE = json.dumps({"kind": "task_template", "api_version": "v1", "metadata": {"name": "tiny"},
                       "spec": {"kernel": {"image": "debian:12"},
                                "resources": {"cpu": "NUMBER"}}}).replace('"NUMBER"', "1e-400")


@pytest.mark.parametrize("method, path, body, field", [
    ("POST", "/session", {"name": "never-made", "image": "sh", "config": {
        "resources": {"cpu": 1, "cuda.shares": "NUMBER"}}}, "config.resources.cuda.shares"),
    ("POST", "/aliquot/v1/sessions/_/dry-run", {"name": "never-made", "image": "sh", "config": {
        "resources": {"cpu": "NUMBER"}}}, "config.resources.cpu"),
    ("PUT", "/aliquot/v1/resource-presets/tiny", {"resource_slots": {"cpu": "NUMBER"}},
     "resource_slots.cpu"),
    ("PATCH", "/aliquot/v1/keypair-policies/default",
     {"total_resource_slots": {"cpu": "NUMBER"}}, "total_resource_slots.cpu"),
    ("PUT", "/fair-share/domains/default/default/weight", {"weight": "NUMBER"}, "weight"),
    ("POST", "/aliquot/v1/templates", {"payload": TEMPLATE}, "payload"),
])
def test_an_amount_that_is_nearly_nothing_is_not_nothing(admin, method, path, body, field):
    for number in ("1e-400", "0.1E-0400", "0." + "0" * 400 + "1"):
        reply = admin.send(method, path, with_number(body, number))
        assert reply.status == 400 and field in str(reply.json["data"]), (number, reply)


def test_an_amount_that_is_nearly_nothing_by_graphql(admin):
    reply = admin.gql("mutation($slots: JSONString!) { create_domain(name: \"tiny\", props: {"
                      "total_resource_slots: $slots}) { ok msg } }", {"slots": '{"cpu": 1e-400}'})
    done = reply.json["data"]["create_domain"]
    assert done["ok"] is False and "total_resource_slots" in done["msg"], done


@pytest.mark.parametrize("amount", ["1e-400", "1e400", "1e-7", "0x1p-1", "-0", "-1", "1__0", "nan", "",
                                    "0.0000001"])
def test_forms_of_amounts_that_are_refused(admin, amount):
    for given in [json.dumps(amount)] + [amount] * (amount in ("1e400", "1e-7", "-1", "0.0000001")):
        body = {"name": "never-made", "image": "sh", "config": {"resources": {"cpu": "NUMBER"}}}
        reply = admin.post("/session", with_number(body, given))
        assert reply.status == 400, (given, reply)
        assert given == "1e400" or "config.resources.cpu" in reply.json["data"], reply
