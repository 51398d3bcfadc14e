/* SPDX-License-Identifier: Apache-2.0 */
/* Single options of sbatch(1), as words of "submit" or as amounts. */
#include "cli/submit/slurm_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/submit/job_name.h"
#include "cli/submit/slurm_begin.h"
#include "cli/submit/slurm_value.h"
#include "model/rerun.h"

void slurm_set_line(struct slurm_reader *rd, unsigned line)
{
    rd->line = line;
    rd->where[0] = '\0';
    if (line)
        (void)snprintf(rd->where, sizeof(rd->where), "line %u: ", line);
}

/* Who is to blame if the manager refuses it. */
static void slurm_blame(struct slurm_reader *rd, const char *option, const char *value)
{
    struct slurm_options *out = rd->out;

    vec_grow(&out->origins, &out->origin_cap, out->origin_count + 1, sizeof(*out->origins));
    out->origins[out->origin_count++] = (struct slurm_origin){
        .option = option,
        .value = value ? arena_strdup(&out->arena, value) : NULL,
        .name = rd->option->name,
        .line = rd->line,
    };
}

static int slurm_add(struct slurm_reader *rd, const char *option, const char *value,
                     struct aq_error *err)
{
    struct slurm_options *out = rd->out;

    if (value && !utf8_is_valid(value, strlen(value)))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%sa value is not UTF-8; convert it with iconv", rd->where);
    if (rd->option)
        slurm_blame(rd, option, value);
    cli_list_add(&out->words, arena_strdup(&out->arena, option));
    if (value)
        cli_list_add(&out->words, arena_strdup(&out->arena, value));
    return 0;
}

int slurm_add_pair(struct slurm_reader *rd, const char *option, struct aq_error *err,
                   const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf value = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&value, fmt, args);
    va_end(args);
    return slurm_add(rd, option, value.data, err);
}

void slurm_note(struct slurm_reader *rd, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf note = STRBUF_INIT;
    va_list args;

    strbuf_adds(&note, rd->where);
    va_start(args, fmt);
    strbuf_vaddf(&note, fmt, args);
    va_end(args);
    cli_list_add(&rd->out->notes, arena_strdup(&rd->out->arena, note.data));
}

static int slurm_refuse(const struct slurm_reader *rd, const struct slurm_option *option,
                        const char *value, const char *wanted, struct aq_error *err)
{
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s--%s takes %s, not '%.60s'", rd->where,
                        option->name, wanted, value);
}

/* ---- single options ---- */

/* A name or a comment only decorates: it never refuses a job. */
static int slurm_read_name(struct slurm_reader *rd, const char *value, struct aq_error *err)
{
    char name[SESSION_NAME_MAX + 1];

    job_name_clean(value, SESSION_NAME_MAX - (rd->is_several ? JOB_INDEX_MAX : 0), name);
    rd->out->job_name = arena_strdup(&rd->out->arena, value);
    rd->out->name_line = rd->line;
    return name[0] ? slurm_add(rd, "--name", name, err) : 0;
}

static int slurm_read_comment(struct slurm_reader *rd, const char *value, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf tag = STRBUF_INIT;
    bool is_changed = job_tag_clean(value, &tag);
    int r = slurm_add(rd, "--tag", tag.data, err);

    if (r == 0 && is_changed)
        slurm_note(rd, "--comment: the tag is '%s'; it has at most %d bytes of UTF-8", tag.data,
                   JOB_TAG_MAX);
    return r;
}

static int slurm_read_count(struct slurm_reader *rd, const struct slurm_option *option,
                            const char *value, struct aq_error *err)
{
    int64_t *amount = (void *)((char *)&rd->amounts + option->offset);

    if (slurm_count_parse(value, amount) < 0)
        return slurm_refuse(rd, option, value, "one number from 1 to 1000000", err);
    if ((amount == &rd->amounts.tasks || amount == &rd->amounts.tasks_per_node) && *amount > 1
        && !rd->out->is_sbatch)
        slurm_note(rd,
                   "--%s: the session has the cores of all tasks, but no srun; let the "
                   "script start them, or use aliquot submit --count",
                   option->name);
    return 0;
}

