# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's HTTP server in a Python process, as the package xllamacpp has it.

    python3 llama_server.py MODEL.gguf [PORT [SLOTS [CONTEXT]]]

CONTEXT is the number of tokens of all slots together.
"""

import signal
import sys

import xllamacpp


def main(model, port="8000", slots="4", context="4096"):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_ctx = int(context)
    params.n_parallel = int(slots)
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2 + 2 * int(slots)
    params.endpoint_metrics = True
    params.warmup = False
    params.fit_params = False
    server = xllamacpp.Server(params)
    print(f"listening at {server.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    signal.alarm(10)  # its end hangs if the model was still being loaded


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main(*sys.argv[1:])
