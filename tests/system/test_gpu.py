# SPDX-License-Identifier: Apache-2.0
"""Slices of a simulated GPU: what a program may, what it may not, and what is noticed."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fetched
from gpu import BUILD, LIBRARY, Card, preloadable
from terminal import Terminal
from terminal_screen import Screen

CLIENTS = BUILD / "tests" / "gpu"
VERSIONS = ["11.0", "11.4", "12.0", "12.8", "13.0", "13.4"]
SLICE = ["--memory", "512m"]


@pytest.fixture
def card():
    with Card() as made:
        yield made


def wait_for(check, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.02)
    return check()


def top(card):
    return json.loads(card.run_plain(BUILD / "aliquot-gpu", "top", "--once", "--json").stdout)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_way_to_allocate(version):
    with Card(version) as card:
        done = card.run(CLIENTS / "gpu-entries", options=["--memory", "320m"])
        assert done.returncode == 0, done.stdout + done.stderr
        assert "ok cuMemAlloc_v2" in done.stdout and "BAD" not in done.stdout
        assert card.show()[0]["used"] == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_slice_the_simulation_grants_all(version):
    with Card(version) as card:
        done = card.run_plain(CLIENTS / "gpu-bypass", "dlsym")
        assert done.returncode == 3 and "got 1 GiB" in done.stdout


# What a preload library cannot hold, it has to notice.
NOTICED = {"deepbind-linked", "elf-walk", "elf-walk-later", "no-preload"}
WAYS = subprocess.run([CLIENTS / "gpu-bypass"], capture_output=True, text=True).stdout.split()


def test_there_are_ways():
    assert len(WAYS) >= 15 and NOTICED < set(WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_no_way_round(card, way):
    done = card.run(CLIENTS / "gpu-bypass", way, options=SLICE)
    if way in NOTICED:
        assert done.returncode == 3
        assert re.search(r"process \d+ (uses GPU-513a5f0e past its limits|holds more of GPU-513a5f0e)",
                         done.stderr), done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gate
@pytest.mark.parametrize("way", sorted(NOTICED))
def test_stopped_on_demand(card, way):
    done = card.run(CLIENTS / "gpu-bypass", way, options=[*SLICE, "--stop"])
    assert "stopped" in done.stderr
    assert wait_for(lambda: card.show()[0]["used"] == 0)


def look(card, *options):
    """'aliquot gpu top', as a user calls it."""
    return subprocess.run([BUILD / "aliquot", "gpu", "top", "--once", *options], env=card.env,
                          capture_output=True, text=True, timeout=60)


@pytest.mark.gate
def test_slices_are_shown(card):
    assert look(card).stdout == ("Nothing runs on a slice. Begin: aliquot gpu run --memory 8g -- "
                                 "PROGRAM\n")
    assert json.loads(look(card, "-o", "json").stdout) == []
    with card.started("sleep", "60", options=["--memory", "1g", "--compute", "30"]) as run:
        assert wait_for(lambda: top(card))
        header, row = look(card).stdout.splitlines()
        assert header.split() == ["RUN", "DEVICE", "MEMORY", "USED", "/", "MIB", "SHARE", "BUSY",
                                  "PROCESSES", "REFUSED"]
        [line] = json.loads(look(card, "-o", "json").stdout)
        assert row.split() == [str(line["run"]), line["device"][:12], "[................]", "0", "/",
                               "1024", "30.0", "%", "0.0", "%", "0", "0"]
        assert (line["run"], line["memory_bytes"], line["share"]) == (run.pid, 1 << 30, 0.3)
        assert line["device"] == "GPU-513a5f0e-7721-4b6c-9d10-000000000000"
        assert "\033[32m" in look(card, "--color=always").stdout
        run.kill()
    done = look(card, "-o", "yaml")
    assert done.returncode == 2 and "as a table or as json" in done.stderr


def test_the_picture_stays_until_a_key(card):
    """Where there is a terminal; elsewhere it is shown once."""
    env = {**card.env, "TERM": "xterm-256color"}
    with card.started("sleep", "60", options=["--memory", "1g"]) as run:
        assert wait_for(lambda: top(card))
        for key in b"q", b"\x1b", b"\x03":
            screen = Screen(str(BUILD / "aliquot"), "gpu", "top", env=env, columns=60)
            screen.until_line(rf"^ *{run.pid} .*~$")  # a narrow terminal cuts, and says so
            assert screen.is_alternate and screen.leave(key) == 0
        done = subprocess.run([BUILD / "aliquot", "gpu", "top"], env=env, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True)
        assert str(run.pid) in done.stdout and "\x1b" not in done.stdout
        run.kill()


def test_no_such_card(card):
    done = card.run("true", options=["--device", "7"])
    assert done.returncode == 125
    assert done.stderr.endswith("no GPU '7' here; there are 1: see them with nvidia-smi -L\n")


def test_killed_processes_give_back_at_once(card):
    with card.started(CLIENTS / "gpu-churn", options=SLICE) as run:
        assert wait_for(lambda: [line for line in top(card) if line["used_bytes"]])
        child = wait_for(lambda: [c["pid"] for c in card.show()[0]["clients"]])[0]
        os.kill(child, signal.SIGKILL)
        assert run.wait(timeout=60) == 128 + signal.SIGKILL


@pytest.mark.gate
def test_many_processes_and_kills(card):
    """The shared counter equals the sum over live processes, whichever dies when."""
    script = f"for i in $(seq 16); do '{CLIENTS}/gpu-churn' & done; wait"
    with card.started("sh", "-c", script, options=["--memory", "4g"],
                      stdout=subprocess.DEVNULL):
        assert wait_for(lambda: len(card.show()[0]["clients"]) == 16)
        for _ in range(12):
            victim = card.show()[0]["clients"][0]["pid"]
            os.kill(victim, signal.SIGKILL)
            assert wait_for(lambda: victim not in [c["pid"] for c in card.show()[0]["clients"]])
            time.sleep(0.05)
        line = wait_for(lambda: [line for line in top(card) if line["processes"] == 4])
        assert line
        for client in card.show()[0]["clients"]:
            os.kill(client["pid"], signal.SIGKILL)
        assert wait_for(lambda: card.show()[0]["used"] == 0)
        assert wait_for(lambda: all(line["used_bytes"] == 0 for line in top(card)))


@pytest.mark.gate
def test_shares_of_time():
    """On the clock of discrete events, so that a busy machine changes nothing."""
    load = [CLIENTS / "gpu-load", "async", "1000000", "3"]
    with Card(virtual=5) as card, \
            card.started(*load, options=["--compute", "20"], stdout=subprocess.DEVNULL), \
            card.started(*load, options=["--compute", "50"], stdout=subprocess.DEVNULL), \
            card.watched(1_000_000, 2) as seen:
        busy = [sorted(c["busy_ns"] for c in one["devices"][0]["clients"]) for one in seen]
    for before, after in zip(busy, busy[1:]):
        parts = [(b - a) / 1e9 for a, b in zip(before, after)]
        assert abs(parts[0] - 0.20) < 0.03 and abs(parts[1] - 0.50) < 0.03, busy


@pytest.mark.gate
def test_run_exits_as_the_program(card):
    assert card.run("sh", "-c", "exit 7").returncode == 7
    assert card.run("/nonexistent").returncode == 127
    done = card.run("true", options=["--memory", "9999g"])
    assert done.returncode == 2 and "fewer than" in done.stderr
    for bad in (["--memory", "x"], ["--compute", "0"], ["--compute", "101"], ["--what"]):
        assert card.run("true", options=bad).returncode == 2


@pytest.mark.gate
def test_two_cards_show_the_granted_one():
    with Card(devices=2) as card:
        code = ("import ctypes; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); "
                "c.cuInit(0); c.cuDeviceGetCount(ctypes.byref(n)); d = ctypes.c_int(); "
                "print(n.value, c.cuDeviceGet(ctypes.byref(d), 0), d.value)")
        done = card.run(sys.executable, "-c", code, options=["--device", "1", "--memory", "1g"])
        assert done.stdout.split() == ["1", "0", "1"]


def test_a_place_that_cannot_be_preloaded_from(card, tmp_path):
    """LD_PRELOAD parts paths by blanks and colons."""
    folder = tmp_path / "a place: here"
    folder.mkdir()
    for name in ("aliquot-gpu", "libaliquot-gpu.so"):
        shutil.copy(BUILD / name, folder)
    done = card.run_plain(folder / "aliquot-gpu", "run", *SLICE, "--", CLIENTS / "gpu-bypass",
                          "dlsym")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(pathlib.Path(card.folder).rglob("*.so"))


def newest_glibc(path):
    text = subprocess.run(["objdump", "-T", path], capture_output=True, text=True,
                          check=True).stdout
    return max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", text))


def test_programs_of_older_images_load_the_simulated_driver():
    libraries = list((LIBRARY.parent / "simgpu").glob("*-lib*.so.1"))
    assert libraries and max(map(newest_glibc, libraries)) <= (2, 34)


@pytest.mark.gate
def test_symbols_of_the_library():
    """Runs on glibc 2.17 and newer, needs nothing but the C library, and exports only
    what it stands in front of."""
    text = subprocess.run(["objdump", "-T", LIBRARY], capture_output=True, text=True,
                          check=True).stdout
    assert newest_glibc(LIBRARY) <= (2, 17)
    needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True,
                            check=True).stdout
    assert re.findall(r"NEEDED.*\[(.*)\]", needed) == ["libc.so.6"]
    assert "INIT_ARRAY" not in needed or "NODELETE" in needed
    exported = {line.split()[-1] for line in text.splitlines() if " g " in line}
    assert {"dlsym", "dlvsym", "cuMemAlloc_v2", "cuLaunchKernel_ptsz"} <= exported
    assert all(re.match(r"(cu[A-Z]|nvml[A-Z]|dlv?sym$)", name) for name in exported), exported
    forbidden = {"exit", "abort", "signal", "sigaction", "umask", "pthread_create", "printf",
                 "fprintf", "syslog", "system", "putenv", "setenv"}
    used = {line.split()[-1] for line in text.splitlines() if "*UND*" in line}
    assert not used & forbidden


MUSL = r"""
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    void *all = dlopen(NULL, RTLD_NOW);
    int status = 0;

    errno = EDOM;
    if (!dlsym(all, "malloc") || dlsym(all, "cuMemAlloc_v2") || errno != EDOM)
        return 1; /* without a driver there is none of its functions */
    if (dlopen("libcuda.so.1", RTLD_NOW))
        return 2;
    if (fork() == 0)
        _exit(dlsym(all, "malloc") ? 3 : 4);
    (void)wait(&status);
    puts("fine");
    return WEXITSTATUS(status) == 3 ? 0 : 5;
}
"""


@pytest.mark.gate
def test_programs_of_musl_load_the_library(tmp_path):
    """Its loader takes LD_PRELOAD, and has all that the library needs of a C library."""
    if not shutil.which("musl-gcc"):
        pytest.skip("there is no musl-gcc")
    (tmp_path / "program.c").write_text(MUSL)
    subprocess.run(["musl-gcc", "-o", tmp_path / "program", tmp_path / "program.c"], check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True,
                          env={"LD_PRELOAD": preloadable(LIBRARY, tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_programs_without_a_gpu_are_left_alone(card):
    plain = card.run_plain("ls", "/")
    assert card.run("ls", "/").stdout == plain.stdout
    env = {**os.environ, "LD_PRELOAD": preloadable(LIBRARY, card.folder)}
    done = subprocess.run([sys.executable, "-c", "import socket, threading; print('fine')"],
                          env=env, capture_output=True, text=True)
    assert done.stdout == "fine\n" and done.stderr == ""


def test_without_a_server_nothing_is_granted(card):
    done = card.run_plain(CLIENTS / "gpu-bypass", "dlsym",
                          env={"LD_PRELOAD": preloadable(LIBRARY, card.folder)})
    assert done.returncode == 0 and "got" not in done.stdout


NVML_CLIENT = """
import json, os, pynvml as n
n.nvmlInit()
d = n.nvmlDeviceGetHandleByIndex(0)
m, m2 = n.nvmlDeviceGetMemoryInfo(d), n.nvmlDeviceGetMemoryInfo(d, version=n.nvmlMemory_v2)
def denied(call, *args):
    try:
        call(*args)
    except n.NVMLError as error:
        return error.value == n.NVML_ERROR_NO_PERMISSION
