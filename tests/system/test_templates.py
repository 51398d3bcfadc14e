# SPDX-License-Identifier: Apache-2.0
"""Templates of sessions and clusters, dotfiles and bootstrap scripts, in containers."""

import pytest

from client import ADMIN, USER
from cluster import Cluster, interactive, wait_for, wait_status
from images import Layout, archive, file, folder, programs
from runtimes import run, settings_of
from world import ROOT

EXAMPLES = ROOT / "examples"
SESSION = """\
kind: task_template
metadata: {{name: {name}}}
spec:
  type: batch
  kernel:
    image: {image}
    environ: {{WHO: {name}}}
    run: {{startup: "{startup}"{more}}}
  resources: {{cpu: 1, mem: {mem}}}
"""
CLUSTER = """\
kind: cluster_template
metadata: {name: %s}
spec:
  environ: {ALL: common}
  nodes:
    - {role: main, session_template: main-of-two}
    - {role: worker, session_template: other-of-two, replicas: 2}
"""


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        base = archive(programs("sh", "cat", "ls", "sleep", "stat", "env", "mkdir", "ln", "rm"))
        for name in "first", "second":
            layout.image(name, [base, archive([
                folder("home/work", mode=0o777), file("image", name.encode()),
                file("home/work/.profile", b"of the image\n", mode=0o666)])])
        layout.image("git", [base, archive([
            folder("home/work", mode=0o777), file("image", b"git"),
            file("usr/bin/git", b"#!/bin/sh\nprintf '%s\\n' git \"$@\"\n"
                            b"[ $1 = clone ] || exit 0\nshift 5\nmkdir \"$1\"\n", mode=0o755)])])
        cluster.image = layout.reference
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


def make(cluster, text, **more):
    reply = cluster.client().post("/aliquot/v1/templates", {"payload": text, **more})
    assert reply.status == 201, reply
    return reply.json["id"]


def forget(cluster):
    for template in cluster.client().get("/aliquot/v1/templates").json["items"]:
        assert cluster.client().delete(f"/aliquot/v1/templates/{template['id']}").status == 200


@pytest.fixture(autouse=True, name="templates")
def templates_fixture(cluster):
    yield
    forget(cluster)


@pytest.mark.gate
def test_a_cluster_of_two_images(cluster):
    """Roles have images, resources, variables and programs of their own."""
    make(cluster, SESSION.format(name="main-of-two", image=cluster.image("first"), mem="128m",
                                 more="", startup="cat /image; echo; env; sleep 2"))
    make(cluster, SESSION.format(name="other-of-two", image=cluster.image("second"), mem="64m",
                                 more=", bootstrap: 'echo prepared'",
                                 startup="cat /image; echo; env; sleep 9999"))
    made = make(cluster, CLUSTER % "two")
    client = cluster.client()
    reply = client.post("/session/_/create-cluster", {
        "clientSessionToken": "two-images", "template_id": made, "enqueueOnly": True})
    assert reply.status == 201, reply
    session = wait_status(client, "two-images", "RUNNING", "TERMINATED")
    kernels = {each["hostname"]: each for each in session["kernels"]}
    assert sorted(kernels) == ["main1", "worker1", "worker2"]
    assert [kernels[name]["requested_slots"]["mem"] for name in sorted(kernels)] == [
        str(size << 20) for size in (128, 64, 64)]
    items = client.gql("query($id: ID!) { compute_container_list(limit: 9, offset: 0,"
                       " session_id: $id) { items { cluster_hostname image } } }",
                       {"id": session["id"]}).json["data"]["compute_container_list"]["items"]
    shown = {each["cluster_hostname"]: each["image"] for each in items}
    assert shown["main1"] == cluster.image("first") and shown["worker2"] == cluster.image("second")
    logs = {}
    for name, kernel in kernels.items():
        path = f"/aliquot/v1/sessions/{session['id']}/logs?kernel={name}"
        wait_for(lambda: b"BACKENDAI_CLUSTER_HOSTS" in client.get(path).body, 60, name)
        logs[name] = client.get(path).body.decode()
    assert logs["main1"].startswith("first\n") and "WHO=main-of-two\n" in logs["main1"]
    assert logs["worker2"].startswith("prepared\nsecond\n") and "WHO=other-of-two" in logs["worker2"]
    for log in logs.values():
        assert "ALL=common\n" in log and "BACKENDAI_CLUSTER_HOSTS=main1,worker1,worker2\n" in log
    assert "BACKENDAI_CLUSTER_REPLICAS=main:1,worker:2\n" in logs["main1"]
    assert wait_status(client, session["id"], "TERMINATED", "ERROR")["status"] == "TERMINATED"


