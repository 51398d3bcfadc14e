/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sbatch(1) in ours. */
#include "cli/submit/slurm_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/suggest.h"
#include "cli/submit/slurm_reader.h"

/* ---- lines ---- */

/* No option, or several, of a line. */
static int slurm_unknown(const struct slurm_reader *rd, const char *word, size_t len,
                         const struct strbuf *several, struct aq_error *err)
{
    struct suggest suggest = suggest_for(len ? word + 2 : word, len);

    if (strcmp(word, ":") == 0 || strcmp(word, "hetjob") == 0 || strcmp(word, "packjob") == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%s'%s': the kernels of a session are alike; submit each part "
                            "of a heterogeneous job as a script of its own",
                            rd->where, word);
    if (several && several->len)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s%.60s may be %s", rd->where, word,
                            several->data);
    for (const struct slurm_option *o = slurm_table; several && o->name; o++)
        suggest_offer(&suggest, o->name);
    if (!several || !suggest.best)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%ssbatch has no option '%.60s'",
                            rd->where, word);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "%ssbatch has no option '%.60s'; did you mean '--%s'?", rd->where, word,
                        suggest.best);
}

/* What only decorates, or does nothing. */
static bool slurm_may_be_empty(const struct slurm_option *option, bool is_sbatch)
{
    return option->meaning == SLURM_NAME || option->meaning == SLURM_COMMENT
           || option->meaning == SLURM_NOTE || option->meaning == SLURM_NOTHING
           || (option->meaning == SLURM_PLACE && !is_sbatch);
}

/* The option with the value behind it (NULL = none) or in the word argv[*at], which it takes. */
static int slurm_read_valued(struct slurm_reader *rd, const struct slurm_option *option,
                             const char *value, const struct batch_line *line, int *at,
                             struct aq_error *err)
{
    if (option->value == SLURM_NONE && value)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s--%s takes no value", rd->where,
                            option->name);
    if (option->value == SLURM_ONE && !value && *at < line->argc)
        value = line->argv[(*at)++];
    if (option->value == SLURM_ONE
        && (!value || (!value[0] && !slurm_may_be_empty(option, rd->out->is_sbatch))))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s--%s needs a value", rd->where,
                            option->name);
    return slurm_read_option(rd, option, value, err);
}

/* "-vc4", as getopt(3) has it. */
static int slurm_read_letters(struct slurm_reader *rd, const struct batch_line *line, int *at,
                              struct aq_error *err)
{
    const char *word = line->argv[(*at)++];
    int r = 0;

    for (const char *letter = word + 1; r == 0 && *letter; letter++) {
        const struct slurm_option *option = slurm_find_letter(*letter);
        bool takes_rest = option && option->value != SLURM_NONE && letter[1];

        if (!option)
            return slurm_unknown(rd, word, 0, NULL, err);
        r = slurm_read_valued(rd, option, takes_rest ? letter + 1 : NULL, line, at, err);
        if (takes_rest)
            break;
    }
    return r;
}

/* The word at argv[*at] and, if it is there, its value in the next one. */
static int slurm_read_word(struct slurm_reader *rd, const struct batch_line *line, int *at,
                           struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf several = STRBUF_INIT;
    const char *word = line->argv[*at];
    const struct slurm_option *option;
    size_t len;

    if (word[0] != '-' || !word[1])
        return slurm_unknown(rd, word, 0, NULL, err);
    if (word[1] != '-')
        return slurm_read_letters(rd, line, at, err);
    ++*at;
    len = strcspn(word + 2, "=");
    option = slurm_find(word + 2, len, &several);
    return option
               ? slurm_read_valued(rd, option, word[2 + len] ? word + 3 + len : NULL, line, at, err)
               : slurm_unknown(rd, word, len, &several, err);
}

/* ---- origins ---- */

/* GPUs are a slot of the cluster's choice. */
static bool slurm_origin_is_of(const struct slurm_origin *origin, const char *option)
{
    if (strcmp(origin->option, SLURM_ORIGIN_GPUS) == 0)
        return strncmp(option, "-r ", 3) == 0 && strchr(option, '.');
    return strcmp(origin->option, option) == 0;
}

const struct slurm_origin *slurm_options_blame(const struct slurm_options *options,
                                               const char *option, const char *text)
{
    const struct slurm_origin *found = NULL;
    bool is_named = false;

    for (size_t i = 0; i < options->origin_count; i++) {
        const struct slurm_origin *origin = &options->origins[i];
        bool names_it = origin->value && strstr(text, origin->value);

        if (option[0] && slurm_origin_is_of(origin, option) && (names_it || !is_named)) {
            found = origin;
            is_named = names_it;
        }
    }
    return found;
}