by_name = [n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(d).busId),
           n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(d))]
print(json.dumps(dict(count=n.nvmlDeviceGetCount(), total=m.total, used=m.used, total2=m2.total,
    by_name=[n.nvmlDeviceGetIndex(handle) for handle in by_name],
    pids=[p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(d)], index=n.nvmlDeviceGetIndex(d),
    util=n.nvmlDeviceGetUtilizationRates(d).gpu, name=n.nvmlDeviceGetName(d),
    denied=[denied(n.nvmlDeviceSetComputeMode, d, 0), denied(n.nvmlDeviceSetPersistenceMode, d, 0),
            denied(n.nvmlDeviceSetPowerManagementLimit, d, 1)])))
"""


@pytest.fixture(scope="session")
def pynvml():
    """NVIDIA's own client from PyPI."""
    return {"PYTHONPATH": str(fetched.python_packages("nvidia-ml-py"))}


def test_a_client_of_nvml_sees_the_slice(card, pynvml):
    script = (f"'{CLIENTS}/gpu-churn' 20 & sleep 1; {sys.executable} -c \"$CODE\"; kill $!")
    done = card.run("sh", "-c", script, options=["--memory", "2g"],
                    env={**pynvml, "CODE": NVML_CLIENT})
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["total"] == seen["total2"] == 2 << 30 and seen["count"] == 1
    assert 0 < seen["used"] <= 2 << 30 and len(seen["pids"]) == 1 and seen["index"] == 0
    assert seen["by_name"] == [0, 0] and seen["denied"] == [True, True, True]


