/* SPDX-License-Identifier: Apache-2.0 */
/* "sim": hands over to aliquot-sim, so that this program stays small. */
#include "cli/verbs.h"

struct sim_opts {
    const char *nodes, *tasks, *policy, *arrival, *seeds, *load, *draw, *longest, *order, *svg;
    const char *unlimited, *max_wait, *booking;
    const char *serving, *rules, *slots, *start, *prompt_ms, *output_ms, *replicas;
    bool time, json;
};

static const struct cli_opt sim_opts[] = {
    { 0, "nodes", CLI_STR, offsetof(struct sim_opts, nodes), "FILE",
      "CSV: sn, cpu_milli, memory_mib, gpu, model" },
    { 0, "tasks", CLI_STR, offsetof(struct sim_opts, tasks), "FILE",
      "CSV: name, cpu_milli, memory_mib, num_gpu, gpu_milli, ..." },
    { 0, "policy", CLI_STR, offsetof(struct sim_opts, policy), "P,...",
      "ways to choose an agent; default fragmentation" },
    { 0, "arrival", CLI_STR, offsetof(struct sim_opts, arrival), "X",
      "GPU demand over what there is; default 1.3" },
    { 0, "seeds", CLI_STR, offsetof(struct sim_opts, seeds), "N,...",
      "draws of the task list; default 42,43,44" },
    { 0, "time", CLI_FLAG, offsetof(struct sim_opts, time), NULL,
      "sessions come at their times, run and leave" },
    { 0, "load", CLI_STR, offsetof(struct sim_opts, load), "X",
      "with --time: GPUs asked for over GPUs there are; default 1" },
    { 0, "draw", CLI_STR, offsetof(struct sim_opts, draw), "N",
      "with --time: so many tasks of the list, at random times" },
    { 0, "longest", CLI_STR, offsetof(struct sim_opts, longest), "SEC",
      "with --draw: who lasts longer is cut" },
    { 0, "unlimited", CLI_STR, offsetof(struct sim_opts, unlimited), "PCT",
      "with --time: percentage of sessions without a time limit; default 0" },
    { 0, "max-wait", CLI_STR, offsetof(struct sim_opts, max_wait), "SEC",
      "with +backfill: after it resources are kept; default 3600, 0 = never" },
    { 0, "booking", CLI_STR, offsetof(struct sim_opts, booking), "NxG@START+SEC",
      "with --time: G GPUs of each of N nodes are kept for others" },
    { 0, "order", CLI_STR, offsetof(struct sim_opts, order), "O,...",
      "with --time: fifo, lifo, drf, fair-share, each also +backfill; all" },
    { 0, "serving", CLI_STR, offsetof(struct sim_opts, serving), "FILE",
      "CSV or lines of JSON: time, prompt_tokens, output_tokens" },
    { 0, "rules", CLI_STR, offsetof(struct sim_opts, rules), "FILE",
      "with --serving: JSON of the service's scaling" },
    { 0, "slots", CLI_STR, offsetof(struct sim_opts, slots), "N",
      "with --serving: requests a replica answers at a time; default 8" },
    { 0, "start", CLI_STR, offsetof(struct sim_opts, start), "SEC",
      "with --serving: how long a replica starts; default 10" },
    { 0, "prompt-ms", CLI_STR, offsetof(struct sim_opts, prompt_ms), "X",
      "with --serving: time for a token of the prompt; default 0.2" },
    { 0, "output-ms", CLI_STR, offsetof(struct sim_opts, output_ms), "X",
      "with --serving: time for a token of the answer; default 20" },
    { 0, "replicas", CLI_STR, offsetof(struct sim_opts, replicas), "A-B",
      "with --serving: least and most; default 1-256" },
    { 0, "svg", CLI_STR, offsetof(struct sim_opts, svg), "FILE", "draw the figures" },
    { 0, "json", CLI_FLAG, offsetof(struct sim_opts, json), NULL,
      "one JSON object as the last line" },
    CLI_OPT_END,
};

static int sim_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct sim_opts *o = data;
    const struct {
        const char *option, *value;
    } given[] = {
        { "--nodes", o->nodes },         { "--tasks", o->tasks },
        { "--policy", o->policy },       { "--arrival", o->arrival },
        { "--seeds", o->seeds },         { "--load", o->load },
        { "--draw", o->draw },           { "--longest", o->longest },
        { "--order", o->order },         { "--svg", o->svg },
        { "--unlimited", o->unlimited }, { "--max-wait", o->max_wait },
        { "--booking", o->booking },     { "--serving", o->serving },
        { "--rules", o->rules },         { "--slots", o->slots },
        { "--start", o->start },         { "--prompt-ms", o->prompt_ms },
        { "--output-ms", o->output_ms }, { "--replicas", o->replicas },
    };
    const char *args[2 * AQ_COUNT(given) + 4] = { "aliquot-sim" };
    size_t count = 1;

    (void)argc;
    (void)argv;
    for (size_t i = 0; i < AQ_COUNT(given); i++)
        if (given[i].value) {
            args[count++] = given[i].option;
            args[count++] = given[i].value;
        }
    if (o->time)
        args[count++] = "--time";
    if (o->json || cli->globals.format - 1 == OUTPUT_JSON)
        args[count++] = "--json";
    return cli_exec_program("aliquot-sim", (char *const *)(uintptr_t)args, err);
}

const struct cli_verb verb_sim = {
    .name = "sim",
    .args = "",
    .summary = "Replay a trace through the scheduler or the autoscaler",
    .details =
        "Says how many GPUs of the nodes can be allocated before nothing more fits when the\n"
        "tasks arrive in random order or, with --time, how long sessions wait. Several\n"
        "policies are shown side by side. With --serving, requests to a model service are\n"
        "replayed through the autoscaler, beside those of Kubernetes (hpa) and Knative: how\n"
        "many wait for a replica, and what that costs. Nothing of a running cluster is asked\n"
        "or changed.",
    .examples = "aliquot sim --serving requests.csv --rules scaling.json --policy aliquot,hpa\n"
                "aliquot sim --nodes nodes.csv --tasks tasks.csv\n"
                "aliquot sim --nodes nodes.csv --tasks tasks.csv --policy fgd,fragmentation\n"
                "aliquot sim --nodes nodes.csv --tasks tasks.csv --time --order all --svg wait.svg",
    .opts = sim_opts,
    .opts_size = sizeof(struct sim_opts),
    .flags = CLI_NO_CONFIG,
    .run = sim_run,
};
