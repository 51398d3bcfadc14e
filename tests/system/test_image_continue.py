# SPDX-License-Identifier: Apache-2.0
"""A layer whose download was cut continues where it stopped."""

import base64
import errno
import json
import os
import re
import shutil
import ssl
import subprocess

import pytest

from breaking_registry import BreakingRegistry
from cluster import Cluster, wait_for
from images import Layout, Store, archive, file, programs
from runtimes import run, settings_of
from world import BUILD

if not shutil.which("skopeo"):
    pytest.skip("skopeo is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("unpacking images needs root", allow_module_level=True)

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
HALF = 150000  # of a layer of 300000 bytes, which do not compress
SLACK = 20000  # bytes that are requested again, and headers of the archive


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path / "layout")


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    store.env["HOME"] = str(tmp_path / "home")
    return store


@pytest.fixture
def registry(layout, store):
    registry = BreakingRegistry(layout)
    store.settings["insecure"] = registry.address
    yield registry
    registry.stop()


def make(layout, count=1, tag="t"):
    """The digests of layers of 300000 bytes each, and of the image."""
    digest = layout.image(tag, [archive([file(f"file{number}", os.urandom(300000))])
                                for number in range(count)], architecture=MACHINE)
    return [layer["digest"] for layer in layout.read(digest)["layers"]], digest


def cut(state, count=HALF, files=1):
    """What ends the first download, once the agent has seen this many files of skopeo."""
    def wait():
        kept = (state / "images/pulls").glob
        wait_for(lambda: files == sum(path.stat().st_size >= count - SLACK
                                      for path in kept("*/kept-*")), 60, "files of skopeo")
    return "cut", count, wait


def size(layout, layer):
    return (layout.path / "blobs/sha256" / layer[7:]).stat().st_size


def check_whole(layers, count=1):
    names = {name for layer in layers for name in os.listdir(layer)}
    assert names == {f"file{number}" for number in range(count)}


def ranges(registry, layer):
    """The first byte that each request of the layer named."""
    return [int(re.fullmatch(r"bytes=(\d+)-", said)[1]) if said else 0
            for name, said in registry.seen if name == layer]


@pytest.mark.gate
def test_second_request_has_a_range(layout, store, registry):
    """Also after the cut of skopeo's own download, whose file it removes."""
    [layer], _ = make(layout)
    registry.faults[layer] = [cut(store.state)]
    check_whole(store.get(registry.name("t")))
    first, second = ranges(registry, layer)
    assert first == 0 and HALF - SLACK < second < HALF, registry.seen
    assert registry.sent[layer] < size(layout, layer) + SLACK, registry.sent