def test_examples(cluster):
    for name, image in ("trainer.yaml", "first"), ("loader.yaml", "second"), ("cluster.yaml", ""):
        text = (EXAMPLES / name).read_text()
        for old in "python:3.11", "busybox:latest":
            text = text.replace(f"image: {old}", f"image: {cluster.image(image)}")
        make(cluster, text)
    done = cluster.cli("run", "--template", "training-cluster", "-e", "EPOCHS=5")
    assert "trainer main1 of main1,sub1,sub2, 5 epochs" in done.stdout, done


def test_commands(cluster, tmp_path):
    """What a user does with a template, by the command line."""
    path, image = tmp_path / "t.yaml", cluster.image("first")
    path.write_text(SESSION.format(name="mine", image=image, mem="64m", more="", startup="echo $WHO"))
    made = cluster.cli("template", "create", "--project", "default", str(path))
    assert made.returncode == 0, made
    listed = cluster.cli("template", "ls", "--filter", "kind=session").stdout
    assert "mine" in listed and "default" in listed, listed
    assert cluster.cli("template", "show", "mine").stdout == path.read_text()
    path.write_text(path.read_text().replace("image:", "imge:"))
    done = cluster.cli("template", "edit", "mine", str(path))
    assert done.returncode != 0 and "line 6, column 5: unknown key 'imge'" in done.stderr, done
    path.write_text(path.read_text().replace("imge:", "image:").replace("WHO: mine", "WHO: changed"))
    assert cluster.cli("template", "edit", "mine", str(path)).returncode == 0
    assert cluster.cli("template", "edit", made.stdout.strip(), VISUAL="sed -i s/changed/edited/"
                       ).returncode == 0
    assert "edited" in cluster.cli("run", "--template", "mine").stdout
    assert "by hand" in cluster.cli("run", "--template", "mine", "-e", "WHO=by hand").stdout
    assert "other" in cluster.cli("run", "--template", "mine", "echo other").stdout
    assert "template" in cluster.cli("run").stderr
    done = cluster.cli("session", "create", "--template", "mine", "-t", "queued", "--type",
                       "interactive", "--", "true")
    assert done.returncode == 0, done
    cluster.cli("rm", "--force", "queued")
    assert cluster.cli("template", "rm", "mine").returncode == 0
    assert cluster.cli("run", "--template", "mine").returncode != 0


GIT = """\
kind: task_template
metadata: {name: cloned}
spec:
  type: batch
  kernel:
    image: %s
    git:
      repository: "https://git.example/it's $(touch x).git"
      branch: main's
      commit: 0b5c
      credential: {username: me, password: "p@ss'"}
    run: {bootstrap: echo bootstrap, startup: "ls ~; cat /image"}
"""


def test_a_repository_is_cloned_before_the_bootstrap_script(cluster):
    """By commands in which nothing of the template is more than a word."""
    make(cluster, GIT % cluster.image("git"), group_name="default")
    for who in ADMIN, USER:  # the password is hidden from the latter, and used all the same
        done = cluster.run("aliquot", "run", "--template", "cloned", **cluster.cli_env(who))
        assert done.stdout.splitlines() == [
            "git", "clone", "--branch", "main's", "--",
            "https://me:p%40ss%27@git.example/it's $(touch x).git", "it's $(touch x)",
            "git", "-C", "it's $(touch x)", "checkout", "0b5c", "--",
            "bootstrap", "it's $(touch x)", "git"], done
    done = cluster.cli("run", "--template", "cloned", "--image", cluster.image("first"))
    assert done.returncode == 127 and "git: not found" in done.stdout, done