static int slurm_read_nodes(struct slurm_reader *rd, const struct slurm_option *option,
                            const char *value, struct aq_error *err)
{
    int64_t *nodes = &rd->amounts.nodes;
    bool is_range = false;

    if (slurm_nodes_parse(value, nodes, &is_range) < 0)
        return slurm_refuse(rd, option, value, "a number of nodes such as 4 or 2-4", err);
    if (is_range)
        slurm_note(rd, "--nodes=%.60s: the session has %" PRId64 ", the least", value, *nodes);
    if (*nodes > 1)
        slurm_note(rd, "--nodes: each kernel runs the script; BACKENDAI_CLUSTER_ROLE is main "
                       "in the first, BACKENDAI_CLUSTER_HOSTS has all");
    return 0;
}

static int slurm_read_size(struct slurm_reader *rd, const struct slurm_option *option,
                           const char *value, struct aq_error *err)
{
    int64_t *amount = (void *)((char *)&rd->amounts + option->offset);

    if (slurm_size_parse(value, amount) < 0)
        return slurm_refuse(rd, option, value, "a size such as 4G or 500M", err);
    if (*amount == 0)
        slurm_note(rd, "--%s=0: no session gets all of a node; name a size", option->name);
    return 0;
}

static int slurm_read_gpus(struct slurm_reader *rd, const struct slurm_option *option,
                           const char *value, struct aq_error *err)
{
    int64_t *amount = (void *)((char *)&rd->amounts + option->offset);
    bool is_gres = option->meaning == SLURM_GRES, is_typed = false;

    if (slurm_gpus_parse(value, is_gres, amount, &is_typed) < 0)
        return slurm_refuse(rd, option, value,
                            is_gres ? "GPUs such as gpu:2 (for parts of one, #ALIQUOT -r "
                                      "cuda.shares=0.25; for others, -r SLOT=AMOUNT)"
                                    : "a number of GPUs such as 2 or a100:2",
                            err);
    if (is_typed)
        slurm_note(rd,
                   "--%s=%.60s: types of GPUs are not asked for; --partition chooses "
                   "agents, aliquot agent ls shows their GPUs",
                   option->name, value);
    return 0;
}

/* "cpu:4,gres/gpu:1", with = as well */
static int slurm_read_tres(struct slurm_reader *rd, const struct slurm_option *option,
                           const char *value, struct aq_error *err)
{
    rd->amounts.gpus_per_task = 0;
    for (const char *at = value;; at++) {
        size_t len = strcspn(at, ",");
        char part[80] = "";
        int64_t gpus = 0;
        bool is_typed = false, is_cpu;

        memcpy(part, at, AQ_MIN(len, sizeof(part) - 1));
        is_cpu = strncmp(part, "cpu", 3) == 0 && part[3] && strchr(":=", part[3]);
        if ((is_cpu ? slurm_count_parse(part + 4, &rd->amounts.cpus_per_task)
                    : slurm_gpus_parse(part, true, &gpus, &is_typed))
            < 0)
            return slurm_refuse(rd, option, value, "cpu:N and gres/gpu:N", err);
        rd->amounts.gpus_per_task += gpus;
        at += len;
        if (!*at)
            return 0;
    }
}

static int slurm_read_time(struct slurm_reader *rd, const struct slurm_option *option,
                           const char *value, struct aq_error *err)
{
    int64_t sec;

    if (slurm_time_parse(value, &sec) < 0)
        return slurm_refuse(rd, option, value, "minutes, H:M:S, D-H or D-H:M:S", err);
    return sec > 0 ? slurm_add_pair(rd, "--timeout", err, "%" PRId64 "s", sec) : 0;
}

static int slurm_read_begin(struct slurm_reader *rd, const struct slurm_option *option,
                            const char *value, struct aq_error *err)
{
    char start[SLURM_BEGIN_MAX];

    if (slurm_begin_parse(value, clock_realtime_usec(), start) < 0)
        return slurm_refuse(rd, option, value, "now+1hour, 16:00, tomorrow or 2026-12-24T08:00:00",
                            err);
    return start[0] ? slurm_add(rd, "--starts-at", start, err) : 0;
}

