# SPDX-License-Identifier: Apache-2.0
"""Service ports of containers: published on the node for the image's services and
for what sessions open, reached from the node and from other hosts but not from
other sessions, kept when the agent is killed, and gone at the end.

As in test_container_network.py each story has a network namespace of its own;
its uplink leads to another one, the other host. Run as a program, this file
tells one.
"""

import functools
import json
import os
import re
import subprocess
import sys

import pytest

from cluster import ENDED, Cluster, interactive, wait_for, wait_status
from images import Layout, archive, file, programs
from runtimes import Session, settings_of
from test_container_network import UPLINK, check_all_gone, in_gate, links, tell_apart

NODE = "192.0.2.2"
LISTENER = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct in_addr own(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9),
                             .sin_addr.s_addr = inet_addr("192.0.2.1") };
    socklen_t len = sizeof(a);
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    connect(s, (struct sockaddr *)&a, sizeof(a));
    getsockname(s, (struct sockaddr *)&a, &len);
    return a.sin_addr;
}

/* listener WORD PORT...: says WORD and the port to each client; "loopback:PORT" and "own:PORT" listen at that address alone
 */
int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        const char *port = strchr(argv[i], ':') ? strchr(argv[i], ':') + 1 : argv[i];
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
        int s = socket(AF_INET, SOCK_STREAM, 0), c;

        if (argv[i][0] == 'l')
            a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else if (argv[i][0] == 'o')
            a.sin_addr = own();
        if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 16))
            return 1;
        if (fork() == 0)
            while ((c = accept(s, NULL, NULL)) >= 0) {
                dprintf(c, "%s %s", argv[1], argv[i]);
                close(c);
            }
    }
    puts("listening");
    fflush(stdout);
    pause();
}
"""
CLIENT = ("import socket, sys\n"
          "s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 3); s.settimeout(3)\n"
          "print(s.recv(100).decode())\n")


class OtherHost:
    """A network namespace at the far end of the uplink."""

    def __init__(self):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net",
                                         "sh", "-c", "echo; exec sleep infinity"],
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()
        pid = str(self.process.pid)
        subprocess.run(["ip", "link", "set", "up1", "netns", pid], check=True)
        for command in ("ip addr add 192.0.2.1/24 dev up1", "ip link set up1 up"):
            subprocess.run(["nsenter", "-t", pid, "-n", *command.split()], check=True)

    def hear(self, port):
        return hear(port, "nsenter", "-t", str(self.process.pid), "-n")


def hear(port, *prefix, address=NODE):
    """What a listener says, "" if it cannot be reached."""
    return subprocess.run([*prefix, sys.executable, "-c", CLIENT, address, str(port)],
                          capture_output=True, text=True, check=False).stdout.strip()


@functools.cache
def listener():
    path = f"/tmp/aliquot-listener-{os.getpid()}"
    subprocess.run(["gcc", "-static", "-O1", "-w", "-x", "c", "-", "-o", path],
                   input=LISTENER.encode(), check=True)
    with open(path, "rb") as program:
        data = program.read()
    os.unlink(path)
    return data


def start(runtime, **settings):
    for command in UPLINK:
        subprocess.run(command.split(), check=True)
    cluster = Cluster(**{**settings_of(runtime), "ALIQUOT_NETWORK_ENABLED": "true",
                         "ALIQUOT_NETWORK_SSH": "false",
                         "ALIQUOT_NETWORK_PORT_MIN": "30000", "ALIQUOT_NETWORK_PORT_MAX": "30003",
                         "ALIQUOT_NETWORK_PORT_REST": "3600s", "ALIQUOT_IMAGE_KEEP_FREE": "1",
                         "ALIQUOT_IMAGE_ALLOW": "* host oci:/", **settings})
    cluster.start_manager()
    cluster.start_agent()
    layout = Layout(cluster.folder / "layout")
    layers = [archive([*programs("sh", "env", "sleep"),
                       file("usr/bin/listener", listener(), mode=0o755)])]
    for name, label in (("web", "web:http:8080,both:tcp:[8081,8082],old:pty:1234"),
                        ("one", "web:http:8080"), ("bad", "web:http:80"), ("none", None)):
        layout.image(name, layers, Labels={} if label is None else {
            "ai.backend.service-ports": label, "ai.backend.endpoint-ports": "web"})
    cluster.image = layout.reference
    return cluster


def listen(cluster, word, image, *ports, opened=()):
    session = Session(cluster, f"env; exec listener {word} {' '.join(map(str, ports))}",
                      image=cluster.image(image), config={
                          "resources": {"cpu": "1", "mem": "64m"}, "preopen_ports": [*opened]})
    session.wait_log("listening")
    session.wait("RUNNING")
    return session


def published(session):
    """{port inside: port of the node}"""
    return {inside: outside for service in session.kernel["service_ports"]
            for inside, outside in zip(service["container_ports"], service["host_ports"])}


def end(*sessions):
    for session in sessions:
        session.end(forced=True)
        session.wait()


def story_of_one_session(cluster):
    """From the node and from another host; told in every form; in the container's surroundings."""
    host = OtherHost()
    session = listen(cluster, "hello", "web", 8080, 8082, 9000, opened=[9000])
    ports = published(session)
    assert sorted(ports) == [8080, 8081, 8082, 9000]
    assert sorted(ports.values()) == [30000, 30001, 30002, 30003]
    for port in (8080, 8082, 9000):
        assert hear(ports[port]) == host.hear(ports[port]) == f"hello {port}"
    assert hear(ports[8081]) == ""  # nobody listens
    assert hear(8080) == host.hear(8080) == ""

    whole = [{"name": "web", "protocol": "http", "container_ports": [8080],
              "host_ports": [ports[8080]], "is_inference": True},
             {"name": "both", "protocol": "tcp", "container_ports": [8081, 8082],
              "host_ports": [ports[8081], ports[8082]], "is_inference": False},
             {"name": "9000", "protocol": "preopen", "container_ports": [9000],
              "host_ports": [ports[9000]], "is_inference": False},
             {"name": "ttyd", "protocol": "http", "container_ports": [7681],
              "host_ports": [], "is_inference": False}]
    assert session.kernel["service_ports"] == whole
    apps = [{"name": each["name"], "protocol": each["protocol"], "ports": each["container_ports"],
             "state": "running" if each["host_ports"] else "not-started"} for each in whole]
    client = session.client
    assert client.get(f"/stream/session/{session.id}/apps").json == apps
    shown = client.gql('{ compute_session(id: "%s") { service_ports containers { preopen_ports '
                       'service_ports } } }' % session.id).json["data"]["compute_session"]
    assert json.loads(shown["service_ports"]) == whole
    assert json.loads(shown["containers"][0]["service_ports"]) == whole
    assert shown["containers"][0]["preopen_ports"] == [9000]
    said = cluster.cli("session", "info", session.id).stdout
    assert f"web {ports[8080]}->8080, both {ports[8081]}->8081" in said, said

    log = session.log
    assert "BACKENDAI_PREOPEN_PORTS=9000\n" in log, log
    assert ("BACKENDAI_SERVICE_PORTS=web:http:8080,both:tcp:[8081,8082],old:pty:1234\n"
            in log), log
    bundle = cluster.folder / "agent/kernels" / session.kernel["id"] / "run/1/config.json"
    assert json.loads(bundle.read_text())["annotations"]["ai.backend.service-ports"] == (
        "web:http:8080,both:tcp:[8081,8082],old:pty:1234,9000:preopen:9000")
    end(session)
    assert all(hear(port) == "" for port in ports.values())
    assert client.get(f"/aliquot/v1/sessions/{session.id}").json["kernels"][0][
        "service_ports"] == whole  # of one that has ended: what it had


