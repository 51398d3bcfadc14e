# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's own tester, 26.9.6 as it is on PyPI: each of its specs and of its tests of the command
line passes, or is listed here with the reason why it does not. One that is listed and passes fails
the test here, too."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

import pytest

import real_client
from client import ADMIN, DOMAIN_ADMIN, USER
from cluster import wait_for
from images import Layout, Registry, archive, folder, programs
from mounts import HOST, Mounted
from python_image import python_layer
from runtimes import Session, settings_of
from web import EMAIL, PASSWORD, Webbed
from world import Space

PROGRAM = pathlib.Path(__file__).with_name("tester_specs.py")
COMMAND_LINE = pathlib.Path(__file__).with_name("cli_integration.py")
SETTINGS = """
[context.endpoint]
api-endpoint = "http://{api}"
login-endpoint = "{login}"
[context.keypair]
access-key = "{key[0]}"
secret-key = "{key[1]}"
[context.login-credential]
user-id = "{email}"
password = "{password}"
[context.domain]
name = "default"
[context.group]
name = "default"
[context.scaling-group]
name = "default"
[context.image]
name = "{image}"
architecture = "x86_64"
[context.sse]
timeout = 30.0
[context.batch-session]
startup-command = "ls -la"
batch-timeout = 60.0
[context.session.resources]
cpu = 1
mem = "256m"
[context.session-imagify]
new-image-name = "made-of-a-session"
[context.vfolder]
group = "default"
permission = "rw"
cloneable = true
share-permission = "ro"
[context.user-resource-policy]
name = "default"
[context.model-service]
model-vfolder-name = "model"
replicas = 1
group-name = "default"
[runner]
concurrency = {concurrency}
"""
CONCURRENCY = 6
NO_SERVICES = ("Unknown URL path: /services", "model services are not there yet")
NO_IMAGES = ("/(commit|imagify)", "a session cannot become an image yet")
NO_SECRETS = ("Signature mismatch", "a secret key is shown when it is made, and never listed")
SIZES = "(single_node_single_container|single_node_multi_container|multi_node_multi_container)_"
# of names of specs, what their failure says, and the reason
LISTED = {
    f"{SIZES}creation_(public_|private_)?endpoint_success": NO_SERVICES,
    "replicas_(successfully_scale|scale_failure_too_many_sessions)": NO_SERVICES,
    "purge_group_fail_remaining_active_endpoint_exist": NO_SERVICES,
    f"{SIZES}imagify_interactive_session_success|({SIZES})?commit_interactive_session_success":
        NO_IMAGES,
    "invite_vfolder_.*|shared_vfolder_permission_override": NO_SECRETS,
    f"{SIZES}session_status_history":
        ("Status pending is not", "the command line reads names of states in lower case"),
    f"{SIZES}execution_command_on_interactive_session_success":
        ("'2\\\\n'", "a value that is shown ends its line, as in Python itself"),
    f"{SIZES}execution_command_on_interactive_session_failure_with_custom_exitcode":
        ("list index out of range", "sys.exit(2) writes nothing, as in Python itself"),
    "creation_interactive_session_failure_schedule_timeout":
        ("No agent has cpu=", "what no agent could ever hold is refused at once"),
    "creation_interactive_session_failure_low_resources":
        ("UnexpectedSuccess", "shared memory that is not asked for needs no memory of its own"),
}
# The same, where the tester does not wait for what it needs: these may pass
RACES = {
    f"{SIZES}execution_command_on_interactive_session_.*":
        ("Actual status: continued", "it does not ask again for code that takes its time"),
    f"{SIZES}(creation_batch_session_success(_from_template)?|session_dependency_graph_retriever)":
        ("Unexpected final status: RUNNING",
         "the tester wants a batch session to have ended when its creation is answered"),
    f"{SIZES}session_container_log_retriever":
        ("log_retriever.py.*AssertionError", "the first line of the log comes a moment later"),
    "creation_interactive_session_with_vfolder_(uuid|name)_mounts":
        ("is mounted by the session", "the folder is deleted while the session ends"),
}


class TriedCluster(Mounted, Webbed):
    pass


@pytest.fixture(scope="module", name="image")
def image_fixture(tmp_path_factory):
    """In a registry: clients list no others."""
    place = tmp_path_factory.mktemp("images")
    registry = Registry(place / "registry").start()
    layout = Layout(place / "layout")
    layout.image("python", [python_layer(), archive([folder("tmp", mode=0o1777),
                                                       *programs("ls", "mkdir")])],
                 Labels={"ai.backend.resource.min.cpu": "1", "ai.backend.resource.min.mem": "64m"})
    yield layout.push("python", registry, "team/python:3")
    registry.stop()


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(image):
    """Two agents: some sessions are of several nodes."""
    with TriedCluster(**{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "8"},
                       ALIQUOT_IMAGE_INSECURE=image.split("/")[0],
                       ALIQUOT_IMAGE_KEEP_FREE="1") as made:
        made.start("one", "two")
        made.start_web()
        wait_for(lambda: HOST in made.client().get("/folders/_/all_hosts").json["allowed"],
                 what="the storage host to be known")
        made.folder_of("model", usage_mode="model")
        Session(made, "true", image=image).wait("TERMINATED")  # the image is known from here on
        yield made
        for session in made.live_sessions():  # of what has failed
            made.client().send("DELETE", f"/session/{session['id']}?forced=true"
                               f"&owner_access_key={session['access_key']}")
        made.check_nothing_left(60)
        made.stop()


