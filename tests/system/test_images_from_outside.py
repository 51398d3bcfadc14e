# SPDX-License-Identifier: Apache-2.0
"""Images in the forms that other tools write: indexes in all shapes, from registries that say
little of what they send and from layouts."""

import json
import os
import pathlib
import shutil

import pytest

from images import OCI, Layout, LooseRegistry, Store, archive, file, sha256

for program in ("skopeo", "zstd"):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("unpacking images needs root", allow_module_level=True)

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
OTHER = {"amd64": "arm64", "arm64": "amd64"}[MACHINE]
HERE = {"platform": {"os": "linux", "architecture": MACHINE}}
ELSEWHERE = {"platform": {"os": "linux", "architecture": OTHER}}
NOWHERE = {"platform": {"os": "unknown", "architecture": "unknown"}}
INDEX = {"mediaType": OCI + "index.v1+json"}
DOCKER = "application/vnd.docker.distribution.manifest."


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path / "layout")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def registry(layout, store):
    registry = LooseRegistry(layout)
    store.settings["insecure"] = registry.address
    yield registry
    registry.stop()


def small(layout, text, **more):
    """An image with one file that says which it is."""
    return layout.image("image-" + text, [archive([file("which", text.encode())])], **more)


def attestation(layout, digest):
    """As buildx adds them: an image of one in-toto statement."""
    statement = layout.blob(b"{}")
    config = layout.blob(json.dumps({"architecture": "unknown", "os": "unknown", "rootfs": {
        "type": "layers", "diff_ids": [statement]}}).encode())
    manifest = layout.blob(json.dumps({
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
        "config": {"mediaType": OCI + "config.v1+json", "digest": config, "size": 1},
        "layers": [{"mediaType": "application/vnd.in-toto+json", "digest": statement,
                    "size": 2}]}).encode())
    return manifest, {**NOWHERE, "annotations": {"vnd.docker.reference.digest": digest,
                                                 "vnd.docker.reference.type":
                                                     "attestation-manifest"}}


def which(layers):
    return pathlib.Path(layers[0], "which").read_text()


# ---- indexes ----

def plain(layout):
    layout.list("t", [(small(layout, "no", architecture=OTHER), ELSEWHERE),
                      (small(layout, "yes"), HERE)])


def attested(layout):
    yes = small(layout, "yes", how="zstd")
    layout.list("t", [attestation(layout, yes), (yes, HERE), attestation(layout, yes)])


def nested(layout):
    inner = layout.list("inner", [(small(layout, "no", architecture=OTHER), ELSEWHERE),
                                  (small(layout, "yes"), HERE)])
    layout.list("t", [(layout.list("middle", [(inner, INDEX)]), INDEX)])


def nested_elsewhere(layout):
    other = layout.list("other", [(small(layout, "no", architecture=OTHER), ELSEWHERE)])
    layout.list("t", [(other, INDEX), (layout.list("inner", [(small(layout, "yes"), HERE)]),
                                       {**INDEX, **HERE})])


def nested_without_type(layout):
    inner = layout.list("inner", [(small(layout, "yes"), HERE)])
    layout.list("t", [(inner, {"mediaType": None})])


def single(layout):
    layout.list("t", [(small(layout, "yes"), {})])


def without_platforms(layout):
    """Only their configurations say for what they are."""
    layout.list("t", [(small(layout, "no", architecture=OTHER), {}), (small(layout, "yes"), {}),
                      (small(layout, "late"), {})])


def without_type(layout):
    layout.list("t", [(small(layout, "yes", body={"mediaType": None}), HERE)], mediaType=None)


def variants(layout):
    """One that no processor runs comes last, one for all processors before it."""
    layout.list("t", [(small(layout, "no"), {"platform": {**HERE["platform"], "variant": "v9"}}),
                      (small(layout, "yes"), {"platform": {**HERE["platform"], "variant": "v1"}})])


def extras(layout):
    layout.list("t", [(small(layout, "no"), {"platform": {
        "os": "windows", "architecture": MACHINE, "os.version": "10.0.17763.1",
        "os.features": ["win32k"]}}), (small(layout, "yes"), {
            "platform": {**HERE["platform"], "os.version": "6", "os.features": [], "x": 1},
            "artifactType": "application/x", "annotations": {"a": "b"}, "data": "e30="})],
        subject={"mediaType": OCI + "manifest.v1+json", "digest": sha256(b""), "size": 0},
        annotations={"x": "y"}, unknown=[])


