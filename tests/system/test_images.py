# SPDX-License-Identifier: Apache-2.0
"""Images: what is unpacked equals what umoci unpacks; registries, digests, disks and
archives that are not as they should be; pulls that are shared, broken and killed."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import time

import pytest

from cluster import wait_for
from images import (OCI, WRONG, Layout, Registry, Store, archive, compress, device, file, folder,
                    hard_link, link, mounted, sha256, small_disk, tree)
from sparse import make_sparse

for program in ("skopeo", "umoci", "docker-registry"):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("owners, devices and mounts need root", allow_module_level=True)

CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000").decode("latin-1")
LONG = "/".join(["d" * 60] * 6) + "/" + "n" * 250

BASE = [
    folder("./", mode=0o711, mtime=1400000000),
    folder("bin"), file("bin/sh", b"#!shell", mode=0o4755),
    file("bin/ping", b"ping", mode=0o755, xattrs={"security.capability": CAPABILITY}),
    folder("etc", mode=0o750, uid=3, gid=4), file("etc/passwd", b"root:x:0:0\n", uid=1, gid=2),
    file("etc/gone", b"to be removed"), link("etc/link", "passwd"), link("etc/loop", "loop"),
    link("etc/up", "../../../etc/shadow"), link("etc/absolute", "/etc/shadow"),
    folder("var"), folder("var/cache"), file("var/cache/a", b"a"), file("var/cache/b", b"b"),
    folder("var/cache/deep"), file("var/cache/deep/c", b"c"),
    folder("opt"), folder("opt/old"), file("opt/old/x", b"x"), file("opt/old/y", b"y"),
    file("hard1", b"hard", mode=0o600), hard_link("hard2", "hard1"), hard_link("bin/hard3", "./hard1"),
    hard_link("etc/hardlink", "etc/link"),
    folder("dev"), device("dev/null", 1, 3, mode=0o666), dict(name="dev/sda", type=tarfile.BLKTYPE,
                                                             devmajor=8, devminor=0, mode=0o660),
    dict(name="pipe", type=tarfile.FIFOTYPE, mode=0o620),
    *[folder("/".join(LONG.split("/")[:i])) for i in range(1, 7)], file(LONG, b"long"),
    link("longlink", "t" * 900),
    file("e\u0301 nfd", b"1"), file("\u00e9 nfc", b"2"), file("bin\udcff\udcfe", b"3"),
    file("user", b"u", xattrs={"user.note": "b\u00e4r", "user.empty": ""}),
    file("sticky", b"", mode=0o7777), file("replaced", b"old"), folder("tofile"),
    file("tofile/inner", b""), file("tofolder", b""), folder("tmp", mode=0o1777),
    file("big", os.urandom(3 << 20)), file("zero", bytes(1 << 20)),
]
CHANGES = [
    folder("etc", mode=0o700, uid=5, gid=6), file("etc/.wh.gone"), file("etc/new", b"new"),
    folder("var"), folder("var/cache"), file("var/cache/.wh..wh..opq"), file("var/cache/d", b"d"),
    folder("opt"), file("opt/.wh.old"), file("replaced", b"new"), file("tofile", b"file now"),
    folder("tofolder"), file("tofolder/inner", b"i"), file(".wh.pipe"), file(".wh.hard2"),
]
AGAIN = [
    # the whiteout of what is below, then the same name again, and parents that nobody describes
    folder("opt"), file("opt/.wh.nothing"), folder("opt/old"), file("opt/old/z", b"z"),
    file("etc/deep/er/f", b"implied"), file("var/cache/e", b"e"),
    file(LONG.rsplit("/", 1)[0] + "/other", b"other"),
]


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path / "layout")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    registry = Registry(tmp_path_factory.mktemp("images") / "registry").start()
    yield registry
    registry.stop()


@pytest.fixture
def remote(store, registry):
    store.settings["insecure"] = registry.address
    return store


def compare(layers, layout, tag, tmp_path, undescribed=()):
    """The mounted stack and umoci's merged tree, file by file. Folders that a
    layer changes without describing them have the time of unpacking with umoci."""
    subprocess.run(["umoci", "raw", "unpack", "--image", f"{layout.path}:{tag}",
                    tmp_path / "umoci"], check=True, capture_output=True)
    with mounted(layers, tmp_path / "mount") as root:
        ours, theirs = tree(root), tree(tmp_path / "umoci")
    assert sorted(ours) == sorted(theirs)
    for path in theirs:
        if path in undescribed:
            theirs[path]["mtime"] = ours[path]["mtime"]
        assert ours[path] == theirs[path], path
    return ours


# ---- the oracle ----

@pytest.mark.gate
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT], ids=["pax", "gnu"])
def test_one_layer_equals_umoci(layout, store, tmp_path, form):
    entries = [entry for entry in BASE if form == tarfile.PAX_FORMAT or "xattrs" not in entry]
    layout.image("t", [archive(entries, form)])
    found = compare(store.get(layout.reference("t")), layout, "t", tmp_path)
    assert len(found) > 40 and found[b"hard1"]["linked"] == [b"bin/hard3", b"hard1", b"hard2"]


@pytest.mark.gate
def test_stack_equals_umoci(layout, store, tmp_path):
    layout.image("t", [archive(BASE), archive(CHANGES), archive(AGAIN)])
    found = compare(store.get(layout.reference("t")), layout, "t", tmp_path,
                    [b".", b"etc", b"etc/deep", b"etc/deep/er", b"var/cache",
                     LONG.rsplit("/", 1)[0].encode()])
    assert found[b"etc"]["mtime"] == 1500000000 * 10**9 and found[b"."]["mode"] == "0o40711"
    assert b"opt/old/x" not in found and b"var/cache/a" not in found and b"pipe" not in found


def from_root(entries):
    """The same entries with absolute paths, and with parts that mean nothing."""
    for number, entry in enumerate(entries):
        entry = dict(entry)
        entry["name"] = ("/", "//", "/./", "")[number % 4] + entry["name"].replace("./", "")
        if entry.get("type") == tarfile.LNKTYPE:
            entry["linkname"] = "/" + entry["linkname"]
        yield {**entry, "name": entry["name"] or "/"}


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT], ids=["pax", "gnu"])
def test_absolute_paths_begin_at_the_image_s_root(layout, store, tmp_path, form):
    layers = [BASE, CHANGES, AGAIN]
    layout.image("relative", [archive(layer, form) for layer in layers])
    layout.image("absolute", [archive(from_root(layer), form) for layer in layers])
    trees = []
    for tag in ("relative", "absolute"):
        with mounted(store.get(layout.reference(tag)), tmp_path / tag) as root:
            trees.append(tree(root))
    for path in (b".", b"etc/deep", b"etc/deep/er"):  # nobody describes their times
        trees[0].get(path, {}).pop("mtime", None), trees[1].get(path, {}).pop("mtime", None)
    assert trees[0] == trees[1]


def test_whiteout_of_everything(layout, store, tmp_path):
    """At the root it hides all layers below."""
    layout.image("t", [archive([folder("a", uid=7), file("a/x"), file("b")]),
                       archive([file("/.wh..wh..opq"), file("a/y")]), archive([file("c")])])
    with mounted(store.get(layout.reference("t")), tmp_path / "mount") as root:
        assert sorted(tree(root)) == [b".", b"a", b"a/y", b"c"]
        assert os.stat(root / "a").st_uid == 0


def test_images_of_umoci_equal_umoci(layout, store, tmp_path):
    """Layers as a real tool makes them: one unpacks, changes and packs again."""
    image = f"{layout.path}:t"

    def umoci(*args):
        subprocess.run(["umoci", *args], check=True, capture_output=True)
    layout.image("t", [archive(BASE)])
    for step in range(3):
        bundle = tmp_path / f"bundle{step}"
        umoci("unpack", "--image", image, str(bundle))
        root = bundle / "rootfs"
        (root / f"etc/step{step}").write_text("new")
        (root / f"new{step}" / "below").mkdir(parents=True)
        os.chown(root / "etc/passwd", 100 + step, 7)
        if step == 1:
            shutil.rmtree(root / "var/cache")
            (root / "var/cache").write_text("a file now")
        if step == 2:
            os.unlink(root / "bin/sh")
            os.unlink(root / "var/cache")
            os.mkdir(root / "var/cache")
        umoci("repack", "--image", image, str(bundle))
    compare(store.get(f"oci:{image}"), layout, "t", tmp_path)


@pytest.mark.gate
def test_compressions_are_the_same(layout, store, tmp_path):
    data = archive(BASE)
    layout.image("gzip", [data])
    layers = store.get(layout.reference("gzip"))
    for how in ("zstd", ""):
        layout.image("other", [(data, how)])
        other = Store(tmp_path / ("store" + how), **store.settings)
        theirs = other.get(layout.reference("other"))
        assert tree(theirs[0]) == tree(layers[0])


def test_a_layer_twice_in_an_image(layout, store, tmp_path):
    first, second = archive([file("a", b"1"), file("b", b"1")]), archive([file(".wh.a")])
    layout.image("t", [first, second, first])
    with mounted(store.get(layout.reference("t")), tmp_path / "m") as root:
        assert sorted(os.listdir(root)) == ["a", "b"]


@pytest.mark.gate
def test_host_and_rootfs(store, tmp_path):
    (tmp_path / "root").mkdir()
    assert store.get("host") == ["/"]
    assert store.get(f"rootfs:{tmp_path}/root") == [f"{tmp_path}/root"]
    assert store.images() == {}


@pytest.mark.gate
def test_archives(layout, store, tmp_path):
    layout.image("t", [archive(BASE), archive(CHANGES)])
    for form in ("oci-archive", "docker-archive"):
        target = f"{form}:{tmp_path}/{form}.tar"
        subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", layout.reference("t"),
                        target + (":a/b:c" if form == "docker-archive" else "")], check=True)
        layers = store.get(target)
    compare(layers, layout, "t", tmp_path)
    assert len(store.entries("layers")) == 2, "the layers are shared"


# ---- hostile archives ----

HOSTILE = [
    ([file("/../x")], "'/../x': the path has '..'"),
    ([file("/etc/../../x")], "the path has '..'"),
    ([link("/", "etc")], "'/': the root is not a folder"),
    ([file("/.wh.")], "the whiteout names nothing"),
    ([link("/out", "/etc"), file("/out/x")], "'/out/x': the path leaves the layer"),
    ([file("../x")], "'../x': the path has '..'"),
    ([file("a/../../x")], "the path has '..'"),
    ([link("out", "/etc"), file("out/x")], "'out/x'"),
    ([link("out", "../../../.."), file("out/x")], "'out/x': the path leaves the layer"),
    ([link("a", "b"), link("b", "a"), file("a/x")], "'a/x': the path has too many symbolic links"),
    ([file("f"), file("f/x")], "'f/x'"),
    ([hard_link("x", "/etc/shadow")], "'x': hard link to '/etc/shadow': it is not in this"),
    ([hard_link("x", "/")], "'x': hard link to '/': it is a folder"),
    ([hard_link("x", "/../etc/shadow")], "hard link to '/../etc/shadow': the path has '..'"),
    ([hard_link("x", "../../etc/shadow")], "hard link to '../../etc/shadow'"),
    ([link("l", "/etc"), hard_link("x", "l/shadow")], "hard link to 'l/shadow'"),
    ([hard_link("x", "nothing")], "hard link to 'nothing': it is not in this layer"),
    ([folder("d"), hard_link("x", "d")], "it is a folder"),
    ([device("whiteout", 0, 0)], "'whiteout': it is the character device 0/0"),
    ([file(".wh.")], "'.wh.': the whiteout names nothing"),
    ([file(".wh...")], "the whiteout names nothing"),
    ([file("n" * 300)], "too long"),
    ([file("x", uid=1 << 33)], "its owner 8589934592:0 is no user"),
]


@pytest.mark.parametrize("entries, words", HOSTILE, ids=lambda value: None)
def test_hostile_archive_is_refused(layout, store, entries, words):
    outside = {path: os.stat(path).st_mtime_ns for path in ("/etc", "/", str(store.path.parent))}
    layout.image("t", [archive([file("innocent"), *entries])])
    assert words in store.failure(layout.reference("t"))
    assert not store.entries("layers") and not store.entries("images")
    assert {path: os.stat(path).st_mtime_ns for path in outside
            if path != str(store.path.parent)}.items() <= outside.items()


def test_attributes_of_overlayfs_are_dropped(layout, store):
    layout.image("t", [archive([file("x", xattrs={"trusted.overlay.redirect": "/etc",
                                                  "user.overlay.opaque": "y", "user.a": "b"}),
                                folder("d", xattrs={"trusted.overlay.opaque": "y"})])])
    root = store.get(layout.reference("t"))[0]
    assert os.listxattr(root + "/x") == ["user.a"] and os.listxattr(root + "/d") == []


def sparse(name, size, map_=b"0\n", data=b""):
    """A GNU sparse file (PAX 1.0), all hole unless there is data."""
    data = map_.ljust(512, b"\0") + data
    return dict(name="GNUSparseFile.0/" + name, data=data, pax_headers={
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name,
        "GNU.sparse.realsize": str(size)})


def test_gigantic_sparse_file(layout, store):
    store.settings["max-layer-size"] = "64m"
    layout.image("small", [archive([sparse("hole", 1 << 20)])])
    root = store.get(layout.reference("small"))[0]
    assert os.stat(root + "/hole").st_size == 1 << 20
    layout.image("huge", [archive([file("x"), sparse("huge", 1 << 60)])])
    assert "entry 'huge': the files of the layer would be larger" in \
        store.failure(layout.reference("huge"))


@pytest.mark.parametrize("form", ["gnu", "0.0", "0.1", "1.0"])
def test_sparse_files_of_tar(layout, store, tmp_path, form):
    """Each way of GNU tar to store them: contents and holes stay."""
    sources = [make_sparse(tmp_path / "source" / "few", 3 << 20), tmp_path / "source" / "many"]
    with sources[1].open("wb") as made:
        for number in range(60):  # more than an old header, and one block after it, take
            made.seek(number * 65536)
            made.write(os.urandom(100))
        made.truncate(60 * 65536 + 12345)
    (tmp_path / "source" / "zend").write_bytes(b"behind them")
    how = ["--format=gnu"] if form == "gnu" else ["--format=pax", f"--sparse-version={form}"]
    tar = subprocess.run(["tar", "-c", "--sparse", *how, "-C", tmp_path / "source", "few", "many",
                          "zend"], check=True, capture_output=True).stdout
    assert len(tar) < 2 << 20
    layout.image("t", [tar])
    root = pathlib.Path(store.get(layout.reference("t"))[0])
    for source in sources:
        assert (root / source.name).read_bytes() == source.read_bytes()
        assert (root / source.name).stat().st_blocks <= source.stat().st_blocks + 8
    assert (root / "zend").read_bytes() == b"behind them"


@pytest.mark.parametrize("map_, stored, words", [
    (b"1\n0\n1000\n", 500, "names 1000 bytes of data, and 500 are stored"),
    (b"1\n0\n1000\n", 1001, "names 1000 bytes of data, and 1001 are stored"),
    (b"2\n0\n500\n499\n500\n", 1000, "overlap or are not in order"),
    (b"2\n5000\n500\n0\n500\n", 1000, "overlap or are not in order"),
    (b"2\n0\n500\n20\n10\n", 500, "overlap or are not in order"),
    (b"1\n9500\n501\n", 501, "ends at byte 10001 of a file of 10000"),
], ids=["more", "less", "overlap", "order", "nothing-stored", "beyond"])
def test_maps_of_sparse_files_that_cannot_be(layout, store, map_, stored, words):
    layout.image("t", [archive([file("x"), sparse("wrong", 10000, map_, bytes(stored)), file("y")])])
    said = store.failure(layout.reference("t"))
    assert "entry 'wrong': the map of its holes" in said and words in said, said


def test_bomb(layout, store):
    store.settings["max-layer-size"] = "16m"
    bomb = archive([file("zeros", bytes(64 << 20))])
    layout.image("t", [bomb])
    assert "max-layer-size" in store.failure(layout.reference("t"))
    trailing = archive([file("x")]) + bytes(64 << 20)
    layout.image("u", [trailing])
    assert "max-layer-size" in store.failure(layout.reference("u"))


def test_too_many_entries(layout, store):
    store.settings["max-entries"] = 100
    layout.image("t", [archive([file(f"f{i}") for i in range(101)])])
    assert "entry 'f100': the layer has more than 100 entries" in \
        store.failure(layout.reference("t"))


def test_damaged_archives(layout, store):
    data = archive([file("x", bytes(100000))])
    packed = compress(data, "gzip")
    for number, blob in enumerate([packed[:-100], packed[:100], b"not a tar file at all" * 100,
                                   data[:51200]]):
        digest = layout.blob(blob)
        tag = f"t{number}"
        layout.image(tag, [data])
        index = json.loads((layout.path / "index.json").read_text())
        entry = [m for m in index["manifests"]
                 if m["annotations"]["org.opencontainers.image.ref.name"] == tag][0]
        manifest = json.loads((layout.path / "blobs/sha256" / entry["digest"][7:]).read_text())
        manifest["layers"][0].update(digest=digest, size=len(blob))
        text = json.dumps(manifest).encode()
        layout.name(tag, layout.blob(text), len(text), OCI + "manifest.v1+json")
        assert store.failure(layout.reference(tag))
        assert not store.entries("layers")


# ---- digests ----

def test_wrong_diff_id(layout, store):
    layout.image("t", [archive([file("x")])], diff_ids=[WRONG])
    assert store.failure(layout.reference("t")).startswith("image-damaged")
    assert not store.entries("layers")


def test_unpacked_layers_are_of_their_own_blobs(layout, store):
    """An image claims the diff-id of a layer that was unpacked for another image."""
    secret, other = archive([file("secret", b"theirs")]), archive([file("secret", b"mine")])
    layout.image("theirs", [secret])
    layout.image("mine", [other], diff_ids=[sha256(secret)])
    layout.image("both", [secret, (other, "zstd")], diff_ids=[sha256(secret)] * 2)
    layout.image("zstd", [(secret, "zstd")])
    layers = store.get(layout.reference("theirs"))
    for tag in ("mine", "both"):
        said = store.failure(layout.reference(tag))
        assert said.startswith("image-damaged") and "diff_id" in said, said
    # another blob with the same content is compared with it, and shares the layer
    assert store.get(layout.reference("zstd")) == layers
    assert len(store.entries("layers")) == 1 and len(store.entries("images")) == 2
    store.check_clean()


def test_wrong_blob_in_the_registry(layout, remote, registry, tmp_path):
    name = layout.push("t", registry, "wrong/blob:1") if layout.image("t", [
        archive([file("x", b"right")])]) else None
    manifest = json.loads(subprocess.run(
        ["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{name}"],
        capture_output=True, check=True).stdout)
    blob = registry.blob_path(manifest["layers"][0]["digest"])
    data = blob.read_bytes()
    blob.write_bytes(data[:-8] + bytes(8))
    remote.failure(name)
    assert not remote.entries("layers") and not remote.entries("images")
    blob.write_bytes(data)
    assert pathlib.Path(remote.get(name)[0], "x").read_bytes() == b"right"


def test_blob_that_went_bad_is_fetched_again(layout, remote, registry):
    """What a broken pull left is checked, too."""
    digest = layout.image("t", [archive([file("x", b"right")]), archive([file("y")])])
    name = layout.push("t", registry, "bad/leftover:1")
    manifest = json.loads((layout.path / "blobs/sha256" / digest[7:]).read_text())
    blobs = remote.state / "images/pulls" / digest[7:] / "blobs/sha256"
    blobs.mkdir(parents=True)
    for layer in manifest["layers"]:
        (blobs / layer["digest"][7:]).write_bytes(b"rubbish".ljust(layer["size"], b"."))
    assert pathlib.Path(remote.get(name)[1], "x").read_bytes() == b"right"


@pytest.mark.gate
def test_pinned_digest(layout, remote, registry):
    first = layout.image("t", [archive([file("x", b"1")])])
    name = layout.push("t", registry, "pin/a:1")
    layout.image("t", [archive([file("x", b"2")])])
    layout.push("t", registry, "pin/a:1")
    assert pathlib.Path(remote.get(f"{name}@{first}")[0], "x").read_bytes() == b"1"
    assert pathlib.Path(remote.get(name)[0], "x").read_bytes() == b"2"
    assert remote.failure(f"{name}@{WRONG}").startswith("image-not-found")


# ---- registries ----

def test_a_name_that_means_something_else_now(layout, remote, registry):
    layout.image("t", [archive([file("x", b"1")])])
    name = layout.push("t", registry, "moving/a:1")
    assert pathlib.Path(remote.get(name)[0], "x").read_bytes() == b"1"
    layout.image("t", [archive([file("x", b"2")])])
    layout.push("t", registry, "moving/a:1")
    assert pathlib.Path(remote.get(name)[0], "x").read_bytes() == b"1"
    assert pathlib.Path(remote.get(name, "always")[0], "x").read_bytes() == b"2"
    assert sorted(remote.images().values()) == [[], [name]]


def test_architectures(layout, remote, registry):
    items = [(layout.image(a, [archive([file("x", a.encode())])], architecture=a), a)
             for a in ("arm64", "amd64", "s390x")]
    layout.index("all", *items)
    name = layout.push("all", registry, "multi/a:1", "--all")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    assert pathlib.Path(remote.get(name)[0], "x").read_text() == machine
    layout.index("others", *[item for item in items if item[1] != machine])
    name = layout.push("others", registry, "multi/b:1", "--all")
    assert remote.failure(name).startswith("image-architecture")
    name = layout.push("s390x", registry, "multi/c:1")
    assert "is for linux/s390x, not for linux/" in remote.failure(name)


def test_registry_gone_and_back(layout, store, tmp_path):
    registry = Registry(tmp_path / "own")
    store.settings["insecure"] = registry.address
    layout.image("t", [archive([file("x")])])
    assert store.failure(f"{registry.address}/a:1").startswith("image-registry")
    registry.start()
    try:
        name = layout.push("t", registry, "a:1")
        store.get(name)
    finally:
        registry.stop()
    store.get(name)
    assert store.failure(name, "always").startswith("image-registry")


@pytest.mark.gate
def test_authentication(layout, store, tmp_path):
    # "aliquot" with the password "secret", as htpasswd -B writes it
    users = "aliquot:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"
    registry = Registry(tmp_path / "own", users).start()
    try:
        store.settings["insecure"] = registry.address
        layout.image("t", [archive([file("x")])])
        layout.push("t", registry, "a:1", "--dest-creds", "aliquot:secret")
        name = f"{registry.address}/a:1"
        assert store.failure(name).startswith("image-unauthorized")
        (tmp_path / "auth.json").write_text(json.dumps(
            {"auths": {registry.address: {"auth": "YWxpcXVvdDpzZWNyZXQ="}}}))
        store.settings["auth-file"] = str(tmp_path / "auth.json")
        store.get(name)
    finally:
        registry.stop()


def test_mirror(layout, store, registry):
    layout.image("t", [archive([file("x")])])
    layout.push("t", registry, "library/mirrored:1")
    store.settings.update(mirrors=["quay.io=127.0.0.1:1", "docker.io=127.0.0.1:1",
                                   f"docker.io={registry.address}"],
                          insecure=["127.0.0.1:1", registry.address])
    store.get("mirrored:1")  # the first mirror is away
    assert list(store.images().values()) == [["docker.io/library/mirrored:1"]]


def test_allow_list(layout, remote, registry):
    layout.image("t", [archive([file("x")])])
    name = layout.push("t", registry, "team/a:1")
    remote.settings["allow"] = ["docker.io", registry.address + "/other"]
    assert remote.failure(name).startswith("image-not-allowed")
    assert remote.failure("host").startswith("image-not-allowed")
    remote.settings["allow"] = registry.address + "/team"
    remote.get(name)


# ---- sharing, breaking, going on ----

def test_concurrent_pulls_are_one(layout, remote, registry):
    layout.image("t", [archive([file("x", os.urandom(2 << 20))])])
    name = layout.push("t", registry, "shared/a:1")
    lines = remote.run("get", *[name] * 20)
    assert sum(line.startswith("ready ") for line in lines) == 20
    assert len(remote.entries("layers")) == 1


def test_names_of_one_image_at_once(layout, remote, registry):
    """One of them fetches it, whatever comes first; the others name it, too."""
    layout.image("t", [archive([file("x", os.urandom(2 << 20))])])
    names = [layout.push("t", registry, f"named/a:{i}") for i in range(12)]
    lines = remote.run("get", *names)
    assert sum(line.startswith("ready ") for line in lines) == 12, lines
    assert set(*remote.images().values()) == set(names)
    assert not remote.entries("pulls")


def test_images_that_share_layers_at_once(layout, remote, registry):
    base = archive([file("base", os.urandom(1 << 20))])
    names = []
    for i in range(4):
        layout.image("t", [base, archive([file(f"own{i}")])])
        names.append(layout.push("t", registry, f"sharing/a:{i}"))
    lines = remote.run("get", *names)
    ready = [line.split() for line in lines if line.startswith("ready ")]
    assert len(ready) == 4 and len(remote.entries("layers")) == 5
    assert len({words[3].split(":")[-1] for words in ready}) == 1


@pytest.mark.gate
def test_progress_is_in_bytes(layout, remote, registry):
    layout.image("t", [archive([file("x", os.urandom(8 << 20))])])
    name = layout.push("t", registry, "progress/a:1")
    steps = [line.split() for line in remote.run("get", name) if line.startswith("progress ")]
    for phase in ("fetching", "unpacking"):
        done = [int(words[3]) for words in steps if words[2] == phase]
        total = {int(words[4]) for words in steps if words[2] == phase}
        assert done == sorted(done) and len(total) == 1 and max(done) <= total.pop()
    assert any(words[2:] == ["fetching", words[4], words[4]] and int(words[4]) > 8 << 20
               for words in steps)


def test_broken_pull_goes_on(layout, store, tmp_path):
    """Blobs that were fetched before the registry went away are not fetched again."""
    registry = Registry(tmp_path / "own").start()
    store.settings["insecure"] = registry.address
    layers = [archive([file(f"f{i}", os.urandom(1 << 20))]) for i in range(3)]
    digest = layout.image("t", layers)
    try:
        name = layout.push("t", registry, "a:1")
        manifest = json.loads((layout.path / "blobs/sha256" / digest[7:]).read_text())
        lost = registry.blob_path(manifest["layers"][2]["digest"])
        kept = lost.read_bytes()
        lost.unlink()
        store.failure(name)
        blobs = store.state / "images/pulls" / digest[7:] / "blobs/sha256"
        got = {path.name for path in blobs.iterdir()}
        assert {layer["digest"][7:] for layer in manifest["layers"][:2]} <= got
        lost.write_bytes(kept)
        for layer in manifest["layers"][:2]:
            registry.blob_path(layer["digest"]).unlink()
        store.get(name)
        assert not store.entries("pulls")
    finally:
        registry.stop()


@pytest.mark.gate
def test_known_layers_are_not_fetched_again(layout, remote, registry):
    base = archive([file("base", os.urandom(1 << 20))])
    layout.image("t", [base])
    remote.get(layout.push("t", registry, "known/a:1"))
    digest = layout.image("t", [base, archive([file("more")])])
    name = layout.push("t", registry, "known/b:1")
    manifest = json.loads((layout.path / "blobs/sha256" / digest[7:]).read_text())
    registry.blob_path(manifest["layers"][0]["digest"]).unlink()
    assert len(remote.get(name)) == 2


def test_killed_while_pulling(layout, remote, registry):
    """kill -9 at many moments: nothing half done is ever visible, and it goes on."""
    layers = [archive([file(f"f{n}-{i}", os.urandom(20000)) for i in range(150)])
              for n in range(3)]
    layout.image("t", layers)
    name = layout.push("t", registry, "killed/a:1")
    for step in range(8):
        process = remote.start("get", name)
        time.sleep(0.05 + 0.18 * step)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        for layer in remote.entries("layers"):
            if not layer.startswith("."):
                assert len(os.listdir(remote.state / "images/layers" / layer / "fs")) == 150
    assert len(remote.get(name)) == 3
    remote.check_clean()
    assert not remote.entries("pulls")


# ---- disks ----

def test_full_disk_in_the_middle_of_a_layer(layout, store):
    layout.image("t", [archive([file(f"f{i}", bytes(1 << 20)) for i in range(24)])])
    layout.image("small", [archive([file("x", b"fits")])])
    with small_disk(store.state, "8m"):
        failure = store.failure(layout.reference("t"))
        assert failure.startswith("image-no-space") and "entry 'f" in failure
        assert not store.entries("layers")
        store.get(layout.reference("small"))


def test_full_disk_while_fetching(layout, store):
    layout.image("t", [archive([file("x", os.urandom(12 << 20))])])
    with small_disk(store.state, "8m"):
        assert store.failure(layout.reference("t")).startswith("image-no-space")


def test_unused_images_make_room(layout, store):
    names = []
    for i in range(4):
        layout.image(f"t{i}", [archive([file("x", os.urandom(3 << 20))])])
        names.append(layout.reference(f"t{i}"))
    with small_disk(store.state, "11m"):
        for name in names:
            store.get(name)
        images = store.images()
        assert 1 <= len(images) < 4 and [names[3]] in images.values()


# ---- removing ----

def test_remove_and_collect(layout, store):
    base = archive([file("base", bytes(100000))])
    for tag in ("a", "b"):
        layout.image(tag, [base, archive([file(tag, bytes(5000))])])
        store.get(layout.reference(tag))
    assert store.run("rm", layout.reference("a")) == ["freed 5000"]
    store.check_clean()
    assert len(store.entries("layers")) == 2
    assert store.run("gc") == ["freed 0"]
    assert store.run("gc-all") == ["freed 105000"]
    store.check_clean()
    assert not store.entries("layers") and not store.entries("images")


def test_an_image_in_use_stays(layout, store):
    layout.image("t", [archive([file("x")])])
    name = layout.reference("t")
    process = store.start("hold", name)
    try:
        wait_for(lambda: process.stdout.readline().startswith("ready "), 60, "the image")
        assert list(store.images()) != []
    finally:
        process.communicate("")
    assert store.run("rm", name)[-1].startswith("freed ")


def test_keep_age_and_size(layout, store):
    for tag in ("old", "new"):
        layout.image(tag, [archive([file(tag, bytes(50000))])])
        store.get(layout.reference(tag))
    stamp = [store.state / "images/images" / digest[7:] for digest, names in
             store.images().items() if names == [layout.reference("old")]][0]
    for path in (stamp / "used", stamp / "config.json"):
        os.utime(path, (0, 0))
    store.settings["keep-age"] = "1d"
    assert store.run("gc") == ["freed 50000"]
    store.settings["keep-size"] = "40k"
    assert store.run("gc") == ["freed 50000"]
    assert store.images() == {}


def test_a_lost_layer_makes_the_image_be_fetched_again(layout, store):
    layout.image("t", [archive([file("x")])])
    root = store.get(layout.reference("t"))[0]
    shutil.rmtree(pathlib.Path(root).parent)
    assert store.images() == {}
    store.get(layout.reference("t"))
