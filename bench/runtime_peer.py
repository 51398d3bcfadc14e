# SPDX-License-Identifier: Apache-2.0
"""An OCI runtime that runs the bundle of an agent's container by itself: its root file system is
mounted already, and it makes its own cgroups."""

import json
import os
import pathlib
import subprocess
import sys
import time


def find_container(folder):
    """The only one there: (runtime's command line, its pid, folder of its bundle)."""
    [bundle] = pathlib.Path(folder).glob("**/run/1/config.json")
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (proc / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "--bundle" in words and str(bundle.parent) in words:
            return words, int(proc.name), bundle.parent
    sys.exit(f"the container of {bundle} is not found")


def write_bundle(original, folder, parent, is_plain, command):
    """The same, but for the runner, whose descriptors nobody gives, and its configuration, the cgroup,
    and the network, which is the runtime's own and empty."""
    config = json.loads((original / "config.json").read_text())
    config["mounts"] = [mount for mount in config["mounts"]
                        if mount["destination"] != "/home/config"]
    for namespace in config["linux"]["namespaces"]:
        if namespace["type"] == "network":
            namespace.pop("path", None)
    for mount in config["mounts"]:
        if mount["destination"] == "/sys":
            mount.update(type="sysfs", source="sysfs",
                         options=[option for option in mount["options"] if option != "bind"])
    if is_plain:
        config["annotations"].pop("run.oci.seccomp_bpf_data", None)
    config["process"]["args"] = [*command]
    config["linux"]["cgroupsPath"] = f"{parent}/bench/{folder.name}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))


def copy_bundle(folder, number):
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    config["linux"]["cgroupsPath"] += f"-{number}"
    copy = pathlib.Path(folder) / f"peer-{number}"
    copy.mkdir()
    (copy / "config.json").write_text(json.dumps(config))
    return copy


class Peer:
    """In the mount namespace of the container that was found, timed by a helper there. 'world' is
    the agent's; "plain" is without the filter of system calls that the agent made ready."""

    def __init__(self, world, found, name, is_plain, command=("/bin/true",)):
        words, pid, bundle = found
        write_bundle(bundle, world.folder / name, world.env["ALIQUOT_RUNTIME_CGROUP_PARENT"],
                     is_plain, command)
        self.helper = subprocess.Popen(
            ["nsenter", "--target", str(pid), "--mount", "--", sys.executable, __file__,
             words[0], world.folder / name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)

    def run_ms(self, count=1):
        """From the start of so many at once to the end of all of them."""
        print(count, file=self.helper.stdin, flush=True)
        return float(self.helper.stdout.readline())

    def end(self):
        self.helper.stdin.close()
        self.helper.wait()


def serve(runtime, folder):
    """The helper: for each line, as many containers at once as it says, each with its cgroup."""
    bundles = []
    empty, end = os.pipe()  # crun gives its descriptors to the container's user: no /dev/null
    os.close(end)
    said = open(f"{folder}/said", "wb")
    for line in sys.stdin:
        while len(bundles) < int(line):
            bundles.append(copy_bundle(folder, len(bundles)))
        started = time.monotonic()
        running = [subprocess.Popen([runtime, "--root", f"{folder}/state", "run", "--bundle",
                                     bundle, bundle.name], stdin=empty, stdout=said)
                   for bundle in bundles[:int(line)]]
        assert all(container.wait() == 0 for container in running)
        print((time.monotonic() - started) * 1e3, flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
