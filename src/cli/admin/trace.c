/* SPDX-License-Identifier: Apache-2.0 */
/* "admin trace": the cluster's own records in the form that 'aliquot sim' reads. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/csv.h"
#include "cli/client.h"
#include "cli/verbs.h"

struct trace_opts {
    const char *filter;
};

static const struct cli_opt trace_opts[] = {
    { 0, "filter", CLI_STR, offsetof(struct trace_opts, filter), "EXPR",
      "only rows that match, as in 'session ls' and 'agent ls'" },
    CLI_OPT_END,
};

/* ---- amounts ---- */

struct amounts {
    double cpu, mem_bytes, gpus;
};

/* Everything beside CPU and memory counts as GPUs. */
static void trace_add_amounts(const json_t *slots, struct amounts *sum)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)slots, name, value) {
        const char *text = json_string_value(value);
        double amount = text ? strtod(text, NULL) : json_number_value(value);

        if (!(amount > 0) || isinf(amount))
            continue;
        if (strcmp(name, "cpu") == 0)
            sum->cpu += amount;
        else if (strcmp(name, "mem") == 0)
            sum->mem_bytes += amount;
        else
            sum->gpus += amount;
    }
}

static void trace_write_text(struct strbuf *out, const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    strbuf_addc(out, ',');
    if (text)
        csv_write_field(text, strlen(text), out);
}

/* Without GPU: 0 and 0; a part of one, in thousandths, at least one; or so many whole ones. */
static void trace_write_amounts(struct strbuf *out, const struct amounts *a)
{
    double whole = ceil(a->gpus);
    int64_t part = whole > 1 ? 1000 : (int64_t)(a->gpus * 1000 + 0.5);

    strbuf_addf(out, ",%.0f,%.0f,%.0f,%.0f", ceil(a->cpu * 1000), ceil(a->mem_bytes / 1048576),
                whole, a->gpus <= 0 ? 0.0 : (double)AQ_MAX(part, 1));
}

/* ---- sessions ---- */

/* Seconds, -1 = none. */
static int64_t trace_time_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    int64_t usec;

    return text && clock_parse_date(text, &usec) == 0 ? usec / USEC_PER_SEC : -1;
}

static int64_t trace_first_time(const json_t *rows)
{
    int64_t first = INT64_MAX;
    json_t *row;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)rows, i, row) {
        int64_t at = trace_time_of(row, "created_at");

        first = at >= 0 && at < first ? at : first;
    }
    return first;
}

static void trace_write_time(struct strbuf *out, int64_t at, int64_t first)
{
    strbuf_addc(out, ',');
    if (at >= 0)
        strbuf_addf(out, "%" PRId64, at - first);
}

/* A session, or one kernel of several that may be on several agents. */
static void trace_write_task(struct strbuf *out, const json_t *session, const json_t *kernel,
                             const struct amounts *amounts, int64_t first)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
    int64_t scheduled = trace_time_of(session, "scheduled_at");

    strbuf_addf(&name, "%s%s%s", json_string_value(json_object_get(session, "name")),
                kernel ? "/" : "",
                kernel ? json_string_value(json_object_get(kernel, "hostname")) : "");
    csv_write_field(name.data, name.len, out);
    trace_write_amounts(out, amounts);
    trace_write_time(out, trace_time_of(session, "created_at"), first);
    trace_write_time(out, scheduled, first);
    /* who never started has not run until it was given up */
    trace_write_time(out, scheduled < 0 ? -1 : trace_time_of(session, "terminated_at"), first);
    trace_write_text(out, session, "user");
    trace_write_text(out, session, "group");
    trace_write_text(out, session, "domain");
    strbuf_addf(out, ",%" JSON_INTEGER_FORMAT "\n",
                json_integer_value(json_object_get(session, "priority")));
}

