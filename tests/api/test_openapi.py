# SPDX-License-Identifier: Apache-2.0
"""GET /spec/openapi: the document has every route as the manager serves it.

A validator reads it in tests/compat/test_openapi_validator.py; conftest.py compares the answers of
all tests of this folder with it.
"""

import json
import pathlib
import re
import socket

import pytest

from client import USER, Client
from openapi import shape


@pytest.fixture(scope="module")
def operations(document):
    return document.operations


def test_anyone_gets_it(cluster, nobody, document):
    for path in ("/spec/openapi", "/spec/openapi/spec.json"):
        reply = nobody.raw("GET", path)
        assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json"), path
        assert reply.json == document.json
    assert document.json["openapi"] == "3.1.0"
    assert document.json["info"]["version"] == nobody.raw("GET", "/").json["aliquot"]


def test_clients_that_read_slowly_or_go_away(cluster, nobody, document):
    """More answers than the kernel's buffers hold: the manager goes on when they are read."""
    count = 30
    request = nobody.request("GET", "/spec/openapi")
    socks = [socket.socket() for _ in range(8)]
    for sock in socks:
        sock.settimeout(60)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(cluster.address)
        sock.sendall(request * count)
        assert sock.recv(12) == b"HTTP/1.1 200"
    for sock in socks[1:]:
        sock.close()
    with socks[0] as sock, sock.makefile("rb") as file:
        for _ in range(count):
            length = [int(line.split(b":")[1]) for line in iter(file.readline, b"\r\n")
                      if line.lower().startswith(b"content-length:")]
            assert json.loads(file.read(length[0])) == document.json
    head = nobody.send("HEAD", "/spec/openapi")
    assert (head.status, head.headers["Content-Length"], head.body) == (200, str(length[0]), b"")


def test_it_has_all_routes(operations, routes):
    assert {(r["method"], r["path"]): (r["doc"], r["access"]) for r in routes} \
        == {key: (o["summary"], o["x-access"]) for key, o in operations.items()}


def test_the_page_of_routes_is_that_of_the_document(operations):
    """docs/rest.md: its table has no other routes, and all of ours are in it or below it."""
    text = (pathlib.Path(__file__).parents[2] / "docs/rest.md").read_text()
    table = text.partition("\n## Routes\n")[2].partition("\n## ")[0]
    first_cells = [row.split(" | ")[0] for row in table.splitlines() if row.startswith("| `")]
    served = {(method, shape(path)) for method, path in operations}
    listed, named = (
        {(method, shape(path.partition("?")[0]))
         for method, path in re.findall(r"`([A-Z]+) (/[^`]*)`", part)}
        for part in ("\n".join(first_cells), text))
    assert len(listed) > 80 and not listed - served
    assert not {key for key in served if key[1].startswith(("/aliquot/", "/spec/"))} - named


def test_operations_are_told_apart(operations):
    ids = [operation["operationId"] for operation in operations.values()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][\w.-]+", i) for i in ids)
    assert len({(method, shape(path)) for method, path in operations}) == len(operations)


def test_path_parameters(operations):
    for (method, path), operation in operations.items():
        named = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
        assert named == re.findall(r"\{(\w+)\}", path), (method, path)
        assert path.startswith(operation["tags"][0]), (method, path)


