/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - what aliquot-sim was asked to do */
#include "sim/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_service.h"
#include "sim/policy.h"

#define DRAW_MAX 1000000

const char sim_usage[] =
    "Usage: aliquot sim --nodes FILE --tasks FILE [OPTIONS]\n"
    "       aliquot sim --serving FILE [OPTIONS]\n"
    "\n"
    "Replay a trace through the scheduler: how many GPUs can be allocated before nothing\n"
    "more fits or, with --time, how long sessions wait. With --serving, replay requests to a\n"
    "model service through the autoscaler: how many wait for a replica, and what that costs.\n"
    "\n"
    "      --nodes FILE      CSV: sn, cpu_milli, memory_mib, gpu, model\n"
    "      --tasks FILE      CSV: name, cpu_milli, memory_mib, num_gpu, gpu_milli, and if known\n"
    "                        gpu_spec, creation_time, scheduled_time, deletion_time, user,\n"
    "                        priority\n"
    "      --policy P,...    who gets the session: fragmentation (the default), concentrated,\n"
    "                        dispersed, legacy, roundrobin, bin-packing, high-performance;\n"
    "                        random, bestfit, fgd\n"
    "      --arrival X       GPU demand that arrives, as a multiple of what there is; 1.3\n"
    "      --seeds N,...     draws of the task list; 42,43,44\n"
    "      --time            sessions come at their times, run and leave\n"
    "      --load X          with --time: GPUs asked for over GPUs there are in the busy time;\n"
    "                        as many nodes are kept as that takes; 1\n"
    "      --draw N          with --time: N tasks drawn from the list come at random times to all\n"
    "                        nodes, as fast as makes the load; once for each of the seeds\n"
    "      --longest SEC     with --draw: who lasts longer is cut\n"
    "      --unlimited PCT   with --time: percentage of sessions without a time limit:\n"
    "                        the scheduler does not know when they end; 0\n"
    "      --max-wait SEC    with +backfill: resources are kept for a session without a start\n"
    "                        time that has waited this long; 3600, 0 = never\n"
    "      --booking NxG@START+SEC\n"
    "                        with --time: G GPUs of each of N nodes are kept for others from\n"
    "                        second START on for SEC seconds, as by 'aliquot reservation'\n"
    "      --order O,...     with --time: fifo, lifo, drf, fair-share, each also +backfill,\n"
    "                        fifo+skip; all of them with --order all\n"
    "      --svg FILE        draw allocation against arrival, or the queue over time\n"
    "      --serving FILE    CSV or lines of JSON: time, prompt_tokens, output_tokens\n"
    "      --rules FILE      with --serving: JSON of the service's scaling; one rule that plans\n"
    "                        95 % of the slots\n"
    "      --slots N         with --serving: requests that a replica answers at a time; 8\n"
    "      --start SEC       with --serving: how long a replica starts; 10\n"
    "      --prompt-ms X     with --serving: time for a token of the prompt; 0.2\n"
    "      --output-ms X     with --serving: time for a token of the answer; 20\n"
    "      --replicas A-B    with --serving: at least A, at most B; 1-256\n"
    "                        --policy then is aliquot, hpa, knative; all\n"
    "      --json            one JSON object as the last line, and no table\n"
    "      --help, --version\n";

static int sim_options_parse_number(const char *option, const char *text, double min, double max,
                                    double *ret, struct aq_error *err)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= min && value <= max))
        return aq_fail_field(err, EINVAL, option, "%s must be a number from %g to %g, not '%.40s'",
                             option, min, max, text);
    *ret = value;
    return 0;
}

static int options_parse_booking(const char *text, struct replay_booking *ret, struct aq_error *err)
{
    long long nodes, gpus, starts, lasts;
    int end = 0;

    if (sscanf(text, "%7lldx%4lld@%12lld+%12lld%n", &nodes, &gpus, &starts, &lasts, &end) != 4
        || text[end] || nodes < 1 || gpus < 1 || starts < 0 || lasts < 1)
        return aq_fail_field(err, EINVAL, "--booking",
                             "--booking is NODESxGPUS@START+SECONDS, as 8x4@3600+10800, not "
                             "'%.40s'",
                             text);
    *ret = (struct replay_booking){ nodes, gpus, starts, starts + lasts };
    return 0;
}

static int options_parse_seeds(char *text, struct sim_options *ret, struct aq_error *err)
{
    char *rest = NULL;

    ret->seed_count = 0;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *end;
        unsigned long long seed = strtoull(word, &end, 10);

        if (*word == '-' || end == word || *end || ret->seed_count == SIM_SEEDS_MAX)
            return aq_fail_field(err, EINVAL, "--seeds",
                                 "--seeds is a list of at most %d whole "
                                 "numbers, as 42,43,44",
                                 SIM_SEEDS_MAX);
        ret->seeds[ret->seed_count++] = seed;
    }
    return ret->seed_count ? 0 : aq_fail_field(err, EINVAL, "--seeds", "--seeds is empty");
}

