# SPDX-License-Identifier: Apache-2.0
"""What a user meets in the first hour: whose project a session is in, how a machine joins, when
and whether a session would start."""

import contextlib
import json
import re

import pytest

from cluster import Cluster
from world import Space

SMALL = ("-r", "cpu=1", "-r", "mem=32m")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1", TZ="UTC-9") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module", name="with_agent")
def with_agent_fixture(cluster):
    cluster.start_agent()
    return cluster


def fine(done):
    assert done.returncode == 0, done
    return done.stdout


# ---- before a machine has joined ----

def test_a_cluster_without_machines_says_how_one_joins(cluster):
    fine(cluster.cli("session", "create", "-t", "early", *SMALL, "--", "true"))
    for words in (("session", "why", "early"), ("run", "--dry-run", *SMALL, "true")):
        said = fine(cluster.cli(*words, COLUMNS="1000"))
        assert "no machine has joined the cluster" in said and "aliquot agent token" in said, said
        assert "filter" not in said and "architecture" not in said, said
    fine(cluster.cli("rm", "early"))


def joins_with(done):
    assert done.returncode == 0, done
    return re.search(r"join (\S+) (\S+)$", done.stderr, re.M).groups()


def test_the_line_for_a_new_machine_has_the_address_of_the_link():
    """The API is on 127.0.0.1, and the link on another address: it is the one that is printed."""
    with Cluster() as other:
        port = other.link.rpartition(":")[2]
        other.link = f"127.0.0.3:{port}"
        other.start_manager()
        done = other.cli("agent", "token")
        where, token = joins_with(done)
        assert where == other.link and "[link] listen" in done.stderr
        assert token == done.stdout.split()[1]
        fine(other.run("aliquot-agent", "--state", other.folder / "agent", "join", where, token))
        other.stop()


@pytest.mark.parametrize("anything", ["0.0.0.0", "[::]"])
def test_a_link_on_all_addresses_is_named_as_the_manager_was(anything):
    with contextlib.closing(Space()) as network, Cluster() as other, network.entered():
        port = other.link.rpartition(":")[2]
        other.link = f"{anything}:{port}"
        done = other.run("aliquot-manager", "--state", other.folder / "manager", "--json", "init")
        keys = json.loads(done.stdout)
        other.start_manager(dev=False)
        env = dict(other.cli_env((keys["access_key"], keys["secret_key"])),
                   ALIQUOT_ENDPOINT="http://localhost:%d" % other.address[1])
        where, token = joins_with(other.run("aliquot", "agent", "token", **env))
        assert where == f"localhost:{port}"
        fine(other.run("aliquot-agent", "--state", other.folder / "agent", "join", where, token))
        other.stop()


# ---- projects ----

@pytest.fixture(scope="module", name="people")
def people_fixture(with_agent):
    """Users by the projects that they are in; each is a function that runs commands."""
    cluster = with_agent

    def admin(*words):
        return fine(cluster.cli("admin", *words))

    def person(name, domain, *projects):
        email = name + "@example.com"
        groups = [word for project in projects for word in ("--groups", project)]
        admin("user", "create", email, "--domain", domain, *groups)
        if not projects:
            admin("project", "remove-user", "default", email)
        made = json.loads(admin("keypair", "create", email, "-o", "json"))
        keys = cluster.cli_env((made["access_key"], made["secret_key"]))
        return lambda *words, **more: cluster.run("aliquot", *words, **keys, **more)

    for project in ("optics", "lasers"):
        admin("project", "create", project)
    admin("domain", "create", "physics")
    admin("project", "create", "quanta", "--domain", "physics")
    admin("resource-group", "allow", "default", "--domain", "physics")
    return {"one": person("one", "default", "optics"), "far": person("far", "physics", "quanta"),
            "two": person("two", "default", "optics", "lasers"),
            "usual": person("usual", "default", "optics", "default"),
            "none": person("none", "default")}


def whoami(person, **more):
    return json.loads(fine(person("whoami", "-o", "json", **more)))


@pytest.mark.parametrize("name, domain, project", [
    ("one", "default", "optics"), ("far", "physics", "quanta"), ("usual", "default", "default")])
def test_the_project_of_a_user_is_taken(people, name, domain, project):
    """Neither an option nor a setting is needed, and whoami names the same project."""
    person = people[name]
    fine(person("run", *SMALL, "--name", "first-" + name, "true"))
    shown = json.loads(fine(person("session", "info", "first-" + name, "-o", "json")))
    assert (shown["domain"], shown["group"]) == (domain, project)
    known = whoami(person)
    assert (known["domain"], known["group"]) == (domain, project)
    assert project in known["projects"]
    assert "aliquot config set" not in person("whoami").stderr


def test_one_of_several_projects_is_to_be_named(people):
    person = people["two"]
    refused = person("run", *SMALL, "true")
    assert refused.returncode == 125 and "--group: no project was named" in refused.stderr
    assert re.search(r"name one of (lasers, optics|optics, lasers)", refused.stderr), refused
    known = person("whoami")
    assert "PROJECT " not in known.stdout and "aliquot config set group PROJECT" in known.stderr
    assert sorted(whoami(person)["projects"]) == ["lasers", "optics"]
    for option, settings in ((("--group", "lasers"), {}), ((), {"ALIQUOT_GROUP": "lasers"})):
        fine(person("run", *option, *SMALL, "--name", "named", "true", **settings))
    assert whoami(person, ALIQUOT_GROUP="lasers")["group"] == "lasers"
    wrong = person("run", "--group", "quanta", *SMALL, "true")
    assert re.search(r"'quanta' is not one of yours; name one of .*optics", wrong.stderr), wrong
    assert "you are not in project 'quanta'" in person("whoami", ALIQUOT_GROUP="quanta").stderr


def test_a_user_without_a_project_is_told_whom_to_ask(people):
    person = people["none"]
    assert "you are in no project: ask an administrator" in person("run", *SMALL, "true").stderr
    assert "aliquot admin project add-user PROJECT none@example.com" in person("whoami").stderr


def test_a_script_of_slurm_has_the_project_as_its_account(with_agent, people):
    script = with_agent.folder / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --job-name=account -c 1 --mem=32M\n"
                      "echo \"account $SLURM_JOB_ACCOUNT\"\n")
    person = people["one"]
    fine(person("submit", "--wait", script))
    assert "account optics" in fine(person("logs", "account"))
