/* SPDX-License-Identifier: Apache-2.0 */
/* "sim": hands over to aliquot-sim or, with --play, to aliquot-play, so that this program stays small. */
#include <errno.h>

#include "cli/verbs.h"

struct sim_opts {
    const char *nodes, *tasks, *policy, *arrival, *seeds, *load, *draw, *longest, *order, *svg;
    const char *unlimited, *max_wait, *booking;
    const char *serving, *rules, *slots, *start, *prompt_ms, *output_ms, *replicas;
    const char *play, *agents, *gpus, *hours, *sessions, *faults, *until_failure;
    bool time, json, trace;
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
    { 0, "play", CLI_STR, offsetof(struct sim_opts, play), "SEED",
      "run a simulated cluster from this number, and check it" },
    { 0, "agents", CLI_STR, offsetof(struct sim_opts, agents), "N",
      "with --play: how many; default 20" },
    { 0, "gpus", CLI_STR, offsetof(struct sim_opts, gpus), "N",
      "with --play: of each agent; default 2" },
    { 0, "hours", CLI_STR, offsetof(struct sim_opts, hours), "X",
      "with --play: simulated hours under load; default 4" },
    { 0, "sessions", CLI_STR, offsetof(struct sim_opts, sessions), "X",
      "with --play: requested in an hour; default 30 an agent, at most 420" },
    { 0, "faults", CLI_STR, offsetof(struct sim_opts, faults), "F",
      "with --play: none, some (default), many, or crash,disk,..." },
    { 0, "until-failure", CLI_STR, offsetof(struct sim_opts, until_failure), "N",
      "with --play: N seeds at most, until one breaks an invariant" },
    { 0, "trace", CLI_FLAG, offsetof(struct sim_opts, trace), NULL,
      "with --play: write what happens to standard error" },
    { 0, "svg", CLI_STR, offsetof(struct sim_opts, svg), "FILE", "draw the figures" },
    { 0, "json", CLI_FLAG, offsetof(struct sim_opts, json), NULL,
      "one JSON object as the last line" },
    CLI_OPT_END,
};

struct sim_args {
    const char *argv[64];
    size_t count;
};

static void sim_add(struct sim_args *args, const char *option, const char *value)
{
    if (!value)
        return;
    args->argv[args->count++] = option;
    args->argv[args->count++] = value;
}

static void sim_add_replay(const struct sim_opts *o, struct sim_args *args)
{
    sim_add(args, "--nodes", o->nodes);
    sim_add(args, "--tasks", o->tasks);
    sim_add(args, "--policy", o->policy);
    sim_add(args, "--arrival", o->arrival);
    sim_add(args, "--seeds", o->seeds);
    sim_add(args, "--load", o->load);
    sim_add(args, "--draw", o->draw);
    sim_add(args, "--longest", o->longest);
    sim_add(args, "--order", o->order);
    sim_add(args, "--svg", o->svg);
    sim_add(args, "--unlimited", o->unlimited);
    sim_add(args, "--max-wait", o->max_wait);
    sim_add(args, "--booking", o->booking);
    sim_add(args, "--serving", o->serving);
    sim_add(args, "--rules", o->rules);
    sim_add(args, "--slots", o->slots);
    sim_add(args, "--start", o->start);
    sim_add(args, "--prompt-ms", o->prompt_ms);
    sim_add(args, "--output-ms", o->output_ms);
    sim_add(args, "--replicas", o->replicas);
    if (o->time)
        args->argv[args->count++] = "--time";
}

static void sim_add_play(const struct sim_opts *o, struct sim_args *args)
{
    sim_add(args, "--play", o->play);
    sim_add(args, "--agents", o->agents);
    sim_add(args, "--gpus", o->gpus);
    sim_add(args, "--hours", o->hours);
    sim_add(args, "--sessions", o->sessions);
    sim_add(args, "--faults", o->faults);
    sim_add(args, "--until-failure", o->until_failure);
    if (o->trace)
        args->argv[args->count++] = "--trace";
}

static int sim_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct sim_opts *o = data;
    struct sim_args replay = { { "aliquot-sim" }, 1 }, play = { { "aliquot-play" }, 1 };
    struct sim_args *args = o->play ? &play : &replay;
    const struct sim_args *other = o->play ? &replay : &play;

    (void)argc;
    (void)argv;
    sim_add_replay(o, &replay);
    sim_add_play(o, &play);
    if (other->count > 1)
        return o->play ? aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                      "%s replays a trace; --play simulates a cluster instead",
                                      other->argv[1])
                       : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s needs --play SEED",
                                      other->argv[1]);
    if (o->json || cli->globals.format - 1 == OUTPUT_JSON)
        args->argv[args->count++] = "--json";
    return cli_exec_program(args->argv[0], (char *const *)(uintptr_t)args->argv, err);
}

const struct cli_verb verb_sim = {
    .name = "sim",
    .args = "",
    .summary = "Replay a trace through the scheduler or the autoscaler, or simulate a cluster",
    .details =
        "Says how many GPUs of the nodes can be allocated before nothing more fits when the\n"
        "tasks arrive in random order or, with --time, how long sessions wait. Several\n"
        "policies are shown side by side. With --serving, requests to a model service are\n"
        "replayed through the autoscaler, beside those of Kubernetes (hpa) and Knative: how\n"
        "many wait for a replica, and what that costs. With --play, a real manager and real\n"
        "agents run over simulated machines under load and faults that the number decides, and\n"
        "what users were promised is checked. Nothing of a running cluster is asked or changed.",
    .examples =
        "aliquot sim --serving requests.csv --rules scaling.json --policy aliquot,hpa\n"
        "aliquot sim --nodes nodes.csv --tasks tasks.csv\n"
        "aliquot sim --nodes nodes.csv --tasks tasks.csv --policy fgd,fragmentation\n"
        "aliquot sim --nodes nodes.csv --tasks tasks.csv --time --order all --svg wait.svg\n"
        "aliquot sim --play 1 --faults many --until-failure 100",
    .opts = sim_opts,
    .opts_size = sizeof(struct sim_opts),
    .flags = CLI_NO_CONFIG,
    .run = sim_run,
};
