# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, from 22.03 to 26.9: templates of sessions."""

import json
import re

import pytest

import real_client
from client import USER
from cluster import Cluster, wait_status

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")
COMMAND = "23.9.10"
TEMPLATE = """\
api_version: v1
kind: taskTemplate
metadata:
  name: trainer
  tag: from-template
spec:
  sessionType: interactive
  kernel:
    image: process
    environ: {GREETING: hello}
    git: null
    run:
      bootstrap: "true"
  mounts: {}
  resources: {cpu: 1, mem: 64m}
"""


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Cluster() as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.stop()


@pytest.fixture(name="user")
def user_fixture(cluster, server):
    """Who is no administrator; without templates and sessions afterwards."""
    yield real_client.RealClient(server, cluster.address, USER)
    client = cluster.client(USER)
    for template in client.get("/template/session").json:
        assert client.delete(f"/template/session/{template['id']}").status == 200
    for session in cluster.live_sessions():
        assert client.delete(f"/session/{session['id']}").status == 200


def create(user, text=TEMPLATE):
    said = user.says("session-template", "create", answer=text)
    return re.search("Task template (\\S+) created", said).group(1)


@pytest.mark.backendai("session-template create", "session-template get", "session-template list",
                       "session-template update", "session-template delete")
def test_the_life_of_a_template(user):
    made = create(user)
    assert "name: trainer" in user.does("session-template", "get", made)
    text = user.does("session-template", "get", "-f", "json", made)
    shown = json.loads(text[text.index("{"):])
    assert shown["template"]["spec"]["kernel"]["environ"] == {"GREETING": "hello"}
    line = [line for line in user.does("session-template", "list").splitlines() if made in line]
    assert len(line) == 1 and "trainer" in line[0] and "True" in line[0], line
    changed = TEMPLATE.replace("hello", "good morning")
    assert "updated" in user.says("session-template", "update", made, answer=changed)
    assert "good morning" in user.does("session-template", "get", made)
    wrong = user.fails("session-template", "update", made, answer=TEMPLATE.replace("image", "imge"))
    assert "unknown key 'imge'; did you mean 'image'?" in wrong and "line " in wrong
    assert "deleted" in user.says("session-template", "delete", "-f", made)
    assert "No such task template" in user.fails("session-template", "get", made)
    assert "no task templates" in user.does("session-template", "list")


def test_a_list_of_templates(cluster, user):
    """As a manager of Backend.AI takes them: from 26 on a list, before that below a name."""
    template = {"kind": "taskTemplate", "api_version": "6", "metadata": {"name": "python"},
                "spec": {"kernel": {"image": "process", "environ": {}}, "mounts": {},
                         "resources": {"cpu": "1", "mem": "64m"}}}
    entries = [{"name": "listed", "type": "TASK", "is_active": True, "template": template}]
    for text in json.dumps(entries), json.dumps({"session_templates": entries}):
        made = create(user, text)
        shown = user.does("session-template", "get", "-f", "json", made)
        assert json.loads(shown[shown.index("{"):])["name"] == "listed"
        user.says("session-template", "update", made, answer=text.replace("listed", "changed"))
        assert "changed" in user.does("session-template", "list")
        user.says("session-template", "delete", "-f", made)


LIBRARY = """
import sys
from ai.backend.client.session import Session
with Session() as session:
    made = session.ComputeSession.create_from_template(
        sys.argv[1], name=sys.argv[2], enqueue_only=True, type_="batch", startup_command="env",
        envs={"MORE": "1"}, resources={"cpu": "1"}, cluster_size=1)
    print(made.id)
"""


# Two of these have no default that the clients understand themselves.
OPTIONS = ("create-from-template", "--enqueue-only", "--max-wait", "0", "--cluster-size", "1",
           "--type", "batch", "-c", "env", "-t")


def make_session(user, version, template, name, *words):
    """The oldest and the newest command line give their own library an argument too many."""
    if version == COMMAND:
        user.does(*words, template)
        return
    assert "unexpected keyword argument" in user.fails(*words, template)
    code, said = user.python(LIBRARY, template, name)
    assert code == 0, said


@pytest.mark.backendai("session create-from-template", "create-from-template",
                       versions=("23.9.10",))
def test_a_session_from_a_template(cluster, user, version):
    """What the client says counts; all else is the template's, and --no-env takes its variables."""
    client, made = cluster.client(USER), create(user)
    make_session(user, version, made, "from-one", "session", *OPTIONS, "from-one", "-e", "MORE=1",
                 "-r", "cpu=1")
    session = wait_status(client, "from-one", "TERMINATED")
    assert session["image"] == "process" and session["tag"] == "from-template", session
    assert session["kernels"][0]["requested_slots"]["mem"] == str(64 << 20), session
    log = client.get("/aliquot/v1/sessions/from-one/logs").body.decode().splitlines()
    assert {"GREETING=hello", "MORE=1"} <= set(log), log
    if version != COMMAND:
        assert "unexpected keyword argument" in user.fails(*OPTIONS, "from-two", made)
        return
    user.does(*OPTIONS, "from-two", "--no-env", made)
    wait_status(client, "from-two", "TERMINATED")
    assert b"GREETING" not in client.get("/aliquot/v1/sessions/from-two/logs").body
