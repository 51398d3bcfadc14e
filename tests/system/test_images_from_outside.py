# SPDX-License-Identifier: Apache-2.0
"""Images in the forms that other tools write: indexes in all shapes, from registries that say
little of what they send and from layouts; and the containers that are made of them."""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

import containers
from cluster import interactive, wait_status
from gpu_cluster import started_cluster
from images import (OCI, Layout, LooseRegistry, Store, archive, file, folder, hard_link, link,
                    programs, sha256)
from runtimes import exit_code, run

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


def other_names(layout):
    """As uname(2) and Windows call them, in the index and in the configurations."""
    here, there = ({"amd64": ("x86_64", "AMD64"), "arm64": ("aarch64", "ARM64")}[name]
                   for name in (MACHINE, OTHER))
    layout.list("t", [(small(layout, "no", architecture=there[0]), {
        "platform": {"os": "linux", "architecture": there[1]}}),
        (small(layout, "yes", architecture=here[0]), {
            "platform": {"os": "Linux", "architecture": here[1]}})])


INDEXES = [plain, attested, nested, nested_elsewhere, nested_without_type, single,
           without_platforms, without_type, variants, extras, signed, other_names]
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


@pytest.mark.parametrize("name", {"amd64": ["x86_64", "AMD64", "X86_64"],
                                  "arm64": ["aarch64", "ARM64"]}[MACHINE])
def test_configuration_with_another_name(layout, store, name):
    small(layout, "yes", architecture=name)
    assert which(store.get(layout.reference("image-yes"))) == "yes"


def test_unknown_architectures(layout, store):
    """The error says what the image has, as it has it."""
    digest = small(layout, "no", architecture="VAX-11")
    layout.list("t", [(digest, {"platform": {"os": "linux", "architecture": "VAX-11"}})])
    assert f"is for linux/VAX-11, not for linux/{MACHINE}" in \
        store.failure(layout.reference("image-no"))
    assert f"not there for linux/{MACHINE}, only for linux/VAX-11" in \
        store.failure(layout.reference("t"))


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


@pytest.mark.skipif(MACHINE != "amd64", reason="which variants there are depends on it")
def test_variant_of_a_configuration(layout, store):
    """Without an index, and in one that says nothing, only the configuration has it."""
    diff = sha256(archive([file("which", b"no")]))
    config = {"architecture": MACHINE, "os": "linux", "variant": "v9",
              "rootfs": {"type": "layers", "diff_ids": [diff]}}
    no = small(layout, "no", config=config)
    assert "is for amd64/v9, and this node's processor is v" in store.failure(
        layout.reference("image-no"))
    layout.list("t", [(no, {}), (small(layout, "yes"), {})])
    assert which(store.get(layout.reference("t"))) == "yes"


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


# ---- in containers ----

