"""./demo: build, start a cluster with mock GPUs, show the scenes, say where everything is."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import cluster as clusters
import python_images as images
import scenes
import screen

ROOT = pathlib.Path(__file__).resolve().parents[2]


def compile_programs():
    if not (ROOT / "build" / "build.ninja").exists():
        subprocess.run(["meson", "setup", "build"], cwd=ROOT, check=True, capture_output=True)
    ninja = subprocess.Popen(["ninja", "-C", "build"], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "NINJA_STATUS": "[%f/%t] "})
    said = []
    for text in ninja.stdout:
        said.append(text)
        if step := re.match(r"\[(\d+)/(\d+)\]", text):
            screen.bar("compiling", int(step[1]), int(step[2]))
    if ninja.wait():
        raise SystemExit("".join(said[-40:]))
    screen.good("programs compiled")


def prepare():
    """Programs, and meanwhile the images; returns {version: layout folder}."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        pending = {version: pool.submit(images.build, version) for version in images.RELEASES}
        compile_programs()
        layouts = {}
        for version, future in pending.items():
            layouts[version] = future.result()
            screen.good(f"image with Python {version} ({images.RELEASES[version]})")
    return layouts


def pull(cluster, references):
    screen.title("Images, pulled from a registry")
    for reference in references.values():
        cluster.show("image", "pull", reference)
    screen.note(cluster.run("image", "ls"))


def show(cluster, references):
    image = references["3.11"]
    result = {}
    screen.title("Fractions of two GPUs (document 001)")
    result["gpu_alloc_map"] = scenes.gpu_alloc_map(cluster, image)
    screen.title("A queue (document 002)")
    result["queue"] = scenes.queue(cluster, image)
    screen.title("Slices of a GPU that is not there (document 002)")
    result["gpu_slices"] = scenes.gpu_slices(cluster, image)
    screen.title("Python versions side by side")
    result["runtimes"] = scenes.runtimes(cluster, references)
    screen.title("Batch programs")
    result["batch"] = scenes.batch(cluster, image)
    screen.title("kill -9")
    result["recovery"] = scenes.recovery(cluster, image)
    screen.title("Starting")
    result["session_start_ms"] = scenes.session_start(cluster, image)
    result["manager_rss_kb"] = scenes.resident_kb(cluster.pids()["manager"])
    return result


def stay(cluster):
    screen.title("The cluster goes on; Ctrl-C ends it")
    screen.note(f"export ALIQUOT_ENDPOINT={cluster.endpoint}\n"
                f"{ROOT}/build/aliquot login --dev --endpoint {cluster.endpoint}\n"
                f"{ROOT}/build/aliquot agent info first\n"
                f"state and logs: {cluster.state}")
    cluster.up.wait()


def main():
    parser = argparse.ArgumentParser(prog="./demo", description=__doc__)
    parser.add_argument("--exit", action="store_true",
                        help="stop afterwards; the last line is then one JSON object")
    parser.add_argument("--state", type=pathlib.Path, help="folder of the cluster")
    args = parser.parse_args()
    started = int(os.environ.get("ALIQUOT_DEMO_STARTED", time.time_ns() // 1000)) / 1e6
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    screen.title("Preparing")
    layouts = prepare()
    state = args.state or images.cache_dir() / "cluster"
    registry = images.Registry(state.parent / "registry")
    cluster = clusters.Cluster(state, registry.address)
    try:
        for version, layout in layouts.items():
            registry.push(layout, version)
        cluster.start()
        screen.good(f"a manager and two agents at {cluster.endpoint}")
        references = {version: registry.reference(version) for version in layouts}
        pull(cluster, references)
        result = show(cluster, references)
        result["total_s"] = round(time.time() - started, 1)
        if not args.exit:
            stay(cluster)
    except KeyboardInterrupt:
        pass
    finally:
        cluster.stop()
        registry.stop()
    if args.exit:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
