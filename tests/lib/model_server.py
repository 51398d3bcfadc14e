# SPDX-License-Identifier: Apache-2.0
"""Servers of models for tests: a small one of ours with the interface of OpenAI's, and llama.cpp with a
model of half a megabyte; as images for containers, and as processes of this machine.

The programs are in tests/lib/serving, and say themselves what they can do.
"""

import contextlib
import functools
import http.client
import pathlib
import subprocess
import sys
import tempfile

import fetched
from cluster import wait_for
from images import Layout, archive, file, folder
from ports import free_port
from python_image import pip_layer, python_layer

PROGRAMS = pathlib.Path(__file__).parent / "serving"
PORT = 8000
LLAMA = "xllamacpp==2026.10.11549"
GGUF = "gguf==0.19.0"


def words(options):
    """The options of openai_server.py: ready_after=2 is "--ready-after 2"."""
    return [word for name, value in options.items()
            for word in ("--" + name.replace("_", "-"), str(value))]


def command(**options):
    """What a session of image() runs."""
    return " ".join(["exec /usr/bin/python3 /app/openai_server.py", *words(options)])


def program_command(**options):
    """What a session that is a process runs."""
    return " ".join(["exec", sys.executable, str(PROGRAMS / "openai_server.py"), *words(options)])


def llama_command(port=PORT, slots=4, context=4096):
    """What a session of llama_image() runs."""
    return f"exec /usr/bin/python3 /app/llama_server.py /models/tiny.gguf {port} {slots} {context}"


def program_layer(*more):
    return archive([folder("app"), *(file(f"app/{path.name}", path.read_bytes())
                                     for path in sorted(PROGRAMS.glob("*.py"))), *more])


@functools.cache
def tiny_model():
    """The bytes of a GGUF file."""
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "tiny.gguf"
        subprocess.run([sys.executable, PROGRAMS / "tiny_gguf.py", path], check=True,
                       env={"PYTHONPATH": str(fetched.python_packages(GGUF))})
        return path.read_bytes()


def image(cluster, tag="model-server"):
    """An image with openai_server.py, as a reference."""
    layout = Layout(cluster.folder / tag)
    layout.image(tag, [python_layer(), program_layer(folder("tmp", mode=0o1777))])
    return layout.reference(tag)


def llama_image(cluster, tag="llama-server"):
    """An image with llama.cpp and /models/tiny.gguf, as a reference."""
    layout = Layout(cluster.folder / tag)
    layout.image(tag, [python_layer(), pip_layer(LLAMA), program_layer(
        folder("models"), file("models/tiny.gguf", tiny_model()))])
    return layout.reference(tag)


def ask(port, method, path, body=None, headers=None, timeout=30):
    """(status, body) of one request to a server of this machine; (0, b"") if nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


@contextlib.contextmanager
def serving(arguments, port, wanted=(200, 503), env=None):
    process = subprocess.Popen([sys.executable, *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, env=env)
    try:
        wait_for(lambda: process.poll() is not None or ask(port, "GET", "/health")[0] in wanted, 60,
                 "the server to answer")
        assert process.poll() is None, "the server has ended"
        yield port
    finally:
        process.terminate()
        process.wait(40)


@contextlib.contextmanager
def started(**options):
    """openai_server.py as a process of this machine that listens; its port."""
    port = options.setdefault("port", free_port())
    with serving([PROGRAMS / "openai_server.py", *words(options)], port):
        yield port


@contextlib.contextmanager
def llama_started(slots=4):
    """llama.cpp likewise, once it is ready."""
    port = free_port()
    with tempfile.TemporaryDirectory() as place:
        model = pathlib.Path(place) / "tiny.gguf"
        model.write_bytes(tiny_model())
        with serving([PROGRAMS / "llama_server.py", model, port, slots], port, (200,),
                     {"PYTHONPATH": str(fetched.python_packages(LLAMA))}):
            yield port
