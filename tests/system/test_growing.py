# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/growing.md, all of them together: added to a copy of the sources, built,
and tried with the database of a manager that lacks them."""

import json
import os
import subprocess
import sys

import pytest

import cluster
import growing
import world
from world import ROOT

sys.path.append(str(ROOT / "tools"))
from suites import BUILDS  # noqa: E402

V1 = "/aliquot/v1"
TARGETS = ["aliquot-manager", "aliquot"]


def run(*command, cwd, **more):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-5000:]}{done.stderr[-5000:]}"
    return done.stdout


def copy_sources(target):
    """What git has of them, as it is in the working tree."""
    names = run("git", "ls-files", "-z", cwd=ROOT)
    target.mkdir()
    run("tar", "-cf", target.with_suffix(".tar"), "--null", "--files-from=-", cwd=ROOT, input=names)
    run("tar", "-xf", target.with_suffix(".tar"), cwd=target)


def apply_examples(sources):
    number = len(list((sources / "src" / "store" / "migrations").glob("*.sql")))
    for example in growing.examples():
        number += len([name for name in example.added if "/NNNN_" in name])
        run("git", "apply", "-", cwd=sources, input=example.diff.replace("/NNNN_", f"/{number:04}_"))


def build(sources):
    """Only what the examples change is compiled if ccache has the objects of ROOT's build."""
    env = {**os.environ, "CCACHE_BASEDIR": str(sources), "CCACHE_NOHASHDIR": "1"}
    run("meson", "setup", *BUILDS["build"], "build", cwd=sources, env=env)
    run("ninja", "-C", "build", *TARGETS, cwd=sources, env=env)
    return sources / "build"


@pytest.fixture(scope="module")
def grown():
    """A cluster whose manager has the examples, with the database of one that has not; asks the
    command line."""
    with pytest.MonkeyPatch.context() as patch, cluster.Cluster() as it:
        it.start_manager()
        told = it.cli("admin", "policy", "create", "old", "--max-priority", "7")
        assert told.returncode == 0, told.stderr
        assert it.cli("admin", "preset", "set", "small", "-r", "cpu=2").returncode == 0
        it.programs.pop("manager").stop()
        copy_sources(it.folder / "sources")
        apply_examples(it.folder / "sources")
        folder = build(it.folder / "sources")
        patch.setattr(cluster, "BUILD", folder)
        patch.setattr(world, "BUILD", folder)
        it.start_manager()
        yield it
        it.stop()


def shown(it, *words):
    told = it.cli(*words, "-o", "json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def restart(it):
    it.programs.pop("manager").stop()
    it.start_manager()


def last_change(it):
    row = max(it.client().get(V1 + "/audit-log?limit=1000").json["items"],
              key=lambda row: row["seq"])
    return row["action"], row["detail"]["before"], row["detail"]["after"]


def test_a_number_of_a_policy(grown):
    def number():
        row, = [row for row in grown.client().get(V1 + "/keypair-policies").json["items"]
                if row["name"] == "old"]
        listed, = [row for row in shown(grown, "admin", "policy", "ls") if row["name"] == "old"]
        assert listed["max_something"] == row["max_something"] and row["max_priority"] == 7
        return row["max_something"]
    assert number() == 0
    assert shown(grown, "admin", "policy", "set", "old", "--max-something", "3")
    assert number() == 3
    assert last_change(grown) == ("modify-keypair-policy", {"max_something": 0},
                                  {"max_something": 3})
    refused = grown.client().send("PATCH", V1 + "/keypair-policies/old", {"max_something": 1000001})
    assert refused.status == 400 and "max_something" in refused.body.decode()
    restart(grown)
    assert number() == 3


def test_a_text_of_a_project(grown):
    def colors():
        client = grown.client()
        row, = client.get(V1 + "/groups").json["items"]
        listed, = shown(grown, "admin", "project", "ls")
        group, = client.gql("{ groups { name color } }").json["data"]["groups"]
        return row["color"], listed["color"], group["color"]
    assert colors() == (None, None, None)
    assert shown(grown, "admin", "project", "set", "default", "--color", "#40a0ff")
    assert colors() == ("#40a0ff",) * 3
    assert last_change(grown) == ("modify-project", {"color": None}, {"color": "#40a0ff"})
    restart(grown)
    assert colors() == ("#40a0ff",) * 3


def test_a_text_of_a_preset(grown):
    def texts(name):
        client = grown.client()
        query = "query($n: String!) { resource_preset(name: $n) { description } }"
        [row], [listed] = [[row for row in rows if row["name"] == name] for rows in (
            client.get(V1 + "/resource-presets").json["items"],
            shown(grown, "admin", "preset", "ls"))]
        by_name = client.gql(query, {"n": name}).json["data"]["resource_preset"]
        return row["description"], listed["description"], by_name["description"]

    def set_by_graphql(**props):
        reply = grown.client().gql(
            "mutation($p: ModifyResourcePresetInput!) {"
            " modify_resource_preset(name: \"large\", props: $p) { ok msg } }", {"p": props})
        return reply.json["data"]["modify_resource_preset"]
    assert texts("small") == (None,) * 3
    told = grown.cli("admin", "preset", "set", "large", "-r", "cpu=64", "--description", "of labs")
    assert told.returncode == 0, told.stderr
    assert texts("large") == ("of labs",) * 3
    assert set_by_graphql(description="of halls")["ok"]
    assert last_change(grown) == (
        "modify-preset", *[{"resource_slots": {"cpu": "64"}, "shared_memory": None,
                            "description": text} for text in ("of labs", "of halls")])
    assert "description" in set_by_graphql(description="x" * 513)["msg"]
    restart(grown)
    assert texts("large") == ("of halls",) * 3
    assert grown.cli("admin", "preset", "rm", "large").returncode == 0


def test_a_command_calls_a_route(grown):
    told = shown(grown, "admin", "preset", "info", "small")
    assert told["resource_slots"] == {"cpu": "2"} and told["name"] == "small"
    assert grown.client().get(V1 + "/resource-presets/none").status == 404
    assert grown.cli("admin", "preset", "info", "none").returncode == 5
    routes = grown.client().get(V1 + "/routes").json["routes"]
    assert [route for route in routes if route["path"] == V1 + "/resource-presets/{name}"
            and route["method"] == "GET"]
    assert "preset info" in grown.cli("help", "admin", "preset").stdout


def test_an_entity(grown):
    def racks():
        client = grown.client()
        listed = client.get(V1 + "/racks").json["items"]
        assert shown(grown, "admin", "rack", "ls") == listed
        query = "{ racks { name room max_watts } }"
        assert client.gql(query).json["data"]["racks"] == listed
        return [(rack["name"], rack["room"], rack["max_watts"]) for rack in listed]

    def told(*words, status=0):
        done = grown.cli("admin", "rack", *words)
        assert done.returncode == status, done.stderr
        return done.stderr
    assert racks() == []
    told("create", "b2", "--room", "cellar")
    told("create", "a1", "--max-watts", "9000")
    assert "a1" in told("create", "a1", status=4)
    told("set", "a1", "--room", "attic")
    assert racks() == [("a1", "attic", 9000), ("b2", "cellar", 0)]
    assert last_change(grown) == ("modify-rack", {"room": None, "max_watts": 9000},
                                  {"room": "attic", "max_watts": 9000})
    assert "--max-watts" in told("set", "a1", "--max-watts", "1000001", status=4)
    told("set", "none", "--room", "attic", status=5)
    restart(grown)
    assert racks() == [("a1", "attic", 9000), ("b2", "cellar", 0)]
    told("rm", "a1", "b2")
    assert racks() == []
