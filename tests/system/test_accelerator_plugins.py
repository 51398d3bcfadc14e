# SPDX-License-Identifier: Apache-2.0
"""The plugins for real hardware, on device trees that the test makes, through aliquot-accel."""

import json
import os
import shutil
import socket
import subprocess

import pytest

from world import BUILD, ROOT


EXAMPLES = ROOT / "packaging" / "accelerators"


class Tree:
    """A folder that stands for "/"."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, files):
        for path, text in files.items():
            full = self.folder / path.lstrip("/")
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)

    def env(self):
        return {**os.environ, "ALIQUOT_ACCEL_ROOT": str(self.folder)}


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


class Plugin:
    """A process of aliquot-accel, asked as the agent does."""

    def __init__(self, tree, name, config=None, file=None, **env):
        ours, theirs = socket.socketpair()
        command = [BUILD / "aliquot-accel", file or BUILD / f"aliquot-accel-{name}.so"]
        self.process = subprocess.Popen(
            [*command, *([config] if config else [])], env={**tree.env(), **env}, pass_fds=[3],
            preexec_fn=lambda: os.dup2(theirs.fileno(), 3, inheritable=True))
        theirs.close()
        self.lines = ours.makefile("rw")
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.process.kill()
        self.process.wait()

    def ask(self, call, **more):
        self.count += 1
        print(json.dumps({"id": self.count, "call": call, **more}), file=self.lines, flush=True)
        answer = json.loads(self.lines.readline())
        assert answer["id"] == self.count, answer
        return answer.get("result", answer)


def needs(result, kind):
    """[(name, value)] of one kind: 0 nodes, 1 mounts, 2 variables, 4 lines of resource.txt, 5 groups."""
    return [(one["name"], one.get("value")) for one in result["needs"] if one.get("kind", 0) == kind]


# ---- generic ----

@pytest.mark.gate
def test_examples_without_hardware(tree):
    for file in sorted(EXAMPLES.glob("*.toml")):
        with Plugin(tree, "generic", file) as plugin:
            shown = plugin.ask("describe")
        assert shown["identity"]["key"] == file.stem
        assert shown["identity"]["status"] == 3  # unavailable
        assert "devices" not in shown and "slots" not in shown


def test_atom(tree):
    tree.write({f"dev/rbln{i}": "" for i in (0, 2, 10)})
    tree.write({"sys/class/rebellions/rbln10/device/numa_node": "1\n",
                "sys/class/rebellions/rbln2/product_name": "RBLN-CA22\n"})
    with Plugin(tree, "generic", EXAMPLES / "atom.toml") as plugin:
        shown = plugin.ask("describe")
        result = plugin.ask("attach", grants=[["atom.device", "rbln2", 1000000],
                                              ["atom.device", "rbln10", 1000000]])
        assert plugin.ask("attach", grants=[["atom.device", "rbln7", 1000000]])["error"]
    assert [one["id"] for one in shown["devices"]] == ["rbln0", "rbln2", "rbln10"]
    assert [one["numa_node"] for one in shown["devices"]] == [-1, -1, 1]
    assert shown["devices"][1]["model"] == "RBLN-CA22"
    assert shown["slots"][0]["name"] == "atom.device"
    assert needs(result, 0) == [("/dev/rbln2", None), ("/dev/rbln10", None)]
    assert needs(result, 2) == [("RBLN_DEVICES", "2,10")]
    assert needs(result, 1) == [("/usr/local/bin/rbln-stat", None)]


def test_health_of_warboy(tree):
    tree.write({"dev/npu0": "", "dev/npu1": "", "dev/npu0pe0": "",
                "sys/class/npu_mgmt/npu0_mgmt/alive": "1\n",
                "sys/class/npu_mgmt/npu1_mgmt/alive": "0\n"})
    with Plugin(tree, "generic", EXAMPLES / "warboy.toml") as plugin:
        shown = plugin.ask("describe")
        result = plugin.ask("attach", grants=[["warboy.device", "npu0", 1000000]])
    assert [one.get("status", 0) for one in shown["devices"]] == [0, 2]
    assert shown["devices"][1]["status_text"] == "0"
    assert ("/dev/npu0pe0-1", None) in needs(result, 0)


def test_metrics_of_gaudi(tree):
    accel = "sys/class/accel/accel0/device/"
    tree.write({"dev/accel/accel0": "", accel + "status": "operational\n", accel + "power": "215000\n",
                accel + "device_type": "GAUDI2\n", accel + "pci_addr": "0000:33:00.0\n"})
    with Plugin(tree, "generic", EXAMPLES / "gaudi.toml") as plugin:
        shown = plugin.ask("describe")
        metrics = plugin.ask("measure", targets=[
            {"grants": [["gaudi.device", "accel0", 1000000]], "pids": []}])["metrics"]
        result = plugin.ask("attach", grants=[["gaudi.device", "accel0", 1000000]])
    assert shown["devices"][0]["model"] == "GAUDI2"
    assert shown["devices"][0]["location"] == "0000:33:00.0"
    assert [(one.get("device"), one.get("target"), one["value"]) for one in metrics] == [
        ("accel0", None, 215), (None, None, 215), (None, 0, 215)]
    assert needs(result, 0) == [("/dev/accel/accel0", None), ("/dev/accel/accel_controlD0", None)]


def test_tpu(tree):
    tree.write({f"dev/accel{i}": "" for i in (0, 1, 3)})
    tree.write({"dev/accel_ctl": "", "sys/class/accel/accel3/device/numa_node": "1\n"})
    with Plugin(tree, "generic", EXAMPLES / "tpu.toml") as plugin:
        shown = plugin.ask("describe")
        result = plugin.ask("attach", grants=[["tpu.device", "accel1", 1000000],
                                              ["tpu.device", "accel3", 1000000]])
    assert [(one["id"], one["numa_node"]) for one in shown["devices"]] == [
        ("accel0", -1), ("accel1", -1), ("accel3", 1)]
    assert shown["slots"][0]["name"] == "tpu.device" and shown["devices"][0]["model"] == "TPU"
    assert needs(result, 0) == [("/dev/accel1", None), ("/dev/accel3", None)]
    assert needs(result, 2) == [("TPU_VISIBLE_CHIPS", "1,3")]


@pytest.mark.parametrize("text, why", [
    ("", "key is not set"),
    ('key = "npu"\n', "devices.files is not set"),
    ('key = "npu"\n[devices]\nfiles = "npu*"\n', "must be an absolute path"),
    ('key = "npu"\n[devices]\nfiles = "/dev/npu*"\nmodle = 1\n', ":4: unknown key 'devices.modle'"),
    ('key = "npu"\n[devices]\nfiles = "/dev/npu*"\n[[metric]]\nfile = "x"\n', "metric[0]: key is not set"),
    ('key = "npu"\n[devices\n', ":2: "),
])
def test_wrong_descriptions(tree, text, why):
    tree.write({"npu.toml": text})
    done = subprocess.run([BUILD / "aliquot-accel", "--describe", BUILD / "aliquot-accel-generic.so",
                           tree.folder / "npu.toml"], env=tree.env(), capture_output=True, text=True)
    assert done.returncode == 1 and why in done.stderr, done


# ---- rocm ----

def amd(node, minor, **more):
    device = f"sys/class/drm/renderD{minor}/device/"
    files = {f"sys/class/kfd/kfd/topology/nodes/{node}/properties":
             f"cpu_cores_count 0\nsimd_count 880\nlocation_id 49920\ndomain 0\n"
             f"device_id 29704\ndrm_render_minor {minor}\n",
             f"dev/dri/renderD{minor}": "",
             device + "mem_info_vram_total": str(64 << 30), device + "mem_info_vram_used": str(1 << 30),
             device + "gpu_busy_percent": "37\n", device + "numa_node": "1\n",
             device + "unique_id": f"a1b2c3d4e5f6{minor}\n",
             device + "hwmon/hwmon5/power1_average": "90000000\n",
             device + "hwmon/hwmon5/temp1_input": "43000\n"}
    files.update({device + path: text for path, text in more.items()})
    return files


def test_rocm_without_hardware(tree):
    with Plugin(tree, "rocm") as plugin:
        shown = plugin.ask("describe")
        assert shown["identity"]["status"] == 3
        assert "devices" not in shown and "slots" not in shown
        tree.write({"sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 8\nsimd_count 0\n"})
        tree.write(amd(1, 128))  # the driver is loaded later
        assert len(plugin.ask("describe")["devices"]) == 1


def test_rocm_devices(tree):
    tree.write({"sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 8\nsimd_count 0\n",
                "sys/module/amdgpu/version": "6.7.0\n"})
    tree.write(amd(1, 128))
    tree.write(amd(2, 129, product_name="Instinct MI210", **{"ras/umc_err_count": "ue: 2\nce: 0\n"}))
    with Plugin(tree, "rocm") as plugin:
        shown = plugin.ask("describe")
        result = plugin.ask("attach", grants=[["rocm.device", "a1b2c3d4e5f6128", 1000000]])
        metrics = plugin.ask("measure", targets=[
            {"grants": [["rocm.device", "a1b2c3d4e5f6128", 1000000]], "pids": []}])["metrics"]
    first, second = shown["devices"]
    assert shown["identity"]["version"] == "6.7.0"
    assert first["processors"] == 220 and first["memory_bytes"] == 64 << 30
    assert first["numa_node"] == 1 and first["location"] == "0000:c3:00.0"
    assert first["slot"] == "rocm.device" and first["amount"] == 1000000
    assert second["model"] == "Instinct MI210" and second["status"] == 2
    assert needs(result, 0) == [("/dev/dri/renderD128", None), ("/dev/kfd", None)]
    assert ("ROCM_GLOBAL_DEVICE_IDS", "0:a1b2c3d4e5f6128") in needs(result, 4)
    mine = {one["key"]: one["value"] for one in metrics if one.get("target") == 0}
    assert mine == {"rocm_mem": 1 << 30, "rocm_util": 37}
    of_device = {one["key"]: one["value"] for one in metrics if one.get("device") == "a1b2c3d4e5f6128"}
    assert of_device["rocm_power"] == 90 and of_device["rocm_temperature"] == 43


@pytest.mark.gate
def test_rocm_in_shares(tree):
    tree.write(amd(0, 128))
    tree.write({"rocm.toml": 'allocation_mode = "fractional"\nunit_mem = "16g"\nquantum_size = 0.25\n'})
    with Plugin(tree, "rocm", tree.folder / "rocm.toml") as plugin:
        shown = plugin.ask("describe")
        result = plugin.ask("attach", grants=[["rocm.shares", "a1b2c3d4e5f6128", 500000]])
    assert shown["devices"][0]["amount"] == 4000000
    assert shown["slots"][0] == {**shown["slots"][0], "name": "rocm.shares", "quantum": 250000}
    assert ("ROCM_MEMORY_LIMITS", f"a1b2c3d4e5f6128:{8 << 30}") in needs(result, 4)


def test_rocm_each_its_own_way(tree):
    tree.write(amd(0, 128))
    tree.write(amd(1, 129))
    tree.write(amd(2, 130))
    tree.write({"rocm.toml": 'device_mask = ["*130"]\n[[device]]\nid = "*129"\n'
                             'allocation_mode = "fractional"\nquantum_size = 0.5\n'})
    with Plugin(tree, "rocm", tree.folder / "rocm.toml") as plugin:
        shown = plugin.ask("describe")
    assert [(one["id"], one["slot"], one.get("quantum")) for one in shown["devices"]] == [
        ("a1b2c3d4e5f6128", "rocm.device", None), ("a1b2c3d4e5f6129", "rocm.shares", 500000)]


# ---- cuda ----

def cuda_config(tree, library, more=""):
    tree.write({"cuda.toml": f'library = "{library}"\n{more}'})
    return tree.folder / "cuda.toml"


def test_cuda_without_driver(tree):
    with Plugin(tree, "cuda", cuda_config(tree, "libnvidia-ml-that-is-not.so.1")) as plugin:
        shown = plugin.ask("describe")
        assert plugin.ask("measure", targets=[]) == {}
    assert shown["identity"]["status"] == 3 and "there is no" in shown["identity"]["status_text"]
    assert "devices" not in shown and "slots" not in shown


@pytest.fixture
def simulated(tree):
    """Two simulated cards of 8 GiB and 80 processors."""
    file = tree.folder / "card"
    subprocess.run([BUILD / "simgpu" / "simgpu", "create", file, "devices=2"], check=True)
    return {"SIMGPU_DEVICE": str(file)}


@pytest.mark.gate
def test_cuda_on_simulated_cards(tree, simulated):
    library = BUILD / "simgpu" / "12.8" / "libnvidia-ml.so.1"
    config = cuda_config(tree, library, 'unit_mem = "4g"\nunit_proc = 40\n')
    with Plugin(tree, "cuda", config, **simulated) as plugin:
        shown = plugin.ask("describe")
        version = shown["identity"]["version"]
        first, second = shown["devices"]
        tree.write({"dev/nvidiactl": "", "dev/nvidia-uvm": "", "usr/bin/nvidia-smi": "",
                    f"usr/lib/x86_64-linux-gnu/libcuda.so.{version}": "",
                    f"usr/lib64/libnvidia-ml.so.{version}": ""})
        result = plugin.ask("attach", grants=[["cuda.shares", first["id"], 500000],
                                              ["cuda.shares", second["id"], 2000000]])
        metrics = plugin.ask("measure", targets=[
            {"grants": [["cuda.shares", first["id"], 500000]], "pids": [1]}])["metrics"]
    assert shown["info"]["cuda_version"] == "12.8"
    assert first["id"].startswith("GPU-") and first["slot"] == "cuda.shares"
    assert first["memory_bytes"] == 8 << 30 and first["processors"] == 80
    assert first["amount"] == 2000000  # one GPU is two shares
    assert needs(result, 0) == [("/dev/nvidia0", None), ("/dev/nvidia1", None),
                                ("/dev/nvidiactl", None), ("/dev/nvidia-uvm", None)]
    assert set(needs(result, 1)) == {
        (f"/usr/lib/x86_64-linux-gnu/libcuda.so.{version}", "/usr/local/nvidia/lib64/libcuda.so.1"),
        (f"/usr/lib64/libnvidia-ml.so.{version}", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"),
        ("/usr/bin/nvidia-smi", None)}
    told = dict(needs(result, 4))
    assert told["CUDA_MEMORY_LIMITS"] == f"{first['id']}:{2 << 30},{second['id']}:{8 << 30}"
    assert told["CUDA_PROCESSOR_LIMITS"] == f"{first['id']}:20,{second['id']}:80"
    of_node = {one["key"]: one["capacity"] for one in metrics
               if "device" not in one and "target" not in one and "capacity" in one}
    assert of_node["cuda_mem"] == 16 << 30 and of_node["cuda_util"] == 200
    mine = {one["key"]: (one["value"], one["capacity"]) for one in metrics if one.get("target") == 0}
    assert mine == {"cuda_mem": (0, 2 << 30), "cuda_util": (0, 100)}


def test_cuda_whole_by_default_units(tree, simulated):
    library = BUILD / "simgpu" / "12.8" / "libnvidia-ml.so.1"
    with Plugin(tree, "cuda", cuda_config(tree, library), **simulated) as plugin:
        shown = plugin.ask("describe")
        id = shown["devices"][0]["id"]
        result = plugin.ask("attach", grants=[["cuda.shares", id, 250000]])
    assert shown["devices"][0]["amount"] == 1000000
    assert dict(needs(result, 4))["CUDA_MEMORY_LIMITS"] == f"{id}:{2 << 30}"
    assert dict(needs(result, 4))["CUDA_PROCESSOR_LIMITS"] == f"{id}:20"


FAKE = BUILD / "tests" / "unit" / "accelhost" / "fake-nvml.so"


@pytest.mark.gate
def test_cuda_slices(tree):
    caps = "proc/driver/nvidia/capabilities/gpu1/mig/gi9/"
    tree.write({caps + "access": "DeviceFileMinor: 75\nDeviceFileMode: 292\n",
                caps + "ci0/access": "DeviceFileMinor: 76\n"})
    with Plugin(tree, "cuda", cuda_config(tree, FAKE)) as plugin:
        shown = plugin.ask("describe")
        result = plugin.ask("attach", grants=[["cuda.device:1g.5gb-mig", "MIG-1", 1000000]])
    assert [(one["id"], one["slot"]) for one in shown["devices"]] == [
        ("GPU-0", "cuda.shares"), ("MIG-0", "cuda.device:1g.5gb-mig"),
        ("MIG-1", "cuda.device:1g.5gb-mig"), ("GPU-2", "cuda.shares")]
    assert shown["devices"][1]["parent"] == "GPU-1" and shown["devices"][1]["processors"] == 14
    assert shown["devices"][0]["processors"] == 108
    assert [slot["type"] for slot in shown["slots"] if slot["name"].endswith("mig")] == [2]
    assert needs(result, 0)[:3] == [("/dev/nvidia1", None), ("/dev/nvidia-caps/nvidia-cap75", None),
                                    ("/dev/nvidia-caps/nvidia-cap76", None)]
    assert dict(needs(result, 4)) == {"CUDA_GLOBAL_DEVICE_IDS": "0:MIG-1",
                                      "CUDA_RESOURCE_VIRTUALIZED": "0"}


def test_cuda_each_its_own_way(tree):
    """One GPU whole, one by its slices, one in quarters."""
    config = cuda_config(tree, FAKE, """\