DOTS = "cd; stat -c '%a %U %n' .profile .tool/deep .secret; cat .profile .tool/deep .secret"


def dotfile(client, scope, path, data, permission="644", **owner):
    reply = client.post(f"/{scope}-config/dotfiles",
                        {"path": path, "data": data, "permission": permission, **owner})
    assert reply.status == 200, reply


@pytest.fixture(name="dotfiles")
def dotfiles_fixture(cluster):
    """Of the domain, the project and the keypair; removed afterwards."""
    admin = cluster.client()
    owners = {"domain": {"domain": "default"}, "group": {"group": "default"}, "user": {}}
    for scope, owner in owners.items():
        dotfile(admin, scope, ".profile", f"echo {scope}\n", **owner)
    dotfile(admin, "domain", ".tool/deep", "domain\n", domain="default")
    dotfile(admin, "group", ".tool/deep", "project\n", "755", group="default")
    dotfile(admin, "user", ".secret", "é\n", "600")
    assert admin.post("/user-config/bootstrap-script",
                      {"script": "echo booted >booted"}).status == 200
    yield admin
    for scope, owner in owners.items():
        query = "".join(f"&{key}={value}" for key, value in owner.items())
        for one in admin.get(f"/{scope}-config/dotfiles?" + query[1:]).json:
            admin.delete(f"/{scope}-config/dotfiles?path={one['path']}{query}")
    admin.post("/user-config/bootstrap-script", {"script": ""})


@pytest.mark.gate
def test_dotfiles(cluster, dotfiles):
    """The keypair's win over the project's, and these over the domain's and the image's."""
    _, log = run(cluster, DOTS, image=cluster.image("first"))
    assert log.splitlines() == ["644 work .profile", "755 work .tool/deep", "600 work .secret",
                                "echo user", "project", "é"], log


def test_a_dotfile_leads_through_no_link(cluster, dotfiles):
    """What the program left in its home directory, when it starts again."""
    client = cluster.client()
    body = {**interactive("linked"), "image": cluster.image("first"), "bootstrap_script":
            "mkdir -p /tmp/out; cat ~/.profile >>~/seen; rm -rf ~/.profile ~/.tool; "
            "ln -s /tmp/out/profile ~/.profile; ln -s /tmp/out ~/.tool"}
    assert client.post("/session", body).status == 201
    wait_status(client, "linked", "RUNNING")

    def has_seen(times):
        wait_for(lambda: cluster.cli("exec", "linked", "cat", "seen").stdout == "echo user\n" * times,
                 60, lambda: f"start {times}: " + cluster.cli("exec", "linked", "cat", "seen").stdout)

    has_seen(1)
    assert client.send("PATCH", "/session/linked").status == 204
    has_seen(2)
    assert cluster.cli("exec", "linked", "ls", "/tmp/out").stdout == ""
    client.send("DELETE", "/session/linked?forced=true")
    wait_for(lambda: not cluster.live_sessions(), 60, "the session to end")


def test_the_bootstrap_script_of_a_keypair(cluster, dotfiles):
    """For interactive sessions, if these have none themselves; batch sessions have none."""
    client = cluster.client()
    body = {"image": cluster.image("first")}
    for name, more, expected in (("boot-own", {}, True),
                                 ("boot-other", {"bootstrap_script": "true"}, False)):
        assert client.post("/session", {**interactive(name), **body, **more}).status == 201
        wait_status(client, name, "RUNNING")
        said = cluster.cli("exec", name, "ls").stdout
        assert ("booted" in said.split()) == expected, said
        client.send("DELETE", f"/session/{name}?forced=true")
        wait_for(lambda: not cluster.live_sessions(), 60, "the session to end")
    _, log = run(cluster, "ls", **body)
    assert "booted" not in log.split()
