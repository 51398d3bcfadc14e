# SPDX-License-Identifier: Apache-2.0
"""What one user asks of GraphQL is bounded before it runs, while it runs, and beside others."""

import concurrent.futures
import contextlib
import pathlib

import pytest

from client import ADMIN, USER
from cluster import WAITS, Cluster, batch, wait_for

LARGE, ROWS = 60000, 100


@pytest.fixture(scope="module")
def cluster():
    """A user with sessions that wait, each with a large command."""
    with Cluster() as cluster:
        cluster.start_manager()
        admin, user = cluster.client(), cluster.client(USER)
        for key in (USER, ADMIN):
            assert admin.send("PATCH", "/aliquot/v1/keypairs/" + key[0],
                              {"rate_limit": 0}).status == 200
        for i in range(ROWS):
            made = user.post("/session", batch(f"large-{i:03d}", ": " + "x" * LARGE, **WAITS))
            assert made.status in (200, 201), made
        yield cluster
        cluster.stop()


def rss(cluster):
    """Most memory that the manager has had, in MiB."""
    status = pathlib.Path(f"/proc/{cluster.programs['manager'].pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def aliases(count, fields, limit=ROWS):
    lists = " ".join(f"a{i}: compute_session_list(limit: {limit}, offset: 0) {{ items {{ {fields} }} }}"
                     for i in range(count))
    return "{ " + lists + " }"


@contextlib.contextmanager
def threads(count, call):
    """Futures of 'count' threads that each make the call."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        yield [pool.submit(call) for _ in range(count)]


def ask(user, limit):
    """The status of a request for large texts; on a busy machine others before it take their time."""
    body = {"query": aliases(1, "startup_command", limit)}
    return user.post("/admin/gql", body, timeout=300).status


def test_many_aliases_of_large_texts_are_refused_before_they_run(cluster):
    user = cluster.client(USER)
    reply = user.gql(aliases(900, "startup_command"))
    assert reply.status == 200 and "data" not in reply.json
    assert "cost of list sizes and fields" in reply.json["errors"][0]["message"]
    many = " ".join(f"c{i}: startup_command" for i in range(900))
    reply = user.gql(aliases(1, many))
    assert "data" not in reply.json and "cost" in reply.json["errors"][0]["message"]


def test_what_is_read_and_written_for_one_request_is_bounded(cluster):
    user = cluster.client(USER)
    before = rss(cluster)
    reply = user.gql(aliases(900, "name", limit=100))  # cheap to say, dear to read
    assert len(reply.body) < 9 << 20
    assert any("ask for fewer" in error["message"] for error in reply.json["errors"])
    twice = user.gql(aliases(2, "startup_command"))
    assert twice.json["data"] is None and "bytes" in twice.json["errors"][0]["message"]
    assert rss(cluster) - before < 600  # the sanitizer's own share included


def test_many_cursors_and_walks_are_refused_before_they_run(cluster):
    """What numbers a whole list, or looks at all sessions or images, costs so much more."""
    user = cluster.client(USER)
    for many in (" ".join(f'a{i}: compute_session_nodes(first: 0, after: "x") {{ count }}'
                          for i in range(700)),
                 "compute_session_nodes(first: 1) { edges { node { " + " ".join(
                     f"a{i}: dependents {{ count }}" for i in range(200)) + " } } }",
                 "group_nodes(first: 100) { edges { node { " + " ".join(
                     f'a{i}: user_nodes(after: "x") {{ count }}' for i in range(10)) + " } } }",
                 " ".join(f'a{i}: image_node(id: "x") {{ tag }}' for i in range(200))):
        reply = user.gql("{ " + many + " }")
        assert "data" not in reply.json and "cost" in reply.json["errors"][0]["message"]


def test_a_page_of_nodes_with_what_hangs_on_them_is_served(cluster):
    reply = cluster.client(USER).gql(f"""{{ compute_session_nodes(first: {ROWS}) {{ count edges {{ node {{
        row_id name status queue_position permissions kernel_nodes {{ edges {{ node {{ row_id image {{ tag }} }} }} }}
        dependees {{ count edges {{ node {{ row_id }} }} }}
        dependents {{ count edges {{ node {{ row_id }} }} }} }} }} }} }}""").json
    assert not reply.get("errors") and reply["data"]["compute_session_nodes"]["count"] == ROWS
    assert len(reply["data"]["compute_session_nodes"]["edges"]) == ROWS


def test_a_list_with_all_fields_is_served_whole(cluster):
    user = cluster.client(USER)
    schema = pathlib.Path(__file__).resolve().parents[2] / "src/manager/call/graphql/schema.graphql"

    def fields(type_name):
        body = schema.read_text().split(f"type {type_name} {{")[1].split("}")[0]
        return [line.split(":")[0].split("(")[0].strip() for line in body.splitlines()
                if ":" in line and '"' not in line]
    inner = " ".join(name for name in fields("ComputeContainer") if name != "image_object")
    outer = " ".join(name for name in fields("ComputeSession")
                     if name not in ("containers", "dependencies"))
    query = aliases(1, f"{outer} containers {{ {inner} image_object {{ tag }} }} dependencies {{ id }}")
    reply = user.gql(query).json
    assert "errors" not in reply, reply["errors"]
    items = reply["data"]["a0"]["items"]
    assert len(items) == ROWS and all(len(item["startup_command"]) == LARGE + 2 for item in items)
    assert all(item["containers"][0]["preopen_ports"] == [] for item in items)


def test_others_are_served_while_one_user_has_many_requests(cluster):
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    answered = 0
    with threads(20, lambda: ask(user, ROWS)) as asked:
        while not all(future.done() for future in asked):
            assert admin.gql("{ domains { name } }").json["data"]["domains"]
            answered += 1
        assert [future.result() for future in asked] == [200] * 20 and answered > 0


def test_requests_of_a_user_wait_for_each_other_and_all_are_answered(cluster):
    user = cluster.client(USER)
    with threads(40, lambda: ask(user, ROWS // 10)) as asked:
        assert [future.result() for future in asked] == [200] * 40
    wait_for(lambda: user.gql("{ keypair { access_key } }").status == 200, what="the user's turn")


def test_a_large_list_is_written_in_turns_and_whole(cluster):
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    with threads(4, lambda: user.get("/aliquot/v1/sessions?limit=1000").json) as asked:
        while not all(future.done() for future in asked):
            assert admin.get("/aliquot/v1/sessions?limit=1").status == 200
        pages = [future.result() for future in asked]
    assert [page["total"] for page in pages] == [len(page["items"]) for page in pages]
    assert all(len({item["id"] for item in page["items"]}) == page["total"] >= ROWS
               for page in pages)