def run_specs(cluster, image, version, *wanted):
    """(spec, parameters, why it has failed) of each run."""
    client = real_client.install_tester(version)
    with tempfile.TemporaryDirectory(prefix="aliquot-tester-", dir=client / "root/tmp") as home:
        inside = "/tmp/" + pathlib.Path(home).name
        settings = SETTINGS.format(api="%s:%d" % cluster.address, login=cluster.origin, key=ADMIN,
                                   email=EMAIL, password=PASSWORD, image=image,
                                   concurrency=CONCURRENCY)
        pathlib.Path(home, "tester.toml").write_text(settings)
        done = subprocess.run([*real_client.python_of(client, inside, "tester"), "-c",
                               PROGRAM.read_text(), f"{inside}/tester.toml", *wanted], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


# It listens for an event while it asks for what causes it, and may begin too late
TOO_LATE = re.compile("_verify_session_(creation|destruction).*TimeoutError", re.DOTALL)
ROUNDS = 4


def run_all(cluster, image, version):
    """The same, where what came too late was run again."""
    runs, wanted = [], []
    for _ in range(ROUNDS):
        again = set(wanted)
        runs = [run for run in runs if run[0] not in again] + run_specs(cluster, image, version,
                                                                        *wanted)
        wanted = sorted({spec for spec, _, why in runs if why and TOO_LATE.search(why)})
        if not wanted:
            break
    return runs


def rows_of(spec, *tables):
    """(what its failure says, reason) of a spec, as the tables have it."""
    return [row for table in tables for names, row in table.items() if re.fullmatch(names, spec)]


@pytest.mark.parametrize("version", [real_client.NEWEST])
def test_each_spec_passes_or_is_listed(cluster, image, version):
    runs = run_all(cluster, image, version)
    failed, surprising = set(), []
    for spec, parameters, why in runs:
        if why:
            failed.add(spec)
            if not any(re.search(said, why, re.DOTALL) for said, _ in rows_of(spec, LISTED, RACES)):
                surprising.append(f"--- {spec} {parameters}\n{why}")
    specs = {spec for spec, *_ in runs}
    assert len(specs) > 70, specs
    assert not surprising, "\n".join(surprising)
    passing = {spec: rows_of(spec, LISTED) for spec in specs - failed if rows_of(spec, LISTED)}
    assert not passing, f"these pass now, so take them off the list: {passing}"


# Lists come without a pager then, and the tester's own setting would change what the client loads
WRAPPER = f"""#!/bin/sh
unset BACKEND_BUILD_ROOT
python3 -c '{real_client.MAIN}' "$@" 2>&1 | cat
"""
PROFILE = """BACKEND_ENDPOINT_TYPE=api
BACKEND_ENDPOINT=http://{address[0]}:{address[1]}
BACKEND_ACCESS_KEY={key[0]}
BACKEND_SECRET_KEY={key[1]}
"""
PROFILES = {"admin_file": ADMIN, "user_file": USER, "user2_file": DOMAIN_ADMIN}
# As LISTED, of the tests of the command line
LISTED_TESTS = {
    "test_scaling_group.py::test_add_scaling_group":
        ("AssertionError: Scaling group scheduler options mismatch",
         "it wants 'roundrobin', which Backend.AI has dropped, and not one of the newer options"),
    "test_scaling_group.py::test_update_scaling_group":
        ("the only driver is 'static'", "a driver that is not there is refused"),
}


@pytest.fixture(name="terminals")
def terminals_fixture():
    """A mount namespace, in which a root has terminals of its own: the tests type at them."""
    space = Space(mounts=True, network=False)
    yield space
    space.close()


def run_command_line(cluster, space, version):
    """[test, why it has failed] of each test of the command line."""
    client = real_client.install_tester(version)
    space.run("mount", "-t", "devpts", "-o", "newinstance", "devpts", client / "root/dev/pts")
    with tempfile.TemporaryDirectory(prefix="aliquot-tester-", dir=client / "root/tmp") as home:
        folder, inside = pathlib.Path(home), "/tmp/" + pathlib.Path(home).name
        (folder / "backend.ai").write_text(WRAPPER)
        (folder / "backend.ai").chmod(0o755)
        for name, key in PROFILES.items():
            (folder / name).write_text(PROFILE.format(address=cluster.address, key=key))
        done = subprocess.run(
            space.words(*real_client.python_of(client, inside, "tester"), "-c",
                        COMMAND_LINE.read_text(), f"{inside}/results"),
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "COLUMNS": "400",
                 "BACKEND_BUILD_ROOT": inside, **{name: f"{inside}/{name}" for name in PROFILES}})
        assert done.returncode == 0, done.stdout[-5000:]
        return [json.loads(line) for line in (folder / "results").read_text().splitlines()]


@pytest.mark.parametrize("version", [real_client.NEWEST])
def test_each_test_of_the_command_line_passes_or_is_listed(cluster, terminals, version):
    runs = run_command_line(cluster, terminals, version)
    assert len(runs) == 39, runs
    surprising = [f"--- {test}\n{why}" for test, why in runs if why
                  and not any(re.search(said, why, re.DOTALL)
                              for said, _ in rows_of(test, LISTED_TESTS))]
    assert not surprising, "\n".join(surprising)
    passing = [test for test, why in runs if not why and rows_of(test, LISTED_TESTS)]
    assert not passing, f"these pass now, so take them off the list: {passing}"
