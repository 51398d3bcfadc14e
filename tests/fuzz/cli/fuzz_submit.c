/* SPDX-License-Identifier: Apache-2.0 */
/* A batch script: its lines of options, and those of sbatch in ours. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/submit/batch_script.h"
#include "cli/submit/job_name.h"
#include "cli/submit/slurm_begin.h"
#include "cli/submit/slurm_options.h"
#include "cli/submit/slurm_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A value on its own: what is accepted is within its limits. */
static void read_values(const char *text)
{
    char start[SLURM_BEGIN_MAX] = "";
    int64_t value = 0;
    bool is_typed, is_range;

    if (slurm_count_parse(text, &value) == 0 && (value < 1 || value > SLURM_COUNT_MAX))
        __builtin_trap();
    if (slurm_time_parse(text, &value) == 0 && value < 0)
        __builtin_trap();
    if (slurm_size_parse(text, &value) == 0 && (value < 0 || value >= INT64_C(1) << 50))
        __builtin_trap();
    if (slurm_nodes_parse(text, &value, &is_range) == 0 && (value < 1 || value > SLURM_COUNT_MAX))
        __builtin_trap();
    if (slurm_begin_parse(text, 0, start) == 0 && strnlen(start, sizeof(start)) == sizeof(start))
        __builtin_trap();
    for (int is_gres = 0; is_gres < 2; is_gres++)
        if (slurm_gpus_parse(text, is_gres, &value, &is_typed) == 0
            && (value < 0 || value > SLURM_COUNT_MAX))
            __builtin_trap();
}

/* Any name becomes one that a session can have, or none. */
static void clean_names(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf tag = STRBUF_INIT;
    char name[SESSION_NAME_MAX + 1];

    for (size_t max = SESSION_NAME_MAX - JOB_INDEX_MAX; max <= SESSION_NAME_MAX; max++) {
        job_name_clean(text, max, name);
        if (name[0] && (session_name_check(name, NULL) < 0 || strlen(name) > max))
            __builtin_trap();
    }
    (void)job_tag_clean(text, &tag);
    if (tag.len > JOB_TAG_MAX || !utf8_is_valid(tag.data, tag.len))
        __builtin_trap();
    if (!utf8_is_valid(job_script_name(text), strlen(job_script_name(text))))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch_script script = { .count = 0 };
    struct slurm_options options = { .gpus = 0 };
    struct aq_error err = { 0 };

    if (batch_script_parse((const char *)data, size, &script, &err) == 0) {
        for (size_t i = 0; i < script.count; i++)
            for (int k = 0; k < script.lines[i].argc; k++) {
                read_values(script.lines[i].argv[k]);
                clean_names(script.lines[i].argv[k]);
            }
        if (slurm_options_translate(&script, false, &options, &err) < 0 && !err.text[0])
            __builtin_trap();
        if (options.gpus < 0)
            __builtin_trap();
    } else if (!err.text[0]) {
        __builtin_trap();
    }
    slurm_options_done(&options);
    batch_script_done(&script);
    return 0;
}