static int options_parse_policies(char *text, struct sim_options *ret, struct aq_error *err)
{
    char *rest = NULL;

    ret->policy_count = 0;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int r;

        if (ret->policy_count == SIM_POLICIES_MAX)
            return aq_fail_field(err, EINVAL, "--policy", "at most %d policies", SIM_POLICIES_MAX);
        if ((r = policy_find(word, &ret->policies[ret->policy_count++], err)) < 0)
            return r;
    }
    return ret->policy_count ? 0 : aq_fail_field(err, EINVAL, "--policy", "--policy is empty");
}

static int options_parse_serving_policies(char *text, struct sim_options *ret, struct aq_error *err)
{
    static char all[] = "aliquot,hpa,knative";
    char *rest = NULL;

    for (char *word = strtok_r(text ? text : all, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        int r;

        if (ret->serving_policy_count == SERVING_POLICIES_MAX)
            return aq_fail_field(err, EINVAL, "--policy", "at most %d policies",
                                 SERVING_POLICIES_MAX);
        r = serving_policy_find(word, &ret->serving_policies[ret->serving_policy_count++], err);
        if (r < 0)
            return r;
    }
    return ret->serving_policy_count ? 0
                                     : aq_fail_field(err, EINVAL, "--policy", "--policy is empty");
}

static int options_parse_replicas(const char *text, struct serving_model *ret, struct aq_error *err)
{
    int64_t min, max;
    int end = 0;

    if (sscanf(text, "%" SCNd64 "-%" SCNd64 "%n", &min, &max, &end) != 2 || text[end] || min < 0
        || max < 1 || min > max || max > MODEL_SERVICE_REPLICAS_MAX)
        return aq_fail_field(err, EINVAL, "--replicas",
                             "--replicas is LEAST-MOST, up to %d, as 0-32, not '%.40s'",
                             MODEL_SERVICE_REPLICAS_MAX, text);
    ret->replicas_min = min;
    ret->replicas_max = max;
    return 0;
}

static int options_parse_order(char *word, struct sim_order *ret, struct aq_error *err)
{
    char name[32];
    char *plus = strchr(word, '+');

    *ret = (struct sim_order){ .name = word };
    (void)snprintf(name, sizeof(name), "%.*s", plus ? (int)(plus - word) : (int)sizeof(name) - 1,
                   word);
    ret->sequencer = sched_find_sequencer(name);
    if (plus && strcmp(plus, "+backfill") == 0)
        ret->backfill = true;
    else if (plus && strcmp(word, "fifo+skip") == 0)
        ret->retries_to_skip = 3;
    else if (plus)
        ret->sequencer = NULL;
    return ret->sequencer ? 0
                          : aq_fail_field(err, EINVAL, "--order",
                                          "there is no order '%.40s'; "
                                          "known are fifo, lifo, drf, fair-share, each also with "
                                          "+backfill, and fifo+skip",
                                          word);
}

static int options_parse_orders(char *text, struct sim_options *ret, struct aq_error *err)
{
    static char all[] = "fifo,fifo+skip,lifo,drf,fair-share,fifo+backfill,drf+backfill,"
                        "fair-share+backfill";
    char *rest = NULL;

    ret->order_count = 0;
    for (char *word = strtok_r(strcmp(text, "all") == 0 ? all : text, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        int r;

        if (ret->order_count == SIM_ORDERS_MAX)
            return aq_fail_field(err, EINVAL, "--order", "at most %d orders", SIM_ORDERS_MAX);
        if ((r = options_parse_order(word, &ret->orders[ret->order_count++], err)) < 0)
            return r;
    }
    return ret->order_count ? 0 : aq_fail_field(err, EINVAL, "--order", "--order is empty");
}

static int options_take(int letter, char *value, struct sim_options *o, struct aq_error *err)
{
    double number = 0;
    int r;

    switch (letter) {
    case 'n':
        o->nodes = value;
        return 0;
    case 't':
        o->tasks = value;
        return 0;
    case 'g':
        o->svg = value;
        return 0;
    case 'p':
        o->policy_names = value;
        return 0;
    case 'S':
        o->serving = value;
        return 0;
    case 'R':
        o->rules = value;
        return 0;
    case 'N':
        return options_parse_replicas(value, &o->model, err);
    case 'k':
        r = sim_options_parse_number("--slots", value, 1, 100000, &number, err);
        o->model.slots = (int64_t)number;
        return r;
    case 'B':
        r = sim_options_parse_number("--start", value, 0, 86400, &number, err);
        o->model.start_usec = (int64_t)(number * 1e6);
        return r;
    case 'P':
        r = sim_options_parse_number("--prompt-ms", value, 0, 1e5, &number, err);
        o->model.prompt_usec = (int64_t)(number * 1e6);
        return r;
    case 'O':
        r = sim_options_parse_number("--output-ms", value, 0, 1e5, &number, err);
        o->model.output_usec = (int64_t)(number * 1e6);
        return r;
    case 'a':
        return sim_options_parse_number("--arrival", value, 0.01, 100, &o->arrival, err);
    case 'l':
        return sim_options_parse_number("--load", value, 0.01, 100, &o->load.load, err);
    case 'd':
        o->in_time = true;
        r = sim_options_parse_number("--draw", value, 1, DRAW_MAX, &number, err);
        o->load.draw = (uint32_t)number;
        return r;
    case 'L':
        r = sim_options_parse_number("--longest", value, 1, 1e9, &number, err);
        o->load.longest_sec = (int64_t)number;
        return r;
    case 'u':
        r = sim_options_parse_number("--unlimited", value, 0, 100, &number, err);
        o->unlimited_pct = (uint32_t)number;
        return r;
    case 'w':
        r = sim_options_parse_number("--max-wait", value, 0, 1e9, &number, err);
        o->max_wait_sec = (int64_t)number;
        return r;
    case 'b':
        return options_parse_booking(value, &o->booking, err);
    case 's':
        return options_parse_seeds(value, o, err);
    case 'o':
        o->in_time = true;
        return options_parse_orders(value, o, err);
    default:
        o->in_time = o->in_time || letter == 'T';
        o->json = o->json || letter == 'j';
        o->help = o->help || letter == 'h';
        o->version = o->version || letter == 'v';
        return 0;
    }
}

int sim_options_parse(int argc, char **argv, struct sim_options *ret, struct aq_error *err)
{
    static const struct option known[] = {
        { "nodes", required_argument, NULL, 'n' },
        { "tasks", required_argument, NULL, 't' },
        { "policy", required_argument, NULL, 'p' },
        { "arrival", required_argument, NULL, 'a' },
        { "seeds", required_argument, NULL, 's' },
        { "load", required_argument, NULL, 'l' },
        { "draw", required_argument, NULL, 'd' },
        { "longest", required_argument, NULL, 'L' },
        { "unlimited", required_argument, NULL, 'u' },
        { "max-wait", required_argument, NULL, 'w' },
        { "booking", required_argument, NULL, 'b' },
        { "order", required_argument, NULL, 'o' },
        { "svg", required_argument, NULL, 'g' },
        { "serving", required_argument, NULL, 'S' },
        { "rules", required_argument, NULL, 'R' },
        { "replicas", required_argument, NULL, 'N' },
        { "slots", required_argument, NULL, 'k' },
        { "start", required_argument, NULL, 'B' },
        { "prompt-ms", required_argument, NULL, 'P' },
        { "output-ms", required_argument, NULL, 'O' },
        { "time", no_argument, NULL, 'T' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
    };
    int letter, r;

    *ret = (struct sim_options){ .policies = { &sched_fragmentation },
                                 .policy_count = 1,
                                 .orders = { { "fifo", &sched_fifo, false, 0 } },
                                 .order_count = 1,
                                 .seeds = { 42, 43, 44 },
                                 .seed_count = 3,
                                 .arrival = 1.3,
                                 .load = { .load = 1 },
                                 .max_wait_sec = 3600,
                                 .model = { .slots = 8,
                                            .start_usec = 10 * INT64_C(1000000),
                                            .prompt_usec = 200000,
                                            .output_usec = 20000000,
                                            .replicas_min = 1,
                                            .replicas_max = MODEL_SERVICE_REPLICAS_MAX } };
    opterr = 0;
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (letter == '?')
            return aq_fail(err, EINVAL, "'%.60s' is not an option, or its value is missing",
                           argv[optind - 1]);
        if ((r = options_take(letter, optarg, ret, err)) < 0)
            return r;
    }
    if (ret->help || ret->version)
        return 0;
    if (optind < argc)
        return aq_fail(err, EINVAL, "'%.60s': there are no arguments beside options", argv[optind]);
    if (ret->serving && (ret->nodes || ret->tasks))
        return aq_fail_field(err, EINVAL, "--serving",
                             "--serving replays requests; --nodes and --tasks replay sessions");
    if (ret->serving)
        return options_parse_serving_policies(ret->policy_names, ret, err);
    if (ret->policy_names && (r = options_parse_policies(ret->policy_names, ret, err)) < 0)
        return r;
    if (!ret->nodes || !ret->tasks)
        return aq_fail_field(err, EINVAL, ret->nodes ? "--tasks" : "--nodes", "%s is missing",
                             ret->nodes ? "--tasks" : "--nodes");
    return 0;
}
