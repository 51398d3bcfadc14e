# SPDX-License-Identifier: Apache-2.0
"""What `meson install` puts in place works from there, also below DESTDIR."""

import os
import pathlib
import subprocess
import time

import pytest

from ports import free_port
from world import BUILD, World

pytestmark = pytest.mark.gate

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = "usr/local"
LIBRARIES = "lib/*/aliquot"
CHART = ROOT / "packaging/helm/aliquot"
PLACES = [
    "bin/aliquot", "bin/backend.ai", "bin/aliquot-agent", "bin/aliquot-manager",
    *(f"libexec/aliquot/aliquot-{name}" for name in
      ("accel", "fetch", "gpu", "gpu-probe", "monitor", "play", "runner", "sim", "unpack", "up")),
    *(f"{LIBRARIES}/aliquot-accel-{name}.so" for name in ("cuda", "generic", "mock", "rocm")),
    f"{LIBRARIES}/aliquot-postgres.so", f"{LIBRARIES}/aliquot-tls.so",
    f"{LIBRARIES}/libaliquot-gpu.so",
    "lib/*/pkgconfig/aliquot.pc",
    *(f"include/aliquot/{name}.h" for name in ("accelerator", "gpu_region", "scheduler")),
    *(f"lib/systemd/system/aliquot-{name}.service" for name in ("agent", "backup", "manager")),
    "lib/systemd/system/aliquot-backup.timer",
    "bin/aliquot-proxy", "lib/systemd/system/aliquot-proxy.service", "share/aliquot/proxy.toml",
    "bin/aliquot-k8s",
    *(f"share/aliquot/helm/aliquot/{path.relative_to(CHART)}" for path in CHART.rglob("*.yaml")),
    "bin/aliquot-storage", "lib/systemd/system/aliquot-storage.service",
    "share/aliquot/storage.toml",
    "bin/aliquot-web", "lib/systemd/system/aliquot-web.service", "share/aliquot/web.toml",
    *(f"lib/sysusers.d/aliquot-{name}.conf" for name in ("manager", "proxy", "storage", "web")),
    *(f"lib/tmpfiles.d/aliquot-{name}.conf" for name in ("agent", "manager")),
    "share/aliquot/agent.toml", "share/aliquot/k8s.toml", "share/aliquot/manager.toml",
    *(f"share/aliquot/accelerators/{path.name}"
      for path in (ROOT / "packaging" / "accelerators").iterdir()),
    "share/bash-completion/completions/aliquot", "share/zsh/site-functions/_aliquot",
    "share/fish/vendor_completions.d/aliquot.fish",
    *(f"libexec/aliquot/slurm/{name}"
      for name in ("sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol", "srun")),
    *(f"share/man/man{path.suffix[1:]}/{path.name}" for path in (ROOT / "docs" / "man").iterdir()),
]


@pytest.fixture(scope="module")
def world():
    with World() as world:
        yield world


@pytest.fixture(scope="module")
def installed(world):
    target = world.folder / "tree"
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"], check=True,
                   env={**world.env, "DESTDIR": str(target)})
    return target / PREFIX


def test_files_are_in_their_places(installed):
    found = {path for path in installed.rglob("*") if not path.is_dir()}
    expected = set()
    for place in PLACES:
        matches = list(installed.glob(place))
        assert len(matches) == 1, place
        expected.update(matches)
    assert found == expected
    for name in ("agent", "manager"):
        unit = (installed / f"lib/systemd/system/aliquot-{name}.service").read_text()
        assert f"ExecStart=/{PREFIX}/bin/aliquot-{name}\n" in unit
        assert "\n[" in (installed / f"share/aliquot/{name}.toml").read_text()


def test_programs_find_each_other(world, installed):
    """A cluster of the installed programs alone runs a session."""
    port, link = free_port(), free_port()
    aliquot = installed / "bin" / "aliquot"
    env = {**world.env, "ALIQUOT_RUNTIME_DRIVER": "process"}
    with open(world.folder / "up.log", "w") as log:
        up = subprocess.Popen([aliquot, "up", "--dev", "--port", str(port), "--link-port", str(link),
                               "--state", world.folder / "up"], env=env, stdout=log, stderr=log)
    ask = {**env, "ALIQUOT_ENDPOINT": f"http://127.0.0.1:{port}"}
    deadline = time.monotonic() + 60
    while subprocess.run([aliquot, "login", "--dev"], env=ask, capture_output=True).returncode:
        assert time.monotonic() < deadline and up.poll() is None, \
            (world.folder / "up.log").read_text()
        time.sleep(0.1)
    said = subprocess.run([aliquot, "run", "-r", "cpu=1", "-r", "mem=64m", "--", "echo", "hello"],
                          env=ask, capture_output=True, text=True)
    assert "hello" in said.stdout, said
    up.terminate()
    assert up.wait(60) == 0
    assert subprocess.run([aliquot, "sim", "--help"], env=env, capture_output=True).returncode == 0
    assert subprocess.run([aliquot, "sim", "--play", "1", "--agents", "2", "--hours", "0.1"],
                          env=env, capture_output=True).returncode == 0
    assert subprocess.run([aliquot, "gpu", "run", "--help"], env=env,
                          capture_output=True).returncode == 0


@pytest.mark.parametrize("source", ["example/example.c", "scheduler/shortest.c"])
def test_plugins_are_built_by_pkg_config(world, installed, source):
    pc = next(installed.glob("lib/*/pkgconfig"))
    flags = subprocess.run(["pkg-config", "--cflags", "aliquot"], check=True, capture_output=True,
                           text=True, env={**world.env, "PKG_CONFIG_PATH": str(pc),
                                           "PKG_CONFIG_SYSROOT_DIR": str(installed.parents[1])})
    plugin = world.folder / f"{pathlib.Path(source).stem}.so"
    subprocess.run(["cc", "-shared", "-fPIC", *flags.stdout.split(), "-o", plugin,
                    ROOT / "plugins" / source], check=True)
    if source.startswith("example"):
        shown = world.run(installed / "libexec/aliquot/aliquot-accel", "--describe", plugin)
        assert shown.returncode == 0 and "slot" in shown.stdout, shown
    assert os.path.getsize(plugin)