static int slurm_read_partition(struct slurm_reader *rd, const char *value, struct aq_error *err)
{
    size_t len = strcspn(value, ",");
    int r = slurm_add_pair(rd, "--resource-group", err, "%.*s", (int)AQ_MIN(len, (size_t)256),
                           value);

    if (r == 0 && value[len])
        slurm_note(rd, "--partition: of several only the first, %.*s, is asked for",
                   (int)AQ_MIN(len, (size_t)60), value);
    return r;
}

/* Types of --dependency, and the conditions of --after that mean the same. */
static const char *slurm_find_condition(const char *type, size_t len)
{
    static const struct {
        const char *type, *condition;
    } types[] = { { "afterok", "" },
                  { "afternotok", "failure:" },
                  { "afterany", "end:" },
                  { "aftercorr", "corresponding:" },
                  { "after", "start:" } };

    for (size_t i = 0; i < AQ_COUNT(types); i++)
        if (strlen(types[i].type) == len && strncasecmp(type, types[i].type, len) == 0)
            return types[i].condition;
    return NULL;
}

/* Is it waited for already? */
static bool slurm_is_after(const struct slurm_options *out, const char *after)
{
    for (size_t i = 0; i < out->origin_count; i++)
        if (strcmp(out->origins[i].option, "--after") == 0
            && strcmp(out->origins[i].value, after) == 0)
            return true;
    return false;
}

/* "TYPE:ID[:ID...][,TYPE:ID...]"; with '?' any of them would do, and "after:ID+5" waits longer. */
static int slurm_read_after(struct slurm_reader *rd, const struct slurm_option *option,
                            const char *value, struct aq_error *err)
{
    const char *usage = "afterok, afternotok, afterany, aftercorr or after with sessions, such as "
                        "afterok:ID:ID,after:ID";
    const char *at = value;
    int r = 0;

    while (r == 0 && *at) {
        size_t len = strcspn(at, ":,");
        const char *condition = slurm_find_condition(at, len);

        at += len;
        if (!condition || *at != ':' || strpbrk(value, "?+"))
            return slurm_refuse(rd, option, value, usage, err);
        while (r == 0 && *at == ':') {
            char after[300];

            len = strcspn(++at, ":,");
            if (len == 0)
                return slurm_refuse(rd, option, value, usage, err);
            (void)snprintf(after, sizeof(after), "%s%.*s", condition, (int)AQ_MIN(len, (size_t)256),
                           at);
            if (!slurm_is_after(rd->out, after))
                r = slurm_add_pair(rd, "--after", err, "%s", after);
            at += len;
        }
        at += *at == ',';
    }
    return r;
}

/* One part of --export without its quotation marks; returns behind it. */
static const char *slurm_take_variable(const char *at, struct strbuf *out)
{
    char quote = '\0';

    for (; *at && (quote || *at != ','); at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? '\0' : *at;
        else
            strbuf_addc(out, *at);
    }
    return at + (*at == ',');
}

/* "ALL", "NONE", "NAME", "NAME=VALUE", or several. What is not set here stays unset there. */
static int slurm_read_export(struct slurm_reader *rd, const struct slurm_option *option,
                             const char *value, struct aq_error *err)
{
    int r = 0;

    rd->out->exports_some = true;
    for (const char *at = value; r == 0 && *at;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf one = STRBUF_INIT;
        const char *here;

        at = slurm_take_variable(at, &one);
        here = getenv(one.data);
        if (here && !utf8_is_valid(here, strlen(here)))
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "%s--export: the value of %.60s is not UTF-8", rd->where, one.data);
        if (one.data[0] == '=')
            return slurm_refuse(rd, option, value, "NAME or NAME=VALUE", err);
        if (strcasecmp(one.data, "ALL") == 0 && rd->out->is_sbatch)
            rd->out->exports_some = false;
        else if (strcasecmp(one.data, "ALL") == 0)
            slurm_note(rd, "--export=ALL: the environment is the image's; name variables");
        else if (one.data[0] && strcasecmp(one.data, "NONE") != 0
                 && strcasecmp(one.data, "NIL") != 0 && (strchr(one.data, '=') || here))
            r = slurm_add(rd, "--env", one.data, err);
    }
    return r;
}