def test_each_cut_continues(layout, store, registry):
    [layer], _ = make(layout)
    registry.faults[layer] = [cut(store.state, HALF // 2), ("cut", HALF // 2), ("cut", HALF // 2)]
    check_whole(store.get(registry.name("t")))
    found = ranges(registry, layer)
    assert len(found) == 4 and found == sorted(found), found
    assert registry.sent[layer] < size(layout, layer) + SLACK, registry.sent


def test_tries_that_bring_bytes_do_not_count(layout, store, registry):
    """A large layer arrives over more cuts than there are tries in a row."""
    part = 17 << 20
    digest = layout.image("t", [archive([file("file0", os.urandom(part * 6))])], how="",
                          architecture=MACHINE)
    [layer] = [layer["digest"] for layer in layout.read(digest)["layers"]]
    registry.faults[layer] = [cut(store.state, part), *[("cut", part)] * 5]
    check_whole(store.get(registry.name("t")))
    assert len(ranges(registry, layer)) == 7, registry.seen


def test_several_layers(layout, store, registry):
    """Each partial file is continued by the layer that it is of."""
    layers, _ = make(layout, 3)
    for layer in layers:
        registry.faults[layer] = [cut(store.state, files=3)]
    check_whole(store.get(registry.name("t")), 3)
    for layer in layers:
        assert ranges(registry, layer)[-1] > HALF - SLACK, registry.seen


def test_registry_without_ranges(layout, store, registry):
    """It sends everything again, in the same answer."""
    [layer], _ = make(layout)
    registry.ranges = "ignore"
    registry.faults[layer] = [cut(store.state)]
    check_whole(store.get(registry.name("t")))
    assert len(ranges(registry, layer)) == 2, registry.seen
    assert registry.sent[layer] == HALF + size(layout, layer), registry.sent


def test_useless_files_of_skopeo_go(layout, store, registry):
    """The registry sends each layer from its first byte: what skopeo left would fill the disk."""
    layers, digest = make(layout, 2)
    config, left = layout.read(digest)["config"]["digest"], []

    def look():
        left.append([path.name for path in store.state.glob("images/pulls/*/kept-*")])
    registry.ranges = "ignore"
    registry.always[config] = ("cut", 1 << 20, look)
    for layer in layers:
        registry.faults[layer] = [cut(store.state, files=2)]
    check_whole(store.get(registry.name("t")), 2)
    assert len(ranges(registry, layers[0])) == 2 and left and left[-1] == [], left


def test_limited_rate(layout, store, registry):
    """aliquot-fetch waits as the registry says, and a refusal does not lose what has arrived."""
    [layer], _ = make(layout)
    registry.faults[layer] = [cut(store.state), *[(429, {"Retry-After": "1"})] * 5]
    check_whole(store.get(registry.name("t")))
    first, *others = ranges(registry, layer)
    assert first == 0 and len(others) == 6 and all(HALF - SLACK < at < HALF for at in others), others
    assert registry.sent[layer] < size(layout, layer) + SLACK, registry.sent


def test_wrong_content_range(layout, store, registry):
    """The bytes are not used: the layer is fetched from its first byte."""
    [layer], _ = make(layout)
    registry.ranges = "shift"
    registry.faults[layer] = [cut(store.state)]
    check_whole(store.get(registry.name("t")))
    found = ranges(registry, layer)
    assert found[0] == 0 and found[1] > 0 and found[-1] == 0, found


def test_wrong_bytes(layout, store, registry):
    """The partial file is dropped, one download from the first byte follows, and its failure is told."""
    [layer], digest = make(layout)
    registry.faults[layer] = [cut(store.state)]
    data = (layout.path / "blobs/sha256" / layer[7:]).read_bytes()
    registry.wrong[layer] = data[:-100] + bytes(100)
    said = store.failure(registry.name("t"))
    assert said.startswith("image-damaged ") and layer[:19] in said and "digest" in said, said
    assert ranges(registry, layer)[-1] == 0, registry.seen
    assert not [name for name in os.listdir(store.state / "images/pulls" / digest[7:])
                if name.startswith(("part-", "kept-"))]
    registry.wrong.clear()
    check_whole(store.get(registry.name("t")))


def test_more_bytes_than_the_manifest_says(layout, store, registry):
    [layer], _ = make(layout)
    registry.faults[layer] = [("cut", HALF)]
    data = (layout.path / "blobs/sha256" / layer[7:]).read_bytes()
    registry.wrong[layer] = data + bytes(1 << 20)
    said = store.failure(registry.name("t"))
    assert said.startswith("image-damaged ") and f"more than the {len(data)} bytes" in said, said


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk(layout, store, registry, tmp_path, code):
    """Also under a quota, unused images give way; without any, the failure is told as for skopeo."""
    layout.image("old", [archive([file("old", os.urandom(1000))])], architecture=MACHINE)
    store.get(registry.name("old"))
    [layer], _ = make(layout)
    registry.faults[layer] = [("cut", HALF)] * 2
    program = tmp_path / "fetch"
    program.write_text(f"#!/bin/sh\necho failed {code} - layer {layer[:19]}: it does not fit\nexit 1\n")
    program.chmod(0o755)
    store.settings["fetch"] = str(program)
    said = store.failure(registry.name("t"))
    assert said.startswith("image-no-space "), said
    assert not store.images(), store.images()


def test_after_the_agent_was_killed(layout, store, registry):
    """The next agent goes on with the file that skopeo was writing."""
    [layer], _ = make(layout)
    registry.faults[layer] = [("hold", HALF)]
    with store.start("get", registry.name("t")) as process:
        try:
            wait_for(lambda: registry.sent.get(layer), 60, "the first half")
            pulls = store.state / "images/pulls"
            wait_for(lambda: any(path.stat().st_size >= HALF - SLACK
                                 for path in pulls.glob("*/oci-put-blob*")), 60, "its file")
        finally:
            process.kill()
    registry.ended.set()
    check_whole(store.get(registry.name("t")))
    assert ranges(registry, layer)[1] > 0, registry.seen
    assert registry.sent[layer] < size(layout, layer) + SLACK, registry.sent
    assert not [entry for entry in store.entries("pulls") if not entry.startswith(".")]


def test_login_and_redirect(layout, store, registry, tmp_path):
    """The login goes to the registry, and not to the host that it redirects to."""
    [layer], _ = make(layout)
    pair = base64.b64encode(b"user:secret").decode()
    registry.login = f"Basic {pair}"
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {registry.address: {"auth": pair}}}))
    store.settings["auth-file"] = str(tmp_path / "auth.json")
    other = BreakingRegistry(layout)
    try:
        registry.always[layer] = (307, {"Location": f"http://{other.address}/v2/a/blobs/{layer}"})
        other.faults[layer] = [cut(store.state)]
        check_whole(store.get(registry.name("t")))
    finally:
        other.stop()
    assert ranges(other, layer)[1] > 0 and ranges(registry, layer)[1] > 0, registry.seen
    assert other.logins == {None}, other.logins