static void trace_write_session(struct strbuf *out, const json_t *session, int64_t first)
{
    const char *mode = json_string_value(json_object_get(session, "cluster_mode"));
    const json_t *kernels = json_object_get(session, "kernels");
    struct amounts amounts = { 0 };

    if (!mode || strcmp(mode, "multi-node") != 0 || json_array_size(kernels) < 2) {
        trace_add_amounts(json_object_get(session, "requested_slots"), &amounts);
        trace_write_task(out, session, NULL, &amounts, first);
        return;
    }
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *kernel = json_array_get(kernels, i);

        amounts = (struct amounts){ 0 };
        trace_add_amounts(json_object_get(kernel, "requested_slots"), &amounts);
        trace_write_task(out, session, kernel, &amounts, first);
    }
}

static void trace_write_sessions(const json_t *rows, struct strbuf *out)
{
    int64_t first = trace_first_time(rows);

    strbuf_adds(out, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,scheduled_time,"
                     "deletion_time,user,project,domain,priority\n");
    for (size_t i = json_array_size(rows); i-- > 0;) /* the newest come first */
        trace_write_session(out, json_array_get(rows, i), first);
}

/* ---- agents ---- */

/* The first of its devices that is a GPU; NULL = none. */
static const json_t *trace_find_gpu(const json_t *agent)
{
    json_t *device;
    size_t i;

    json_array_foreach(json_object_get(agent, "devices"), i, device) {
        const char *slot = json_string_value(json_object_get(device, "slot"));

        if (slot && strcmp(slot, "cpu") != 0 && strcmp(slot, "mem") != 0)
            return device;
    }
    return NULL;
}

static void trace_write_agents(const json_t *rows, struct strbuf *out)
{
    json_t *row;
    size_t i;

    strbuf_adds(out, "sn,cpu_milli,memory_mib,gpu,model\n");
    json_array_foreach((json_t *)(uintptr_t)rows, i, row) {
        const char *id = json_string_value(json_object_get(row, "id"));
        struct amounts amounts = { 0 };

        trace_add_amounts(json_object_get(row, "available_slots"), &amounts);
        if (id)
            csv_write_field(id, strlen(id), out);
        strbuf_addf(out, ",%.0f,%.0f,%.0f", floor(amounts.cpu * 1000),
                    floor(amounts.mem_bytes / 1048576), floor(amounts.gpus));
        trace_write_text(out, trace_find_gpu(row), "model");
        strbuf_addc(out, '\n');
    }
}

/* ---- the verb ---- */

static int trace_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct trace_opts *opts = data;
    bool of_agents = strcmp(argv[0], "agents") == 0;
    json_t *rows = NULL;
    size_t total = 0;
    int r;

    (void)argc;
    if (!of_agents && strcmp(argv[0], "sessions") != 0)
        return aq_fail_kind(err, EINVAL, "usage", "'%.60s' is neither sessions nor agents",
                            argv[0]);
    strbuf_adds(&path, of_agents ? "/aliquot/v1/agents" : "/aliquot/v1/sessions");
    cli_path_query(&path, "all", of_agents ? NULL : "true");
    cli_path_query(&path, "filter", opts->filter);
    r = cli_call_list(cli, path.data, CLI_PAGE, 0, &rows, &total, err);
    if (r < 0)
        return r;
    if (of_agents)
        trace_write_agents(rows, &out);
    else
        trace_write_sessions(rows, &out);
    json_decref(rows);
    return cli_print(&out, err);
}

const struct cli_verb verb_admin_trace = {
    .name = "admin trace",
    .args = "sessions | agents",
    .summary = "Write what ran here as a trace for 'aliquot sim'",
    .details = "CSV with the columns that 'aliquot sim' reads; times are seconds since the first\n"
               "session came. Everything beside CPU and memory counts as GPUs. A session over\n"
               "several agents is a row per kernel; who has not ended yet has no deletion_time.",
    .examples = "aliquot admin trace agents > nodes.csv\n"
                "aliquot admin trace sessions > tasks.csv\n"
                "aliquot sim --nodes nodes.csv --tasks tasks.csv --time --order all",
    .opts = trace_opts,
    .opts_size = sizeof(struct trace_opts),
    .min_args = 1,
    .max_args = 1,
    .run = trace_run,
};
