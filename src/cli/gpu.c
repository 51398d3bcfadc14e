/* SPDX-License-Identifier: Apache-2.0 */
/* "gpu run" and "gpu top": hand over to aliquot-gpu, which needs no cluster. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "cli/verbs.h"

struct gpu_opts {
    const char *memory, *compute, *device;
    bool conserving, host_memory, stop, once, json, colour;
};

static const struct cli_opt run_opts[] = {
    { 0, "memory", CLI_STR, offsetof(struct gpu_opts, memory), "SIZE",
      "device memory, such as 8g; default all of it" },
    { 0, "compute", CLI_STR, offsetof(struct gpu_opts, compute), "PERCENT",
      "of the GPU's time; default 100" },
    { 0, "device", CLI_STR, offsetof(struct gpu_opts, device), "N",
      "index or UUID of the GPU; default: the first" },
    { 0, "work-conserving", CLI_FLAG, offsetof(struct gpu_opts, conserving), NULL,
      "use time that other slices leave over" },
    { 0, "host-memory", CLI_FLAG, offsetof(struct gpu_opts, host_memory), NULL,
      "past the limit, use memory of the host instead of refusing" },
    { 0, "stop", CLI_FLAG, offsetof(struct gpu_opts, stop), NULL,
      "end processes that use the GPU past their limits" },
    CLI_OPT_END,
};

static const struct cli_opt top_opts[] = {
    { 0, "once", CLI_FLAG, offsetof(struct gpu_opts, once), NULL, "show once and end" },
    CLI_OPT_END,
};

struct args {
    char **list;
    int count;
};

static void gpu_add(struct args *args, const char *one)
{
    args->list[args->count++] = (char *)one;
}

static void gpu_add_value(struct args *args, const char *option, const char *value)
{
    if (value) {
        gpu_add(args, option);
        gpu_add(args, value);
    }
}

static void gpu_add_flag(struct args *args, const char *option, bool is_set)
{
    if (is_set)
        gpu_add(args, option);
}

static int gpu_exec(const char *verb, const struct gpu_opts *opts, int argc, char **argv,
                    struct aq_error *err)
{
    struct args args = { .list = aq_alloc_array((size_t)argc + 16, sizeof(char *)) };
    int r;

    gpu_add(&args, "aliquot-gpu");
    gpu_add(&args, verb);
    gpu_add_value(&args, "--memory", opts->memory);
    gpu_add_value(&args, "--compute", opts->compute);
    gpu_add_value(&args, "--device", opts->device);
    gpu_add_flag(&args, "--work-conserving", opts->conserving);
    gpu_add_flag(&args, "--host-memory", opts->host_memory);
    gpu_add_flag(&args, "--stop", opts->stop);
    gpu_add_flag(&args, "--once", opts->once);
    gpu_add_flag(&args, "--json", opts->json);
    gpu_add_flag(&args, "--colour", opts->colour);
    gpu_add_flag(&args, "--", argc > 0);
    for (int i = 0; i < argc; i++)
        gpu_add(&args, argv[i]);
    r = cli_exec_program("aliquot-gpu", args.list, err);
    free(args.list);
    return r;
}

static int gpu_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)cli;
    return gpu_exec("run", data, argc, argv, err);
}

static int gpu_top(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    enum output_format format = cli->output.format;
    struct gpu_opts *opts = data;

    if (format != OUTPUT_TABLE && format != OUTPUT_WIDE && format != OUTPUT_JSON)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "slices are shown as a table or as json");
    opts->json = format == OUTPUT_JSON;
    opts->colour = cli->output.colour;
    return gpu_exec("top", opts, argc, argv, err);
}

const struct cli_verb verb_gpu_run = {
    .name = "gpu run",
    .args = "PROGRAM [ARG...]",
    .summary = "Run a program on a slice of this machine's GPU",
    .details =
        "Needs no cluster, only an NVIDIA driver. The program and all it starts see a GPU of\n"
        "their own with the memory and the part of the time that is given here.",
    .examples = "aliquot gpu run --memory 8g --compute 50 -- python3 train.py",
    .opts = run_opts,
    .opts_size = sizeof(struct gpu_opts),
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_NO_CONFIG | CLI_STOP_AT_FIRST | CLI_RUNS_PROGRAM,
    .run = gpu_run,
};

const struct cli_verb verb_gpu_top = {
    .name = "gpu top",
    .args = "",
    .summary = "Show the GPU slices of this machine",
    .details = "On a terminal it stays until q, Esc or Ctrl-C, else it shows once.",
    .examples = "aliquot gpu top\naliquot gpu top --once -o json",
    .opts = top_opts,
    .opts_size = sizeof(struct gpu_opts),
    .flags = CLI_NO_CONFIG,
    .run = gpu_top,
};