NOBODY = "127.0.0.1:9"  # listed, and nobody listens there
SAY = "cat /which; id -un"  # what each image's program shows


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A cluster with a GPU, a layout that it may use, and a registry for what is in that."""
    if why := containers.why_not("crun"):
        pytest.skip(why)
    path = tmp_path_factory.mktemp("outside")
    path.chmod(0o755)
    layout = Layout(path / "layout")
    registry = LooseRegistry(layout)
    try:
        with started_cluster(ALIQUOT_IMAGE_ALLOW="* host oci:/ oci-archive:/ docker-archive:/",
                             ALIQUOT_IMAGE_INSECURE=f"{registry.address} {NOBODY}",
                             ALIQUOT_IMAGE_KEEP_FREE="1") as cluster:
            yield cluster, layout, registry
    finally:
        registry.stop()


def base(*more):
    return [*programs("sh", "cat", "id", "readlink", "env", "sleep"), file("which", b"yes\n"), *more]


def kaniko(layout):
    """Absolute paths, the root itself, no folders that did not change, whiteouts."""
    first = [{**entry, "name": "/" + entry["name"]} for entry in base(file("gone", b"no"))]
    second = [folder("/"), file("/opt/deep/er/file", b"x"), file("/.wh.gone"),
              hard_link("/opt/again", "/opt/deep/er/file"), folder("/tmp", mode=0o1777)]
    layout.image("kaniko", [archive(first), archive(second, tarfile.GNU_FORMAT)])


def nix(layout):
    """Many layers of a store, links to all of it, and nothing else: no /etc, no /tmp."""
    layers, store = [], "nix/store/0123abcd-tools"
    for entry in base():
        if entry["name"].startswith("usr/bin/"):
            entry = {**entry, "name": store + "/bin/" + entry["name"][8:]}
            layers.append(archive([entry]))
        elif entry["name"] not in ("usr", "usr/bin", "bin"):
            layers.append(archive([{**entry, "mtime": 1}]))
    layers += [archive([file(f"nix/store/{n:08d}-data/x", b"%d" % n)]) for n in range(60)]
    layers += [archive([link("bin", "/" + store + "/bin", mtime=1)])]
    layout.image("nix", layers, how="", Env=["PATH=/bin"])


def buildx(layout):
    yes = layout.image("buildx-image", [(archive(base()), "zstd")])
    layout.list("buildx", [(yes, HERE), attestation(layout, yes)])


def ko(layout):
    """Nested indexes without a platform, one static program and nothing else."""
    source = layout.path / "said.c"
    source.write_text('#include <unistd.h>\nint main(void) { return write(1, "yes\\nwork\\n", 9) - 9; }')
    subprocess.run(["cc", "-static", "-o", source.with_suffix(""), source], check=True)
    program = archive([file("ko-app/app", source.with_suffix("").read_bytes(), mode=0o555)])
    yes = layout.image("ko-image", [archive([]), program], Entrypoint=["/ko-app/app"],
                       WorkingDir="", User="65532", Env=["PATH=/ko-app"])
    layout.list("ko", [(layout.list("ko-inner", [(yes, {})]), INDEX)])


def apko(layout):
    """One layer, in which everything that may be is a link to the same."""
    entries = base(folder("var"), link("var/run", "/run"), folder("etc"), folder("etc/apk"),
                   link("etc/localtime", "/usr/share/zoneinfo/UTC"), hard_link("which2", "which"))
    layout.image("apko", [archive(entries)], WorkingDir="home", config=None)


def buildah(layout):
    """A name of a layout with a colon and slashes, as buildah writes them."""
    layout.image("localhost/team/buildah:1", [archive(base())])
    layout.image("localhost/team/buildah:2", [archive([file("which", b"no")])])


def windows(layout):
    """Names as a tar of Windows has them, and modes that say little."""
    entries = base(file("etc\\conf\\name.txt", b"x", mode=0o777),
                   file("gr\u00fc\u00dfe/\u65e5\u672c.txt", b"x", uname="", gname="S-1-5-32-544"))
    layout.image("windows", [archive([{**entry, "mode": 0o777} for entry in entries])])


FORMS = [kaniko, nix, buildx, ko, apko, buildah, windows]
NAMES = {buildah: "localhost/team/buildah:1"}


@pytest.mark.parametrize("source", [pytest.param("layout", marks=pytest.mark.gate), "registry"])
@pytest.mark.parametrize("make", FORMS, ids=lambda make: make.__name__)
def test_it_runs(place, make, source):
    cluster, layout, registry = place
    name = NAMES.get(make, make.__name__)
    if name not in [m["annotations"]["org.opencontainers.image.ref.name"] for m in layout.manifests]:
        make(layout)
    if make is buildah and source == "registry":
        pytest.skip("a tag has no slash")
    image = layout.reference(name) if source == "layout" else registry.name(name)
    command = "/ko-app/app" if make is ko else SAY
    shown, log = run(cluster, command, image=image)
    assert (shown["result"], log) == ("SUCCESS", "yes\nwork\n"), json.dumps([shown, log])


def test_archives(place, tmp_path):
    cluster, layout, _ = place
    tmp_path.chmod(0o755)
    layout.image("archived", [archive(base())])
    for form in ("docker-archive", "oci-archive"):
        name = f"{form}:{tmp_path}/{form}.tar"
        subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", layout.reference("archived"),
                        name + ":team/x:1" * (form == "docker-archive")], check=True)
        shown, log = run(cluster, SAY, image=name)
        assert (shown["result"], log) == ("SUCCESS", "yes\nwork\n"), json.dumps([shown, log])


def test_index_in_an_archive_has_a_remedy(place, tmp_path):
    cluster, _, _ = place
    inner = Layout(tmp_path / "inner")
    buildx(inner)
    inner.manifests = [m for m in inner.manifests if "buildx" in str(m["annotations"].values())
                       and "index" in m["mediaType"]]
    (inner.path / "index.json").write_text(json.dumps({"schemaVersion": 2,
                                                       "manifests": inner.manifests}))
    subprocess.run(["tar", "-cf", tmp_path / "x.tar", "-C", inner.path, "."], check=True)
    shown, _ = run(cluster, SAY, image=f"oci-archive:{tmp_path}/x.tar")
    assert "unpack the archive into a folder with 'tar'" in json.dumps(shown)


# ---- mounts over links ----

@pytest.mark.gate
def test_mounts_change_nothing_behind_links(place):
    """The node's clock and what else is mounted replace a link, not what it leads to."""
    cluster, layout, _ = place
    links = {"etc/localtime": "/usr/share/zoneinfo/Mars", "etc/timezone": "../../../../which",
             "opt/kernel/aliquot-runner": "/bin/cat", "home/config": "/usr/share",
             "etc/ld.so.preload": "/usr/share/list", "run/aliquot": "/usr/share/zoneinfo", "proc": "/usr/share", "dev": "etc",
             "sys": "/usr/bin"}
    layout.image("links", [archive(base(
        folder("usr/share"), folder("usr/share/zoneinfo"), file("usr/share/zoneinfo/Mars", b"Mars\n"),
        folder("opt"), folder("opt/kernel"), folder("home"), folder("run"), folder("etc"),
        *[link(name, target) for name, target in links.items()]))])
    command = ("cat /usr/share/zoneinfo/Mars /which; cat /etc/localtime; echo; "
               f"readlink {' '.join('/' + name for name in links)}; cat /home/config/resource.txt")
    shown, log = run(cluster, command, image=layout.reference("links"))
    assert exit_code(shown) == 0 and log.startswith("Mars\nyes\n"), (shown, log)
    zone = pathlib.Path("/etc/localtime")
    if zone.is_file():
        assert zone.read_bytes().decode("utf-8", "replace")[:8] in log.partition("yes\n")[2]
    assert "CID=" in log
    linked = [name for name in links if "/" + links[name].lstrip("./") + "\n" in log]
    mounted = {"etc/localtime", "opt/kernel/aliquot-runner", "home/config", "proc", "dev", "sys"}
    assert not mounted & set(linked), (log, linked)