static int slurm_read_array(struct slurm_reader *rd, const char *value, struct aq_error *err)
{
    if (rd->is_several) {
        slurm_note(rd, "--array=%.60s: it is --count that counts", value);
        return 0;
    }
    return slurm_add(rd, "--array", value, err);
}

/* Whom to blame for an amount, which becomes one with others: NULL = it is none. */
static const char *slurm_amount_option(const struct slurm_option *option)
{
    switch (option->meaning) {
    case SLURM_NODES:
        return "--cluster";
    case SLURM_COUNT:
    case SLURM_TRES:
        return "-r cpu";
    case SLURM_SIZE:
        return "-r mem";
    case SLURM_GPUS:
    case SLURM_GRES:
        return SLURM_ORIGIN_GPUS;
    default:
        return NULL;
    }
}

static int slurm_read_place(struct slurm_reader *rd, const struct slurm_option *option,
                            const char *value)
{
    const char **text = (void *)((char *)&rd->out->place + option->offset);

    *text = arena_strdup(&rd->out->arena, value);
    return 0;
}

static int slurm_fail_refused(const struct slurm_reader *rd, const struct slurm_option *option,
                              struct aq_error *err)
{
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s--%s: %s", rd->where, option->name,
                        option->text);
}

int slurm_read_option(struct slurm_reader *rd, const struct slurm_option *option, const char *value,
                      struct aq_error *err)
{
    const char *amount = slurm_amount_option(option);
    int r;

    rd->option = option;
    if (amount)
        slurm_blame(rd, amount, value);
    switch (option->meaning) {
    case SLURM_SAME:
        return slurm_add(rd, option->text, value, err);
    case SLURM_FLAG:
        return slurm_add(rd, option->text, NULL, err);
    case SLURM_NAME:
        return slurm_read_name(rd, value, err);
    case SLURM_COMMENT:
        return slurm_read_comment(rd, value, err);
    case SLURM_COUNT:
        return slurm_read_count(rd, option, value, err);
    case SLURM_NODES:
        return slurm_read_nodes(rd, option, value, err);
    case SLURM_TRES:
        return slurm_read_tres(rd, option, value, err);
    case SLURM_SIZE:
        return slurm_read_size(rd, option, value, err);
    case SLURM_GPUS:
    case SLURM_GRES:
        return slurm_read_gpus(rd, option, value, err);
    case SLURM_TIME:
        return slurm_read_time(rd, option, value, err);
    case SLURM_BEGIN:
        return slurm_read_begin(rd, option, value, err);
    case SLURM_PARTITION:
        return slurm_read_partition(rd, value, err);
    case SLURM_AFTER:
        return slurm_read_after(rd, option, value, err);
    case SLURM_EXPORT:
        return slurm_read_export(rd, option, value, err);
    case SLURM_ARRAY:
        return slurm_read_array(rd, value, err);
    case SLURM_REQUEUE:
        r = slurm_add_pair(rd, "--retry", err, "%d", RERUN_RETRIES_MAX);
        return r < 0 ? r : slurm_add(rd, "--retry-on", option->text, err);
    case SLURM_NO_REQUEUE:
        return slurm_add(rd, "--on-node-loss", option->text, err);
    case SLURM_PLACE:
        if (rd->out->is_sbatch)
            return slurm_read_place(rd, option, value);
        slurm_note(rd, "--%s: %s", option->name, option->text);
        return 0;
    case SLURM_WRAP:
        if (rd->out->is_sbatch)
            return slurm_read_place(rd, option, value);
        return slurm_fail_refused(rd, option, err);
    case SLURM_NOTE:
        slurm_note(rd, "--%s: %s", option->name, option->text);
        return 0;
    case SLURM_REFUSE:
        return slurm_fail_refused(rd, option, err);
    case SLURM_NOTHING:
        return 0;
    }
    return 0;
}
