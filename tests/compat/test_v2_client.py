# SPDX-License-Identifier: Apache-2.0
"""The tree "v2" of Backend.AI's command line 26: it asks a second REST API, which is not there."""

import json
import pathlib
import re

import pytest

from client import ADMIN

VERSIONS = ("26.9.6",)
# These ask nobody, or nobody without a body that says more than an example can.
OWN = re.compile(r"v2 (config|profile|login|logout|gql|deployment chat-(cache|config|history))\b")
UNASKED = r"""
v2 admin (container-registry|domain|image|keypair|model-card|project|resource-preset) (create|update)
v2 admin (deployment revision-preset|runtime-variant|runtime-variant-preset) (create|update)
v2 admin idle-checker create
v2 admin resource-group default-session-options replace
v2 admin resource-policy (keypair|project|user) create
v2 admin role-preset (create|permission-add)
v2 (my )?app-config-fragment update
v2 deployment revision add
v2 entity-share (create|scoped-search)
v2 rbac role (create|add-permission|remove-permission|replace-permission)
v2 scheduling-history replica-group search-scoped
v2 session enqueue
v2 user (create|search|update)
v2 vfolder upload
""".split("\n")[1:-1]


def test_every_command_says_that_it_is_not_there(bai):
    program = pathlib.Path(__file__).with_name("v2_commands.py").read_text()
    code, said = bai.python(program)
    assert code == 0, said[-2000:]
    outcomes = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    asked = [command for command, code, said in outcomes if code == 1 and "URL path" in said]
    others = {command for command, *_ in outcomes} - set(asked)
    assert len(asked) > 330
    odd = {command for command in others if not OWN.match(command)
           and not any(re.fullmatch(pattern, command) for pattern in UNASKED)}
    assert not odd, [outcome for outcome in outcomes if outcome[0] in odd]


@pytest.mark.parametrize("method", ("GET", "POST", "PUT", "PATCH", "DELETE"))
def test_no_path_of_it_is_there(cluster, method):
    for path in ("/v2", "/v2/domains", "/v2/users/search", "/v2/sessions/x/logs"):
        reply = cluster.client(ADMIN).send(method, path)
        assert reply.status == 404 and f"Unknown URL path: {path}" in reply.json["msg"], reply


@pytest.mark.backendai("v2 config get", "v2 config set", "v2 config show", "v2 profile create",
                       "v2 profile list", "v2 profile show", "v2 profile use",
                       "v2 profile rename", "v2 profile delete")
def test_its_settings(cluster, bai):
    assert "http://%s:%d" % cluster.address in bai.does("v2", "config", "show")
    assert "Created profile lab" in bai.does("v2", "profile", "create", "lab")
    bai.does("v2", "profile", "use", "lab")
    bai.does("v2", "config", "set", "api-version", "v9.20250101")
    assert bai.does("v2", "config", "get", "api-version").strip() == "v9.20250101"
    assert "lab" in bai.does("v2", "profile", "list")
    assert "lab" in bai.does("v2", "profile", "show")
    bai.does("v2", "profile", "rename", "lab", "den")
    bai.does("v2", "profile", "delete", "den", "--yes")
    assert "den" not in bai.does("v2", "profile", "list")