@pytest.mark.parametrize("target, words", [
    ("/proc", "'/opt' is a link"), ("/usr", "'/opt' is a link"), ("/nowhere", "'/opt' is a link")])
def test_folders_of_mounts_that_lead_elsewhere(place, target, words):
    cluster, layout, _ = place
    tag = "bent" + target.strip("/")
    entries = [entry for entry in base() if not entry["name"].startswith("opt")]
    layout.image(tag, [archive([*entries, folder("proc"), link("opt", target)])])
    shown, log = run(cluster, SAY, image=layout.reference(tag))
    assert words in json.dumps(shown), (shown, log)


# ---- what an image and its user say of devices ----

GREEDY = {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "NVIDIA_VISIBLE_DEVICES": "all",
          "GPU_DEVICE_ORDINAL": "1", "ROCR_VISIBLE_DEVICES": "GPU-1", "HIP_VISIBLE_DEVICES": "0,1"}


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@pytest.mark.gate
@pytest.mark.parametrize("slots", [{"cuda.shares": "0.5"}, {}], ids=["part", "none"])
def test_nobody_chooses_devices_that_were_not_granted(place, slots):
    cluster, layout, _ = place
    layout.image("greedy", [archive(base())], Env=["PATH=/bin", "A=image", "B=image", *[
        f"{name}={value}" for name, value in GREEDY.items()]])
    resources = {"resources": {"cpu": "1", "mem": "64m", **slots}}
    for environ in ({}, GREEDY):
        config = {**resources, "environ": {**environ, "B": "user"}}
        shown, log = run(cluster, "env", image=layout.reference("greedy"), config=config)
        said = variables(log)
        assert (said["A"], said["B"]) == ("image", "user"), (shown, log)
        assert said.get("NVIDIA_VISIBLE_DEVICES", "void") == "void", log
        assert not set(GREEDY) - {"NVIDIA_VISIBLE_DEVICES"} & set(said), log
        config["environ"] = {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "-1"}
    shown, log = run(cluster, "env", image=layout.reference("greedy"), config=config)
    assert "CUDA_VISIBLE_DEVICES=\n" in log and "ROCR_VISIBLE_DEVICES=-1\n" in log, log


