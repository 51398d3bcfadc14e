# SPDX-License-Identifier: Apache-2.0
"""What plugins wrote about their nodes goes when all else has gone, and nothing else of a node."""

import contextlib
import subprocess

import pytest

from fake_api_server import ApiServer, Objects, Refused
from world import BUILD, World

CARDS = "aliquot/cards"


@contextlib.contextmanager
def cluster(count):
    """An API server with nodes, each second one with cards, and the program, begun."""
    with World() as world, ApiServer() as api:
        for number in range(count):
            annotations = {"other": str(number), **({CARDS: "{}"} if number % 2 else {})}
            api.objects.put("nodes", {"metadata": {"name": f"n{number}", "annotations": annotations},
                                      "spec": {"unschedulable": True}})
        (world.folder / "token").write_text("secret")
        config = world.folder / "k8s.toml"
        config.write_text(f'[kubernetes]\nurl = "{api.url}"\ntoken = "{world.folder}/token"\n')
        process = subprocess.Popen([BUILD / "aliquot-k8s", "--config", config, "uninstall"],
                                   env=world.env, stderr=subprocess.PIPE, text=True)
        yield api, process
        process.kill()
        process.wait()


def check_end(api, process, count):
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and "Sanitizer" not in said, said
    nodes = {node["metadata"]["name"]: node for node in api.objects.all("nodes")}
    assert len(nodes) == count
    for number in range(count):
        node = nodes[f"n{number}"]
        assert node["metadata"]["annotations"] == {"other": str(number)}
        assert node["spec"] == {"unschedulable": True}
    changed = [path for method, path, _ in api.requests if method == "PATCH"]
    assert {path.rpartition("/")[2] for path in changed} == {f"n{n}" for n in range(1, count, 2)}
    return said


@pytest.mark.gate
@pytest.mark.parametrize("count", [0, 1, 9])
def test_annotations_of_nodes_go(count):
    with cluster(count) as (api, process):
        check_end(api, process, count)


def test_one_that_cannot_be_changed_holds_up_nobody(monkeypatch):
    """And is tried again, as long as it takes."""
    refusals = 3
    patch = Objects.patch

    def refuse(objects, kind, key, body):
        nonlocal refusals
        if key == "n1" and refusals:
            refusals -= 1
            raise Refused(500, "InternalError", "a webhook is away")
        return patch(objects, kind, key, body)
    monkeypatch.setattr(Objects, "patch", refuse)
    with cluster(9) as (api, process):
        said = check_end(api, process, 9)
    assert not refusals and said.count("a webhook is away") == 3