/* ---- amounts ---- */

static int64_t slurm_divide_up(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

/* Of one kernel: Slurm counts cores and GPUs over all nodes, memory by node. */
static int slurm_add_amounts(struct slurm_reader *rd, struct aq_error *err)
{
    const struct slurm_amounts *a = &rd->amounts;
    int64_t nodes = a->tasks ? AQ_MIN(AQ_MAX(a->nodes, 1), a->tasks) : AQ_MAX(a->nodes, 1);
    int64_t tasks = a->tasks            ? slurm_divide_up(a->tasks, nodes)
                    : a->tasks_per_node ? a->tasks_per_node
                                        : 1;
    int64_t gpus = a->gpus_per_node   ? a->gpus_per_node
                   : a->gres_gpus     ? a->gres_gpus
                   : a->gpus_per_task ? a->gpus_per_task * tasks
                                      : slurm_divide_up(a->gpus, nodes);
    int64_t cpus = AQ_MAX(a->min_cpus, a->cpus_per_gpu && gpus
                                           ? a->cpus_per_gpu * gpus
                                           : AQ_MAX(a->cpus_per_task, 1) * tasks);
    int64_t mem = a->mem_bytes;
    bool is_over = false;
    int r = 0;

    if (!mem && a->mem_per_cpu_bytes)
        is_over = __builtin_mul_overflow(a->mem_per_cpu_bytes, cpus, &mem);
    else if (!mem && a->mem_per_gpu_bytes)
        is_over = __builtin_mul_overflow(a->mem_per_gpu_bytes, gpus, &mem);
    if (is_over)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "the options ask for more memory than there can be");
    if (a->tasks && a->tasks < a->nodes) {
        slurm_set_line(rd, slurm_options_blame(rd->out, "--cluster", "")->line);
        slurm_note(rd, "--nodes: there are %" PRId64 " tasks, and not more nodes", nodes);
    }
    rd->out->amounts = *a;
    rd->out->gpus = gpus;
    rd->out->mem = mem;
    rd->out->cpus = cpus > 1 || a->cpus_per_task || a->tasks ? cpus : 0;
    if (r == 0 && rd->out->cpus)
        r = slurm_add_pair(rd, "--resource", err, "cpu=%" PRId64, cpus);
    if (r == 0 && mem)
        r = slurm_add_pair(rd, "--resource", err, "mem=%" PRId64, mem);
    if (r == 0 && nodes > 1)
        r = slurm_add_pair(rd, "--cluster", err, "%" PRId64, nodes);
    return r;
}

int slurm_options_translate(const struct batch_script *script, bool is_several,
                            struct slurm_options *ret, struct aq_error *err)
{
    struct slurm_reader rd = { .out = ret, .is_several = is_several };
    int r = 0;

    for (size_t i = 0; r == 0 && i < script->count; i++) {
        const struct batch_line *line = &script->lines[i];

        slurm_set_line(&rd, line->number);
        ret->is_found |= line->is_slurm;
        for (int at = 0; r == 0 && line->is_slurm && at < line->argc;)
            r = slurm_read_word(&rd, line, &at, err);
    }
    if (r == 0 && ret->default_name && !ret->job_name)
        r = slurm_read_option(&rd, slurm_find_letter('J'), ret->default_name, err);
    rd.option = NULL;
    return r == 0 ? slurm_add_amounts(&rd, err) : r;
}

int slurm_option_words(int argc, char **argv, struct slurm_options *ret, int *ret_count,
                       struct aq_error *err)
{
    struct slurm_reader rd = { .out = ret, .amounts = ret->amounts, .is_several = true };
    const struct batch_line line = { .is_slurm = true, .argc = argc, .argv = argv };
    int r;

    *ret_count = 0;
    r = slurm_read_word(&rd, &line, ret_count, err);
    ret->amounts = rd.amounts;
    return r;
}

int slurm_options_count(int argc, char **argv, struct slurm_options *ret, int *ret_count,
                        struct aq_error *err)
{
    int at = 0, r = 0;

    while (r == 0 && at < argc && argv[at][0] == '-' && argv[at][1]
           && strcmp(argv[at], "--") != 0) {
        int count = 0;

        r = slurm_option_words(argc - at, argv + at, ret, &count, err);
        at += count;
    }
    *ret_count = at;
    return r;
}

void slurm_options_done(struct slurm_options *options)
{
    free(options->words.items);
    free(options->notes.items);
    free(options->origins);
    arena_done(&options->arena);
    *options = (struct slurm_options){ .gpus = 0 };
}