SETTERS = """
import ctypes, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
for name in sys.argv[1:]:
    print(name, getattr(nvml, name)(*[ctypes.c_void_p(0)] * 6))
"""


HOOKS = pathlib.Path(__file__).resolve().parents[2] / "src" / "gpu" / "hooks.def"


def test_setters_have_no_permission():
    """Every function of hooks.def that would change the device for everybody."""
    lines = HOOKS.read_text().splitlines()
    names = [line.split()[0] for line in lines if line.startswith("nvml") and " deny " in line]
    with Card("13.4") as newest:
        done = newest.run(sys.executable, "-c", SETTERS, *names)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} 4" for name in names]
    assert "nvmlDeviceSetMemoryLimits_v1" in names and len(names) > 50


NULLS = """
import ctypes, os, sys
libraries = [ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")]
def call(name):
    cuda, nvml = libraries
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == nvml.nvmlInit_v2() == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    getattr(nvml if name.startswith("nvml") else cuda, name)(*[ctypes.c_void_p(0)] * 12)
    os._exit(0)
for name in sys.argv[1:]:
    if any(hasattr(library, name) for library in libraries):
        child = os.fork() or call(name)
        print(name, os.waitpid(child, 0)[1], flush=True)
"""


@pytest.mark.parametrize("version", ["11.0", "13.4"])
def test_null_everywhere(version):
    """No function crashes or hangs when all it is given is nothing."""
    names = [line.split()[0] for line in HOOKS.read_text().splitlines()
             if line.startswith(("cu", "nvml"))]
    with Card(version) as card:
        done = card.run(sys.executable, "-c", NULLS, *names, options=SLICE)
    shown = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(shown) > 200, done.stderr
    assert [name for name, status in shown if status != "0"] == []