def story_of_loopback(cluster):
    """What listens on 127.0.0.1 is published, too, if its port is; other ports of loopback are not.

    Listeners at other addresses are reached as ever, also one that comes later.
    """
    host = OtherHost()
    session = Session(cluster, "(sleep 3; exec listener late 9000) & "
                               "exec listener x loopback:8080 8081 own:8082 loopback:9001",
                      image=cluster.image("web"), config={
                          "resources": {"cpu": "1", "mem": "64m"}, "preopen_ports": [9000]})
    session.wait_log("listening")
    ports = published(session)
    assert hear(ports[8080]) == host.hear(ports[8080]) == "x loopback:8080"
    assert hear(ports[8081]) == host.hear(ports[8081]) == "x 8081"
    assert hear(ports[8082]) == host.hear(ports[8082]) == "x own:8082"
    wait_for(lambda: host.hear(ports[9000]) == "late 9000", 30, "the late listener")
    hosts = next(cluster.folder.glob(f"run/net/**/{session.kernel['id']}/hosts")).read_text()
    address = hosts.split("main1")[0].split()[-1]
    assert hear(8080, address=address) == "x loopback:8080"
    assert hear(9001, address=address) == ""
    end(session)


def story_of_two_sessions(cluster):
    """The same port inside is two ports of the node, and neither reaches the other."""
    first, second = listen(cluster, "first", "one", 8080), listen(cluster, "second", "one", 8080)
    one, two = published(first)[8080], published(second)[8080]
    assert one != two
    assert (hear(one), hear(two)) == ("first 8080", "second 8080")
    third = Session(cluster, f"timeout 2 bash -c 'echo > /dev/tcp/{NODE}/{one}'; echo $?",
                    config={"resources": {"cpu": "1", "mem": "64m"}})
    third.wait()
    assert third.log.splitlines()[-1] != "0", third.log
    end(first, second)