def signed(layout):
    """An artifact beside the image, as cosign and notation add them."""
    layout.list("t", [(small(layout, "no"), {"artifactType": "application/vnd.example+json"}),
                      (small(layout, "yes"), HERE)])


INDEXES = [plain, attested, nested, nested_elsewhere, nested_without_type, single,
           without_platforms, without_type, variants, extras, signed]
if MACHINE != "amd64":
    INDEXES.remove(variants)


@pytest.mark.parametrize("make", INDEXES, ids=lambda make: make.__name__)
def test_index(layout, store, registry, make):
    """From a registry, from a layout by the index's name, and from one that has nothing else."""
    make(layout)
    name = layout.reference("t")
    assert which(store.get(name)) == "yes"
    store.run("rm", name)
    assert which(store.get(registry.name("t"))) == "yes"
    store.run("rm", registry.name("t"))
    layout.manifests = [m for m in layout.manifests
                        if m["annotations"]["org.opencontainers.image.ref.name"] == "t"]
    for item in layout.manifests:
        del item["annotations"]
    (layout.path / "index.json").write_text(json.dumps({"manifests": layout.manifests}))
    assert which(store.get(f"oci:{layout.path}")) == "yes"
    store.check_clean()


def test_manifest_list_of_docker(layout, store, registry):
    layout.image("x", [archive([file("which", b"yes")])], body={"mediaType": DOCKER + "v2+json"})
    digest = layout.manifests[-1]["digest"]
    manifest = json.loads((layout.path / "blobs/sha256" / digest[7:]).read_text())
    manifest["config"]["mediaType"] = "application/vnd.docker.container.image.v1+json"
    manifest["layers"][0]["mediaType"] = "application/vnd.docker.image.rootfs.diff.tar.gzip"
    manifest = layout.blob(json.dumps(manifest).encode())
    layout.list("t", [(manifest, {"mediaType": DOCKER + "v2+json", **HERE})],
                mediaType=DOCKER + "list.v2+json")
    assert which(store.get(registry.name("t"))) == "yes"


@pytest.mark.parametrize("body", [None, DOCKER + "v2+json", OCI + "index.v1+json", "text/plain"])
def test_body_that_says_another_type(layout, store, registry, body):
    """What a manifest is can be seen from what it has."""
    digest = small(layout, "yes", body={"mediaType": body})
    registry.types.update({"image-yes": OCI + "manifest.v1+json", digest: OCI + "manifest.v1+json"})
    for name in (registry.name("image-yes"), layout.reference("image-yes")):
        assert which(store.get(name)) == "yes"
        store.run("rm", name)


@pytest.mark.parametrize("header", [DOCKER + "v2+json", "text/plain", "application/json"])
def test_registry_that_says_another_type(layout, store, registry, header):
    digest = small(layout, "yes")
    registry.types.update({"image-yes": header, digest: header})
    assert "says another type of it than it has" in store.failure(registry.name("image-yes"))


def test_too_deep(layout, store, registry):
    digest, more = small(layout, "no"), HERE
    for level in range(8):
        digest, more = layout.list(f"level{level}", [(digest, more)]), INDEX
    for name in (registry.name("level7"), layout.reference("level7")):
        assert "nested deeper than 4" in store.failure(name)
    assert which(store.get(registry.name("level3"))) == "no"


def test_none_for_this_machine(layout, store, registry):
    layout.list("t", [(small(layout, "no", architecture=OTHER), ELSEWHERE)])
    for name in (registry.name("t"), layout.reference("t")):
        assert f"not there for linux/{MACHINE}, only for linux/{OTHER}" in store.failure(name)
    layout.list("v", [(small(layout, "no"), {"platform": {**HERE["platform"], "variant": "v9"}})])
    if MACHINE == "amd64":
        assert "there only for linux/amd64/v9" in store.failure(layout.reference("v"))


# ---- layouts ----

def test_layout_with_several_names(layout, store):
    """As buildah leaves them: a name, the digest, or the error says which names there are."""
    first, second = small(layout, "a"), small(layout, "b")
    assert which(store.get(layout.reference("image-a"))) == "a"
    assert which(store.get(layout.reference("image-b"))) == "b"
    assert which(store.get(layout.reference(second))) == "b"
    said = store.failure(f"oci:{layout.path}")
    assert "append ':' and one of their names: image-a, image-b" in said
    assert "it has: image-a, image-b" in store.failure(layout.reference("image-c"))
    assert "image-not-found" in store.failure(layout.reference(sha256(b"none")))
    inner = layout.list("inner", [(first, {"annotations": {
        "org.opencontainers.image.ref.name": "deep"}}), (second, {})])
    assert which(store.get(layout.reference("deep"))) == "a"
    assert which(store.get(layout.reference(inner))) == "a"