[[device]]
id = "GPU-0"
allocation_mode = "discrete"
[[device]]
id = "GPU-*"
quantum_size = 0.25
""")
    with Plugin(tree, "cuda", config) as plugin:
        shown = plugin.ask("describe")
    assert [(one["id"], one["slot"], one.get("quantum")) for one in shown["devices"]] == [
        ("GPU-0", "cuda.device", None), ("MIG-0", "cuda.device:1g.5gb-mig", None),
        ("MIG-1", "cuda.device:1g.5gb-mig", None), ("GPU-2", "cuda.shares", 250000)]
    assert {slot["exclusive"] for slot in shown["slots"]} == {"cuda"}


@pytest.mark.parametrize("fault, status, text", [
    ("", 0, None), ("xid 79", 2, "Xid 79"), ("xid 31", 0, None), ("ecc", 2, "3 memory errors"),
    ("lost", 2, "fallen off the bus"), ("hot", 2, "shut down for heat"), ("warm", 0, None)])
def test_cuda_health(tree, fault, status, text):
    file = tree.folder / "fault"
    with Plugin(tree, "cuda", cuda_config(tree, FAKE), FAKE_NVML_FAULT=str(file)) as plugin:
        assert plugin.ask("describe")["devices"][0].get("status", 0) == 0
        file.write_text(fault)
        first = plugin.ask("describe")["devices"][0]
        assert plugin.ask("describe")["devices"][0] == first  # it stays so
    assert first.get("status", 0) == status
    assert text is None or text in first["status_text"]


def test_a_hot_gpu_returns_when_it_is_cool(tree):
    file = tree.folder / "fault"
    with Plugin(tree, "cuda", cuda_config(tree, FAKE), FAKE_NVML_FAULT=str(file)) as plugin:
        def status(fault):
            file.write_text(fault)
            return plugin.ask("describe")["devices"][0].get("status", 0)
        assert [status(fault) for fault in ("warm", "hot", "warm", "", "warm")] == [0, 2, 2, 0, 0]


def test_cuda_library_is_replaced(tree, simulated):
    """An upgrade puts another library in its place: the next look is through that one."""
    library = tree.folder / "libnvidia-ml.so.1"

    def install(version):
        fresh = tree.folder / "fresh"
        shutil.copy((BUILD / "simgpu" / version / "libnvidia-ml.so.1").resolve(), fresh)
        fresh.rename(library)
    install("12.8")
    with Plugin(tree, "cuda", cuda_config(tree, library), **simulated) as plugin:
        before = plugin.ask("describe")
        assert before["info"]["cuda_version"] == "12.8" and len(before["devices"]) == 2
        install("13.0")
        after = plugin.ask("describe")
        assert after["info"]["cuda_version"] == "13.0" and len(after["devices"]) == 2
        library.unlink()
        assert "there is no" in plugin.ask("describe")["identity"]["status_text"]
        install("13.0")
        assert len(plugin.ask("describe")["devices"]) == 2


def test_metrics_that_are_no_numbers(tree):
    with Plugin(tree, "bad", tree.folder / "nan", file=BUILD / "tests/unit/accelhost/bad.so") as plugin:
        assert plugin.ask("measure", targets=[])["metrics"] == [
            {"key": "bad_util", "device": "one", "value": None, "capacity": 100}]


def test_cuda_driver_restarts(tree):
    file = tree.folder / "fault"
    file.write_text("no-driver")
    with Plugin(tree, "cuda", cuda_config(tree, FAKE), FAKE_NVML_FAULT=str(file)) as plugin:
        assert "driver is not loaded" in plugin.ask("describe")["identity"]["status_text"]
        file.write_text("")
        assert len(plugin.ask("describe")["devices"]) == 4
        file.write_text("no-driver")
        assert "devices" not in plugin.ask("describe")
        file.write_text("")
        assert len(plugin.ask("describe")["devices"]) == 4