def story_of_a_creation_that_waits(cluster):
    """Who waits until a session runs is told its apps; who asks for it again, everything."""
    client = cluster.client()
    body = {**interactive("waited-for"), "image": cluster.image("one"), "enqueueOnly": False,
            "maxWaitSeconds": 60, "config": {"resources": {"cpu": "1", "mem": "64m"},
                                             "preopen_ports": [9000]}}
    made = client.post("/session", body)
    assert made.status == 201 and made.json["status"] == "RUNNING", made
    assert made.json["servicePorts"] == [
        {"name": "web", "protocol": "http", "ports": [8080]},
        {"name": "9000", "protocol": "preopen", "ports": [9000]},
        {"name": "ttyd", "protocol": "http", "ports": [7681]}]
    again = client.post("/session", body)
    shown = client.get("/aliquot/v1/sessions/waited-for").json
    assert again.status == 200 and again.json["service_ports"], again
    assert again.json["service_ports"] == shown["kernels"][0]["service_ports"]
    assert client.get("/stream/session/no-such-session/apps").status == 404
    client.send("DELETE", "/session/waited-for?forced=true")
    wait_status(client, shown["id"], *ENDED)
    assert client.get(f"/stream/session/{shown['id']}/apps").json == []


def story_of_a_cluster(cluster):
    """The image's services are the main kernel's; what a session opens, it opens in each."""
    session = Session(cluster, "exec listener $BACKENDAI_CLUSTER_HOST 8080 9000",
                      image=cluster.image("one"), clusterSize=2, config={
                          "resources": {"cpu": "1", "mem": "64m"}, "preopen_ports": [9000]})
    kernels = {each["hostname"]: {service["name"]: service["host_ports"][0]
                                  for service in each["service_ports"] if service["host_ports"]}
               for each in session.wait("RUNNING", *ENDED)["kernels"]}
    assert sorted(kernels["main1"]) == ["9000", "web"] and sorted(kernels["sub1"]) == ["9000"]
    for host, port, word in (("main1", "web", "main1 8080"), ("main1", "9000", "main1 9000"),
                             ("sub1", "9000", "sub1 9000")):
        wait_for(lambda: hear(kernels[host][port]) == word, 30, word)
    apps = session.client.get(f"/stream/session/{session.id}/apps").json
    assert [each["name"] for each in apps] == ["web", "9000", "ttyd"]
    end(session)


def story_of_a_rest(cluster):
    """A port is not used again at once; when all rest, a session ends after some tries and says why."""
    sessions = [listen(cluster, "x", "one", 8080)]
    used = {published(sessions[0])[8080]}
    end(*sessions)
    for _ in range(3):
        session = listen(cluster, "x", "one", 8080)
        used.add(published(session)[8080])
        end(session)
    assert used == {30000, 30001, 30002, 30003}
    late = Session(cluster, "true", image=cluster.image("one"))
    assert late.wait()["status"] == "ERROR"
    why = late.client.get(f"/aliquot/v1/sessions/{late.id}/why").json
    assert "no port from 30000 to 30003 is free" in why["text"], why


def story_of_an_agent_that_is_killed(cluster):
    """Its successor knows the same ports, tells them, and gives them to nobody else."""
    session = listen(cluster, "kept", "one", 8080, 9000, opened=[9000])
    before = published(session)
    cluster.programs["agent"].kill()
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert published(session) == before
    assert hear(before[8080]) == "kept 8080" and hear(before[9000]) == "kept 9000"
    other = listen(cluster, "other", "one", 8080)
    assert not set(published(other).values()) & set(before.values())
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert published(session) == before
    end(session, other)