def test_two_names_of_one_image_are_no_question(layout, store):
    small(layout, "yes")
    layout.manifests.append({**layout.manifests[0], "annotations": {
        "org.opencontainers.image.ref.name": "again"}})
    (layout.path / "index.json").write_text(json.dumps({"schemaVersion": 2,
                                                        "manifests": layout.manifests}))
    assert which(store.get(f"oci:{layout.path}")) == "yes"


def test_layout_with_pipes_and_links(layout, store):
    """No pipe is waited for, and no file outside is taken for what it is not."""
    digest = small(layout, "yes")
    blob = layout.path / "blobs/sha256" / digest[7:]
    blob.unlink()
    blob.symlink_to("/etc/passwd")
    assert "the registry gave" in store.failure(layout.reference("image-yes"))
    blob.unlink()
    os.mkfifo(blob)
    assert "is no file" in store.failure(layout.reference("image-yes"))
    blob.unlink()
    assert "image-not-found" in store.failure(layout.reference("image-yes"))


# ---- what is no image, or only half of one ----

@pytest.mark.parametrize("body, words", [
    ({"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": sha256(b"{}"),
                 "size": 2}}, "an artifact of the type 'application/vnd.cncf.helm.config.v1+json'"),
    ({"artifactType": "application/vnd.example.model", "layers": [],
      "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": sha256(b"{}"),
                 "size": 2}}, "an artifact of the type 'application/vnd.example.model'"),
    ({"layers": []}, "has no layers"),
    ({"schemaVersion": 1}, "push the image again with a newer tool"),
    ({"manifests": [{"digest": sha256(b"x"), "size": 1}]}, "of an image and of an index at once"),
    ({"layers": [{"mediaType": OCI + "layer.nondistributable.v1.tar+gzip", "digest": sha256(b"x"),
                  "size": 1, "urls": ["https://example.com/x"]}]}, "kept elsewhere"),
    ({"layers": [{"mediaType": OCI + "layer.v1.tar+xz", "digest": sha256(b"x"), "size": 1}]},
     "cannot be unpacked"),
])
def test_refused_with_a_sentence(layout, store, registry, body, words):
    small(layout, "no", body=body)
    for name in (registry.name("image-no"), layout.reference("image-no")):
        assert words in store.failure(name)


def test_nondistributable_layers_that_are_there(layout, store, registry):
    digest = small(layout, "yes")
    manifest = json.loads((layout.path / "blobs/sha256" / digest[7:]).read_text())
    manifest["layers"][0]["mediaType"] = OCI + "layer.nondistributable.v1.tar+gzip"
    layout.list("t", [(layout.blob(json.dumps(manifest).encode()), HERE)])
    assert which(store.get(registry.name("t"))) == "yes"


def test_empty_layers(layout, store, registry):
    """Nothing at all, an archive without entries, and the two zero blocks alone."""
    layout.image("t", [archive([file("which", b"yes")]), (b"", ""), archive([]), (bytes(1024), ""),
                       (b"", "gzip"), (b"", "zstd")])
    for name in (registry.name("t"), layout.reference("t")):
        layers = store.get(name)
        assert which(layers[-1:]) == "yes"
        store.run("rm", name)


def test_configuration_with_more_and_odd_members(layout, store):
    config = {"architecture": MACHINE, "os": "linux", "created": "1970-01-01T00:00:00Z",
              "author": None, "history": [{"empty_layer": True}], "moby.buildkit.cache.v0": "e30=",
              "rootfs": {"type": "layers", "diff_ids": [sha256(archive([file("which", b"yes")]))]},
              "config": {"WorkingDir": "relative/dir", "User": "nobody:nogroup", "Volumes": {"/x": {}},
                         "ExposedPorts": {"80/tcp": {}}, "Healthcheck": {"Test": ["NONE"]},
                         "Entrypoint": ["/init"], "Cmd": None, "OnBuild": None, "Shell": ["sh"]}}
    small(layout, "yes", config=config)
    assert which(store.get(layout.reference("image-yes"))) == "yes"