def parameters_of(operation):
    """{name: (aliases, is required, schema)} of an operation's query, or of its JSON body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content:
        return members_of(content["schema"].get("anyOf", [content["schema"]])[0])
    return {p["name"]: (p.get("x-aliases", []), p["required"], p["schema"])
            for p in operation["parameters"] if p["in"] == "query"}


def members_of(schema):
    return {name: (member.get("x-aliases", []), name in schema.get("required", []), member)
            for name, member in schema["properties"].items()}


KINDS = {"text": "string", "scalar": "string", "boolean": "boolean", "integer": "integer",
         "duration": "number", "uuid": "string", "texts": "array", "integers": "array",
         "object": "object", "struct": "object"}


def compare(there, params, where):
    assert set(there) == {param["name"] for param in params}, where
    for param in params:
        aliases, is_required, schema = there[param["name"]]
        is_filled = param["name"] == "image" and "template" in there
        here = (*where, param["name"])
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        assert aliases == param["aliases"], here
        assert is_required == (param["required"] and not is_filled), here
        assert types[:1] == [KINDS[k] for k in [param["type"]] if k in KINDS], here
        if types:
            assert ("null" in types) == param["nullable"], here
        if param["type"] == "integer":
            assert (schema["minimum"], schema["maximum"]) == (param["min"], param["max"]), here
        if param["type"] == "text" and "enum" not in schema and param.get("max"):
            assert schema["maxLength"] == param["max"], here
        if param["type"] == "struct":
            assert schema["additionalProperties"] is False
            compare(members_of(schema), param["fields"], here)


def test_parameters_are_those_that_requests_are_decoded_by(operations, routes):
    count = 0
    for route in routes:
        key = (route["method"], route["path"])
        compare(parameters_of(operations[key]), route["params"], key)
        count += len(route["params"])
    assert count > 300


def test_bodies(operations, routes):
    for route in routes:
        key = (route["method"], route["path"])
        content = operations[key].get("requestBody", {}).get("content", {})
        if route["streams_body"]:
            assert content and "application/json" not in content, key
        elif route["method"] in ("POST", "PUT", "PATCH") and route["params"]:
            assert list(content) == ["application/json"], key
        else:
            assert not content, key
        names = [p["name"] for p in operations[key]["parameters"] if p["in"] == "header"]
        assert names == ["Idempotency-Key"] * route["idempotency_key"], key


def test_sessions_are_made_one_at_a_time_or_as_a_list(operations):
    lists = {path: schema["anyOf"] for (_, path), operation in operations.items()
             for body in operation.get("requestBody", {}).get("content", {}).values()
             if "anyOf" in (schema := body.get("schema", {}))}
    assert list(lists) == ["/aliquot/v1/sessions"]
    one, several = lists["/aliquot/v1/sessions"]
    assert several == {"type": "array", "minItems": 1, "maxItems": 1000, "items": one}
    assert one["required"] == ["name"], "a template may have the image"


def test_what_needs_no_signature_says_so(cluster, document, operations):
    """Each is called with a made-up path: without a signature, then as a user."""
    assert document.json["security"] == [{"signature": []}]
    nobody, user = (Client(cluster.address, who) for who in (None, USER))
    public = 0
    for (method, path), operation in operations.items():
        target = re.sub(r"\{\w+\}", "nobody-has-this", path)
        if path == "/events/session":
            target += "?sessionId=00000000-0000-4000-8000-000000000000"  # else it has no end
        reply = nobody.send(method, target)
        where = (method, path, reply)
        is_open = operation.get("security") == []
        public += is_open
        assert (reply.slug == "auth-failed" and reply.status == 401) == (not is_open), where
        assert reply.status != 405 and reply.slug != "url-not-found", where
        assert (operation["x-access"] == "public") == is_open, where
        if not is_open:
            assert user.send(method, target).slug not in ("url-not-found", "method-not-allowed")
        if reply.status < 400:
            assert not document.objections(method, target, reply), where
    assert 5 < public < 20


def test_refusals_are_the_problem_that_it_describes(document, user):
    problem = document.json["components"]["schemas"]["Problem"]
    for target in ("/session/nobody-has-this", "/aliquot/v1/sessions?limit=-1"):
        reply = user.get(target)
        responses = document.find("GET", target)["responses"]
        reference = responses[str(reply.status)]["$ref"].rsplit("/", 1)[1]
        response = document.json["components"]["responses"][reference]
        assert list(response["content"]) == [reply.headers["Content-Type"]]
        assert set(problem["required"]) <= set(reply.json) <= set(problem["properties"]), reply