def story_of_a_restart(cluster):
    """A restarted session keeps its ports."""
    session = listen(cluster, "again", "one", 8080)
    before = published(session)
    assert session.client.send("PATCH", f"/session/{session.id}").status == 204
    wait_for(lambda: session.kernel["service_ports"] and hear(before[8080]) == "again 8080", 60,
             "the listener")
    assert published(session) == before
    end(session)


def story_of_refusals(cluster):
    """What cannot be is said, with the field."""
    resources = {"resources": {"cpu": "1", "mem": "64m"}}
    shown = Session(cluster, "true", image=cluster.image("bad")).wait()
    assert (shown["status"], shown["reason"]) == ("ERROR", "failed-to-create"), shown
    why = cluster.client().get(f"/aliquot/v1/sessions/{shown['id']}/why").json
    assert "port 80 must be larger than 1024" in why["text"], why
    assert why["explanation"]["error"]["field"] == "ai.backend.service-ports", why

    shown = Session(cluster, "true", image=cluster.image("one"),
                    config={**resources, "preopen_ports": [8080]}).wait()
    why = cluster.client().get(f"/aliquot/v1/sessions/{shown['id']}/why").json
    assert "port 8080 is already used by 'web'" in why["text"], why

    client = cluster.client()
    for ports, word in (([2200], "reserved"), ([80], "1024"), ([9000, 9000], "already used"),
                        ([*range(9000, 9033)], "at most"), ("web", "preopen_ports")):
        reply = client.post("/session", {
            "name": "refused", "type": "batch", "startupCommand": "true",
            "image": cluster.image("none"), "config": {**resources, "preopen_ports": ports}})
        assert reply.status == 400 and word in json.dumps(reply.json), (ports, reply)
        assert "preopen_ports" in json.dumps(reply.json), reply


def story_of_no_network(cluster):
    """Where containers have no network nothing is published, and nothing can be opened."""
    cluster.programs["agent"].stop()
    cluster.start_agent(ALIQUOT_NETWORK_ENABLED="false")
    session = listen(cluster, "alone", "one", 8080)
    assert session.kernel["service_ports"] and not published(session)
    end(session)
    shown = Session(cluster, "true", image=cluster.image("none"), config={
        "resources": {"cpu": "1", "mem": "64m"}, "preopen_ports": [9000]}).wait()
    why = cluster.client().get(f"/aliquot/v1/sessions/{shown['id']}/why").json
    assert shown["status"] == "ERROR" and "no network" in why["text"], why


def story_of_faults(cluster):
    """Killed while a port is being published or withdrawn, the agent leaves nothing wrong."""
    cluster.supervise()
    for point in ("agent.net.opened", "agent.net.table.before", "agent.net.table.written",
                  "agent.net.unlinked"):
        mark = cluster.folder / ("died-" + point)
        cluster.programs["agent"].stop()
        cluster.start_agent(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark),
                            ALIQUOT_NETWORK_PORT_REST="0s")
        session = listen(cluster, point, "one", 8080)
        port = published(session)[8080]
        assert hear(port) == f"{point} 8080"
        end(session)
        wait_for(mark.exists, 30, f"{point} to be passed")
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        wait_for(lambda: not links() and hear(port) == "", 30, "the port to go")
    rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True,
                           check=True).stdout
    assert not re.search(r"3000\d : ", rules), rules


STORIES = {name: story for name, story in globals().items() if name.startswith("story_")}


def tell(runtime, name):
    with start(runtime) as cluster:
        STORIES[name](cluster)
        check_all_gone(cluster)


@pytest.mark.parametrize("name", in_gate(STORIES, "story_of_one_session",
                                          "story_of_a_cluster"))
def test_story(name):
    tell_apart(__file__, "runc" if name == "story_of_one_session" else "crun", name)


def test_processes_open_nothing():
    """A process of the node has the node's ports."""
    with Cluster(**settings_of("process")) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        session = Session(cluster, "true", image="process", config={
            "resources": {"cpu": "1", "mem": "64m"}, "preopen_ports": [9000]})
        shown = session.wait()
        why = cluster.client().get(f"/aliquot/v1/sessions/{session.id}/why").json
        assert shown["status"] == "ERROR" and "only containers" in why["text"], why
        assert why["explanation"]["error"]["field"] == "preopen_ports", why


if __name__ == "__main__":
    tell(*sys.argv[1:])