def test_commands_in_a_session_have_the_same_devices(place):
    cluster, layout, _ = place
    name = "greedy-box"
    layout.image("greedy-box", [archive(base())], Env=["PATH=/bin", *[
        f"{name}={value}" for name, value in GREEDY.items()]])
    body = {**interactive(name), "image": layout.reference("greedy-box"), "config": {
        "resources": {"cpu": "1", "mem": "64m", "cuda.shares": "0.5"}, "environ": GREEDY}}
    client = cluster.client()
    reply = client.post("/session", body)
    assert reply.status == 201, reply
    shown = wait_status(client, reply.json["sessionId"], "RUNNING", "ERROR", "CANCELLED")
    assert shown["status"] == "RUNNING", shown
    for more in ([], [f"--env={key}={value}" for key, value in GREEDY.items()]):
        done = cluster.cli("exec", *more, "--env=C=exec", name, "--", "env")
        assert done.returncode == 0, done
        said = variables(done.stdout)
        assert said["C"] == "exec" and said["GPU_COUNT"] == "1", said
        assert not {key for key in GREEDY if said.get(key, "void") != "void"}, said
    client.delete("/session/" + name)


# ---- why it did not come ----

def test_users_are_told_why(place):
    cluster, layout, registry = place
    small(layout, "why")
    answers = {"manifests/forbidden": (403, b"<html>"), "manifests/broken": (503, b"later")}
    registry.answers.update({"a/" + key: value for key, value in answers.items()})
    for image, words, cause in [
            (registry.name("missing"), "was not found: check its name and tag", "unknown"),
            (registry.name("forbidden"), "the registry refuses it (401, 403)", "StatusCode: 403"),
            (registry.name("broken"), "an error of its own", "503"),
            (NOBODY + "/a:1", "connection refused", "dial tcp " + NOBODY),
            ("nosuch.invalid/a:1", "no such host", "lookup nosuch.invalid"),
            ("127.0.0.1:1/a:1", "an administrator can find the cause by", "connection refused"),
            (layout.reference("none"), "no image in the layout has this name", "it has:")]:
        name = "why-" + words.split()[-1].strip("()")
        done = cluster.cli("run", "-r", "cpu=1", "-r", "mem=64m", "--name", name, "--image", image,
                           "--", "true")
        assert done.returncode and words in done.stderr, (image, done)
        done = cluster.cli("session", "why", name)
        assert words in done.stdout + done.stderr, (image, done)
        done = cluster.cli("image", "pull", image)
        assert done.returncode and cause in done.stderr, (image, done)