@pytest.mark.parametrize("trust", ["authority", "insecure"])
def test_registry_with_tls(layout, store, registry, tmp_path, trust):
    """Its certificate is verified with the authorities of the node, unless the settings say otherwise."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=registry",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    registry.server.socket = context.wrap_socket(registry.server.socket, server_side=True)
    if trust == "authority":
        del store.settings["insecure"]
        store.env["SSL_CERT_FILE"] = str(tmp_path / "cert.pem")
    [layer], _ = make(layout)
    registry.faults[layer] = [cut(store.state)]
    check_whole(store.get(registry.name("t")))
    assert ranges(registry, layer)[1] > 0, registry.seen
    # without the authority, the program asks for nothing
    registry.seen.clear()
    (tmp_path / "missing").write_text(f"{layer} {size(layout, layer)}\n")
    done = subprocess.run([BUILD / "aliquot-fetch", "--registry", registry.address, "--repository",
                           "a", "--directory", tmp_path], capture_output=True, text=True, check=False,
                          env={"HOME": store.env["HOME"]}, timeout=60)
    assert done.returncode == 3 and "certificate" in done.stdout, done
    assert registry.seen == []


def test_policy_is_checked(layout, store, registry, tmp_path):
    """Also of an image whose layers arrived without skopeo: here it was cut before it knew them."""
    _, digest = make(layout)
    (tmp_path / "policy.json").write_text('{"default": [{"type": "reject"}]}')
    store.settings["signature-policy"] = str(tmp_path / "policy.json")
    registry.faults[digest] = [None, ("cut", 10)]
    assert "policy" in store.failure(registry.name("t"))
    assert registry.faults[digest] == [] and registry.sent, registry.gets
    assert "policy" in store.failure(registry.name("t"))
    assert store.entries("images") == []


@pytest.mark.parametrize("setting", ["mirror", "proxy", "helper", "logins", "certificate"])
def test_settings_that_only_skopeo_follows(layout, store, registry, tmp_path, setting):
    """The layer is fetched from its first byte, as skopeo does."""
    [layer], _ = make(layout)
    registry.faults[layer] = [cut(store.state)]
    containers = tmp_path / "home/.config/containers"
    containers.mkdir(parents=True)
    if setting == "mirror":
        (containers / "registries.conf.d").mkdir()
        (containers / "registries.conf.d/mirror.conf").write_text(
            '[[registry]]\nprefix = "registry.example"\nlocation = "mirror.example"\n')
    elif setting == "proxy":
        store.env |= {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1"}
    elif setting == "helper":
        (tmp_path / "auth.json").write_text('{"credHelpers": {"registry.example": "none"}}')
        store.settings["auth-file"] = str(tmp_path / "auth.json")
    elif setting == "logins":
        (tmp_path / "home/.docker").mkdir()
        (tmp_path / "home/.docker/config.json").write_text("{}")
    else:
        (containers / "certs.d" / registry.address).mkdir(parents=True)
    check_whole(store.get(registry.name("t")))
    assert ranges(registry, layer) == [0, 0], registry.seen


def test_session(layout):
    """Its container starts after a cut; or it is told that the bytes are wrong."""
    digest = layout.image("t", [archive([*programs("sh", "cat"), file("random", os.urandom(300000)),
                                         file("which", b"yes\n")])], architecture=MACHINE)
    [layer] = [layer["digest"] for layer in layout.read(digest)["layers"]]
    make(layout, tag="wrong")
    [wrong] = [layer["digest"] for layer in layout.read(layout.manifests[-1]["digest"])["layers"]]
    registry = BreakingRegistry(layout)
    try:
        with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_INSECURE=registry.address,
                     ALIQUOT_IMAGE_KEEP_FREE="1") as cluster:
            cluster.start_manager()
            cluster.start_agent()
            state = cluster.folder / "agent"
            registry.faults[layer] = [cut(state)]
            shown, log = run(cluster, "cat /which", image=registry.name("t"))
            assert (shown["result"], log) == ("SUCCESS", "yes\n"), (shown, log)
            assert ranges(registry, layer)[1] > 0, registry.seen
            assert registry.sent[layer] < size(layout, layer) + SLACK, registry.sent
            registry.faults[wrong] = [cut(state)]
            registry.wrong[wrong] = bytes(size(layout, wrong))
            shown, _ = run(cluster, "cat /which", image=registry.name("wrong"))
            assert shown["result"] != "SUCCESS" and wrong[:19] in json.dumps(shown), shown
    finally:
        registry.stop()


def test_policy_is_checked_for_layers_of_another_image(layout, store, registry, tmp_path):
    """All layers are unpacked already: the policy rejects the other image nevertheless."""
    tar = archive([file("file0", os.urandom(300000))])
    layout.image("good", [tar], architecture=MACHINE)
    layout.image("bad", [tar], architecture=MACHINE, Env=["LD_PRELOAD=/evil.so"])
    store.get(f"{registry.address}/good/a:good")
    (tmp_path / "policy.json").write_text(json.dumps({
        "default": [{"type": "reject"}],
        "transports": {"docker": {f"{registry.address}/good": [{"type": "insecureAcceptAnything"}]}}}))
    store.settings["signature-policy"] = str(tmp_path / "policy.json")
    said = store.failure(f"{registry.address}/bad/a:bad")
    assert "policy" in said, said
    assert len(store.entries("images")) == 1, store.entries("images")