@pytest.mark.parametrize("fault", [{"alloc_every": 3}, {"hide_process_list": 1},
                                   {"hidden_symbol": "cuGetProcAddress_v2"},
                                   {"nvml_delay_us": 1000}])
def test_a_faulty_driver_crashes_nothing(card, fault):
    card.set(**fault)
    done = card.run(CLIENTS / "gpu-churn", "2", options=SLICE)
    assert done.returncode in (0, 1) and "signal" not in done.stderr, done.stderr


@contextlib.contextmanager
def stopped(process):
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_limits_outlive_the_server(card):
    """Who runs goes on under the limits; who comes waits for no answer forever."""
    with card.started(CLIENTS / "gpu-churn", "8", options=SLICE) as run:
        assert wait_for(lambda: card.show()[0]["used"] > 0)
        with stopped(run):
            before = card.show()[0]["used"]
            time.sleep(1.5)
            assert card.show()[0]["clients"] and card.show()[0]["used"] <= 512 << 20
            assert before <= 512 << 20


def test_signals_are_the_programs(card):
    """One from a process is passed on, a key of the terminal comes once."""
    words = ("sh", "-c", "trap 'echo got $((n += 1))' INT; echo ready; "
                         "while test $n -lt 1; do sleep 0.1; done; sleep 0.3; echo over; exit 7")
    command = card.command(*words, options=["--memory", "1g"])
    env = {**card.env, "n": "0"}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, start_new_session=True) as run:
        assert run.stdout.readline() == b"ready\n"
        run.send_signal(signal.SIGINT)
        assert run.communicate(timeout=60)[0] == b"got 1\nover\n" and run.returncode == 7
    person = Terminal(*map(str, command), env=env)
    person.expect(b"ready")
    person.send(b"\x03")
    person.expect(b"got 1")
    person.expect(b"over")
    assert b"got 2" not in person.text and person.wait() == 7
