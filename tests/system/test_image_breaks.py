# SPDX-License-Identifier: Apache-2.0
"""Pulls from a registry that breaks off, is overloaded for a while, or says nothing."""

import gzip
import os
import shutil

import pytest

from breaking_registry import BreakingRegistry
from images import Layout, Store, archive, file

if not shutil.which("skopeo"):
    pytest.skip("skopeo is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("unpacking images needs root", allow_module_level=True)

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path / "layout")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def registry(layout, store):
    registry = BreakingRegistry(layout)
    store.settings["insecure"] = registry.address
    yield registry
    registry.stop()


def make(layout, tag="t", count=2):
    """An image of layers that do not compress; their digests, and those of manifest and config."""
    digest = layout.image(tag, [archive([file(f"file{number}", os.urandom(300000))])
                                for number in range(count)], architecture=MACHINE)
    manifest = layout.read(digest)
    return [layer["digest"] for layer in manifest["layers"]], digest, manifest["config"]["digest"]


def pull(store, name):
    """The states it went through, and the layers."""
    lines = store.run("get", name)
    assert lines[-1].startswith("ready "), lines
    return {line.split()[2] for line in lines if line.startswith("progress ")}, \
        lines[-1].split()[3].split(":")


def check_whole(layers, count=2):
    names = {name for layer in layers for name in os.listdir(layer)}
    assert names == {f"file{number}" for number in range(count)}


@pytest.mark.parametrize("fault", [("cut", 0), ("cut", 150000), (408, {})], ids=str)
def test_layer_once(layout, store, registry, fault):
    """It is fetched again, and what came whole is not."""
    layers, _, _ = make(layout)
    registry.faults[layers[1]] = [fault]
    states, found = pull(store, registry.name("t"))
    check_whole(found)
    assert "retrying" in states, states
    assert registry.gets.count(layers[1]) == 2, registry.gets


def test_layer_twice_500(layout, store, registry):
    layers, _, _ = make(layout)
    registry.faults[layers[0]] = [(500, {}), (502, {})]
    states, found = pull(store, registry.name("t"))
    check_whole(found)
    assert "retrying" in states, states


def test_whole_layers_are_kept(layout, store, registry):
    """Tries that bring a layer do not count."""
    layers, _, _ = make(layout, count=1)
    kept = layers[0]
    more = archive([file("file1", os.urandom(300000))])
    first = (layout.path / "blobs/sha256" / kept[7:]).read_bytes()
    layout.image("u", [gzip.decompress(first), more], architecture=MACHINE)
    both = layout.read(layout.manifests[-1]["digest"])["layers"]
    assert both[0]["digest"] == kept
    registry.faults[both[1]["digest"]] = [("cut", 1)] * 2
    pull(store, registry.name("t"))
    _, found = pull(store, registry.name("u"))
    check_whole(found)
    assert registry.gets.count(kept) == 1, registry.gets


@pytest.mark.parametrize("part", ["manifest", "config"])
@pytest.mark.parametrize("fault", [("cut", 10), (500, {})], ids=str)
def test_manifest_and_config(layout, store, registry, part, fault):
    _, manifest, config = make(layout)
    names = ["t", manifest] if part == "manifest" else [config]
    registry.faults.update({name: [fault] for name in names})
    states, found = pull(store, registry.name("t"))
    check_whole(found)
    assert "retrying" in states, states


@pytest.mark.parametrize("part", ["manifest", "layer"])
def test_too_many_requests(layout, store, registry, part):
    layers, manifest, _ = make(layout)
    names = ["t", manifest] if part == "manifest" else [layers[0]]
    registry.faults.update({name: [(429, {"Retry-After": "1"})] * 2 for name in names})
    _, found = pull(store, registry.name("t"))
    check_whole(found)


def test_layer_always(layout, store, registry):
    """It ends, and says how far it came, at what, and why."""
    layers, _, _ = make(layout, count=1)
    registry.always[layers[0]] = ("cut", 1)
    said = store.failure(registry.name("t"))
    size = (layout.path / "blobs/sha256" / layers[0][7:]).stat().st_size
    assert said.startswith("image-registry gave up after 5 tries with "), said
    assert f" of {size} bytes of layer {layers[0]}: image " in said, said
    assert "closed the connection in the middle of its answer" in said, said
    assert registry.gets.count(layers[0]) == 5, registry.gets
    store.check_clean()


def test_manifest_always(layout, store, registry):
    make(layout)
    registry.always["t"] = (503, {})
    said = store.failure(registry.name("t"))
    assert said.startswith("image-registry gave up after 5 tries: image ") and "error of its own" in said, said


def test_lasting_failures_are_not_tried_again(layout, store, registry):
    layers, _, _ = make(layout)
    registry.always[layers[0]] = (404, {})
    registry.always["forbidden"] = (403, {})
    assert "lacks a part of the image" in store.failure(registry.name("t"))
    assert registry.gets.count(layers[0]) == 1, registry.gets
    assert "access is denied" in store.failure(registry.name("forbidden"))
    assert registry.gets.count("forbidden") == 1, registry.gets


@pytest.mark.parametrize("part", ["manifest", "layer"])
def test_silence(layout, store, registry, part):
    """The connection stays, and nothing comes."""
    layers, _, _ = make(layout)
    store.settings["pull-timeout"] = "20s"
    registry.faults["t" if part == "manifest" else layers[0]] = [("hold", 100)]
    states, found = pull(store, registry.name("t"))
    check_whole(found)
    assert "retrying" in states, states
