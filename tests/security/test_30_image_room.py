# SPDX-License-Identifier: Apache-2.0
"""Images that one user has fetched and does not use give way to what another user starts."""

import os
import pathlib
import shutil

import pytest

import containers
from client import DOMAIN_ADMIN, USER
from cluster import ENDED, Cluster, batch, wait_for, wait_status
from images import Layout, LooseRegistry, archive, file, programs
from world import BUILD, Space

MIB = 1 << 20
DISK, SCRATCH, IMAGE = 1000, 64, 60  # MiB
COUNT = 6


class Place:
    """A cluster whose agent has a small disk, and a registry of images of one size, which are far
    smaller when packed. The disk goes with the namespace that it is mounted in."""

    def __init__(self, cluster, path):
        self.cluster, self.layout = cluster, Layout(path / "layout")
        self.registry = LooseRegistry(self.layout)
        self.space = Space(mounts=True, network=False)
        self.state = cluster.folder / "agent"
        self.base = archive(programs("sh", "sleep"))

    def start(self):
        self.cluster.start_manager()
        self.state.mkdir()
        self.space.run("mount", "-t", "tmpfs", "-o", f"size={DISK}m,mode=711", "aliquot", self.state)
        token = self.cluster.client().post("/aliquot/v1/join-tokens", {}).json["token"]
        command = self.space.words(BUILD / "aliquot-agent", "--state", self.state)
        settings = {"ALIQUOT_ID": "agent", "ALIQUOT_IMAGE_INSECURE": self.registry.address}
        joined = self.cluster.start_program("join", *command, "join", self.cluster.link, token,
                                            **settings)
        joined.may_end = True
        assert joined.process.wait(60) == 0, self.cluster.log_of("join")
        self.cluster.start_program("agent", *command, **settings)
        wait_for(lambda: self.cluster.agent().get("connected"), 60, "the agent")

    def stop(self):
        self.registry.stop()
        self.space.close()

    def image(self, tag):
        """Its digest, as the agent calls it."""
        filler = archive([file("filler", tag.encode().ljust(8) * (IMAGE * MIB // 8))])
        return self.layout.image(tag, [self.base, (filler, "zstd")], Env=["PATH=/usr/bin"])[7:]

    def images(self):
        return set(self.space.run("ls", self.state / "images/images").split())

    def free(self):
        return int(self.space.run("stat", "-f", "-c", "%a", self.state)) * int(
            self.space.run("stat", "-f", "-c", "%S", self.state)) // MIB

    def start_session(self, key, tag, command):
        client = self.cluster.client(key)
        reply = client.post("/session", {**batch(tag, command),
                                         "image": self.registry.name(tag)})
        assert reply.status == 201, reply
        return client, reply.json["sessionId"]

    def run(self, key, tag):
        client, session = self.start_session(key, tag, "true")
        return wait_status(client, session, *ENDED)


@pytest.fixture(name="place")
def place_fixture(tmp_path):
    if why := containers.why_not("crun"):
        pytest.skip(why)
    if not containers.can_limit_scratch():
        pytest.skip("no loop devices, or no mkfs.ext4")
    if not shutil.which("skopeo"):
        pytest.skip("skopeo is not installed")
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_RUNTIME_DRIVER="container",
                 ALIQUOT_RUNTIME_OCI="crun", ALIQUOT_CONTAINER_SCRATCH_RESERVE="true",
                 ALIQUOT_CONTAINER_SCRATCH_SIZE=f"{SCRATCH}m", ALIQUOT_IMAGE_KEEP_FREE="1m",
                 ALIQUOT_MANAGER_HEARTBEAT="0.2s", ALIQUOT_AGENTS_HEARTBEAT="1s") as cluster:
        place = Place(cluster, tmp_path)
        try:
            place.start()
            yield place
            cluster.check_nothing_left()
            cluster.stop()
        finally:
            place.stop()


def fill(place):
    """One user fetches images, of which a session uses the first, until there is no room for another
    scratch space. Returns the digests and that session."""
    digests = [place.image(f"a{i}") for i in range(COUNT)]
    client, held = place.start_session(USER, "a0", "sleep 1000")
    wait_status(client, held, "RUNNING")
    for i in range(1, COUNT):
        assert place.run(USER, f"a{i}")["result"] == "SUCCESS"
    assert place.images() == set(digests)
    ballast = place.free() - SCRATCH - 256
    place.space.run("fallocate", "-l", f"{ballast}m", place.state / "ballast")
    return digests, held


def check_the_other_runs(place, digests, held, session):
    client, other = session
    shown = wait_status(client, other, *ENDED)
    assert shown["result"] == "SUCCESS", shown
    left = place.images()
    assert {digests[0], digests[-1]} <= left, "in use, or used last"
    assert digests[1] not in left, "used first"
    user = place.cluster.client(USER)
    assert wait_status(user, held, "RUNNING")
    reply = user.send("DELETE", f"/session/{held}")
    assert reply.status == 200, reply
    wait_status(user, held, *ENDED)


def test_unused_images_give_way_to_another_user(place):
    digests, held = fill(place)
    fresh = place.image("b0")
    check_the_other_runs(place, digests, held, place.start_session(DOMAIN_ADMIN, "b0", "true"))
    assert fresh in place.images()


@pytest.mark.parametrize("point", ["agent.image.gone", "agent.image.tree-removed"])
def test_killed_while_they_give_way(place, point, tmp_path):
    digests, held = fill(place)
    place.image("b0")
    agent = place.cluster.programs["agent"]
    agent.stop()
    died = tmp_path / "died"
    agent.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(died))
    agent.may_end = False
    agent.start()
    session = place.start_session(DOMAIN_ADMIN, "b0", "true")
    wait_for(died.exists, 60, "the agent to die")
    agent.process.wait()
    agent.start()
    check_the_other_runs(place, digests, held, session)
