/* SPDX-License-Identifier: Apache-2.0 */
/* group_options.c - how a resource group schedules: its words, read and checked
 *
 * 'scheduler' and 'selection' are columns; scheduler_opts is a JSON object of
 * which these keys are for the scheduler (the others are handled elsewhere):
 *
 *   "config": {"num_retries_to_skip": N}  fifo: a session that N passes found
 *       no start for lets others pass; 0 = never
 *   "agent_selection_strategy": "..."     Backend.AI's name for 'selection',
 *       which it overrides
 *   "backfill": true                      others may start before one that
 *       does not fit, if that does not delay it
 *   "backfill_reservations": N            that many get a time to start; 0 = all
 *   "backfill_max_wait": SECONDS          resources are kept for a session that has been eligible
 *       so long and has no known start; 0 = never
 *   "allowed_session_types": ["batch"]    what may be made in it; all by
 *       default
 *   "allowed_networks": ["private", "host"]  networks that sessions may ask for; private by default
 *   "fair_share": {...}                   what counts how much, see fair_share_settings.h
 *   "preemption": {...}                   who is preempted by whom, see preemption.c
 *   "handler_options": {...}              how often a start is tried, and for how long,
 *       see retry_options.c
 *   "idle": {"timeout": SECONDS, "lifetime": SECONDS}
 *       its sessions end after no more than this: unused, or since they began to run; 0 = as
 *       policies of keypairs say (session/idle.c)
 *   "allow_fractional_resource_fragmentation": true
 *       may amounts of devices be split, of sessions that do not say it themselves
 *   "pending_timeout": SECONDS            Backend.AI's place for the column of
 *       that name; the API keeps both the same
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/core/scheduling/fair_share_settings.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "sched/admit.h"
#include "sched/plugin.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/retry_options.h"

#define PLUGIN "plugin:"
#define COUNT_MAX 1000000
#define SECONDS_MAX (1 << 30)
#define MAX_WAIT_DEFAULT_USEC (3600 * USEC_PER_SEC)
#define CHOICES_MAX 5 /* candidates that are kept of each placement */

static const char *const slot_priority[] = { "cuda", "rocm", "tpu", "cpu", "mem" };

static int options_read_count(const json_t *object, const char *key, uint32_t *ret,
                              struct aq_error *err)
{
    const json_t *value = json_object_get(object, key);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0
        || json_integer_value(value) > COUNT_MAX)
        return aq_fail_field(err, EINVAL, key, "must be a number from 0 to %d", COUNT_MAX);
    *ret = (uint32_t)json_integer_value(value);
    return 0;
}

static int options_read_bool(const json_t *object, const char *key, bool *ret, struct aq_error *err)
{
    const json_t *value = json_object_get(object, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return aq_fail_field(err, EINVAL, key, "must be true or false");
    *ret = json_is_true(value);
    return 0;
}

/* A plug-in's refusal is about this member. */
static int options_name_field(struct aq_error *err, const char *field)
{
    if (err)
        (void)snprintf(err->field, sizeof(err->field), "%s", field);
    return -EINVAL;
}

static int options_read_sequencer(const char *name, struct sched_options *ret, struct aq_error *err)
{
    const struct sequencer_ops *ops = name ? sched_find_sequencer(name) : &sched_fifo;

    if (!ops && strncmp(name, PLUGIN, strlen(PLUGIN)) == 0) {
        int r = sched_plugin_find(name + strlen(PLUGIN), &ret->sequencer, NULL, err);

        return r < 0 ? options_name_field(err, "scheduler") : 0;
    }

    if (!ops)
        return aq_fail_field(err, EINVAL, "scheduler",
                             "'%s' is none of fifo, lifo, drf, fair-share and plugin:NAME", name);
    ret->sequencer = ops;
    return 0;
}

static int options_read_selector(const char *key, const char *name, struct sched_options *ret,
                                 struct aq_error *err)
{
    const struct selector_ops *ops;

    if (!name)
        return 0;
    if (strncmp(name, PLUGIN, strlen(PLUGIN)) == 0)
        return sched_plugin_find(name + strlen(PLUGIN), NULL, &ret->selector.ops, err) < 0
                   ? options_name_field(err, key)
                   : 0;
    ops = strcmp(name, "roundrobin") == 0 ? &sched_round_robin : sched_find_selector(name);
    if (!ops)
        return aq_fail_field(err, EINVAL, key,
                             "'%s' is none of concentrated, dispersed, "
                             "round-robin, legacy, fragmentation, bin-packing, "
                             "high-performance and plugin:NAME",
                             name);
    ret->selector.ops = ops;
    return 0;
}

static int options_read_strategy(const json_t *opts, struct sched_options *ret,
                                 struct aq_error *err)
{
    static const char key[] = "agent_selection_strategy";
    const json_t *value = json_object_get(opts, key);
    char name[32];

    if (!value)
        return 0;
    if (!json_is_string(value) || json_string_length(value) >= sizeof(name))
        return aq_fail_field(err, EINVAL, key, "must be the name of a strategy");
    for (size_t i = 0; i <= json_string_length(value); i++) { /* theirs may be in capitals */
        char c = json_string_value(value)[i];

        name[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return options_read_selector(key, name, ret, err);
}

static int options_read_types(const json_t *opts, uint32_t *ret, struct aq_error *err)
{
    static const char key[] = "allowed_session_types";
    const json_t *list = json_object_get(opts, key), *item;
    uint32_t types = 0;
    size_t i;

    if (!list)
        return 0;
    json_array_foreach(list, i, item) {
        enum session_type type;

        if (!json_is_string(item) || session_type_parse(json_string_value(item), &type) < 0)
            return aq_fail_field(err, EINVAL, key,
                                 "must be a list of interactive, batch, "
                                 "inference and system");
        types |= 1u << type;
    }
    if (!types)
        return aq_fail_field(err, EINVAL, key, "must be a list of session types that is not empty");
    *ret = types;
    return 0;
}

static int options_read_networks(const json_t *opts, unsigned *ret, struct aq_error *err)
{
    static const char key[] = "allowed_networks";
    const json_t *list = json_object_get(opts, key), *item;
    unsigned networks = 0;
    size_t i;

    if (!list)
        return 0;
    json_array_foreach(list, i, item) {
        const char *word = json_is_string(item) ? json_string_value(item) : "";

        if (strcmp(word, SESSION_NETWORK_PRIVATE) == 0)
            networks |= ADMIT_NETWORK_PRIVATE;
        else if (strcmp(word, SESSION_NETWORK_HOST) == 0)
            networks |= ADMIT_NETWORK_HOST;
        else
            return aq_fail_field(err, EINVAL, key, "must be a list of private and host");
    }
    if (!networks)
        return aq_fail_field(err, EINVAL, key, "must be a list of networks that is not empty");
    *ret = networks;
    return 0;
}

static int options_read_seconds(const json_t *opts, const char *key, int64_t *ret_usec,
                                struct aq_error *err)
{
    const json_t *value = json_object_get(opts, key);

    if (!value)
        return 0;
    if (!json_is_number(value) || json_number_value(value) < 0
        || json_number_value(value) > SECONDS_MAX)
        return aq_fail_field(err, EINVAL, key, "must be seconds from 0 (never) to %d", SECONDS_MAX);
    *ret_usec = (int64_t)(json_number_value(value) * USEC_PER_SEC);
    return 0;
}

static int options_read_idle(const json_t *opts, struct core_scheduling *ret, struct aq_error *err)
{
    const json_t *idle = json_object_get(opts, "idle");
    int r;

    if (!idle)
        return 0;
    if (!json_is_object(idle))
        return aq_fail_field(err, EINVAL, "idle", "must be an object of timeout and lifetime");
    r = options_read_seconds(idle, "timeout", &ret->idle_timeout_usec, err);
    return r < 0 ? r : options_read_seconds(idle, "lifetime", &ret->idle_lifetime_usec, err);
}

static int options_read_splitting(const json_t *opts, enum splitting *ret, struct aq_error *err)
{
    bool is_allowed;
    int r = options_read_bool(opts, RESOURCE_OPTS_SPLITTING, &is_allowed, err);

    *ret = resource_opts_splitting(opts);
    return r;
}

static int options_read_opts(const char *text, struct core_scheduling *ret, struct aq_error *err)
{
    json_t *opts = json_load_string(text, JSON_REJECT_DUPLICATES);
    const json_t *config = json_object_get(opts, "config");
    int r = 0;

    if (!json_is_object(opts))
        r = aq_fail_field(err, EINVAL, "scheduler_opts", "must be an object");
    else if (config && !json_is_object(config))
        r = aq_fail_field(err, EINVAL, "config", "must be an object");
    if (r == 0)
        r = options_read_count(config, "num_retries_to_skip", &ret->options.retries_to_skip, err);
    ret->has_retries = json_object_get(config, "num_retries_to_skip") != NULL;
    if (r == 0)
        r = options_read_strategy(opts, &ret->options, err);
    if (r == 0)
        r = options_read_bool(opts, "backfill", &ret->options.backfill, err);
    if (r == 0)
        r = options_read_splitting(opts, &ret->splitting, err);
    if (r == 0)
        r = options_read_count(opts, "backfill_reservations", &ret->options.reservations_max, err);
    if (r == 0)
        r = options_read_types(opts, &ret->session_types, err);
    if (r == 0)
        r = options_read_networks(opts, &ret->networks, err);
    if (r == 0)
        r = options_read_seconds(opts, "pending_timeout", &ret->pending_timeout_usec, err);
    if (r == 0)
        r = options_read_seconds(opts, "backfill_max_wait", &ret->options.max_wait_usec, err);
    if (r == 0)
        r = options_read_idle(opts, ret, err);
    if (r == 0)
        r = preemption_read(json_object_get(opts, "preemption"), ret, err);
    if (r == 0)
        r = retry_options_read(json_object_get(opts, "handler_options"), ret, err);
    if (r == 0)
        r = fair_share_settings_check(json_object_get(opts, "fair_share"), err);
    json_decref(opts);
    return r;
}

static struct core_scheduling options_defaults(const struct resource_group *g)
{
    struct core_scheduling s = {
        .options = {
            .sequencer = &sched_fifo,
            .selector = { .ops = &sched_concentrated },
            .slot_priority = slot_priority,
            .slot_priority_count = AQ_COUNT(slot_priority),
            .max_wait_usec = MAX_WAIT_DEFAULT_USEC,
            .plans_to_start = true, /* estimates are made when somebody asks */
            .choices_max = CHOICES_MAX,
        },
        .session_types = 1u << SESSION_INTERACTIVE | 1u << SESSION_BATCH | 1u << SESSION_INFERENCE
                         | 1u << SESSION_SYSTEM,
        .networks = ADMIT_NETWORK_PRIVATE,
        .pending_timeout_usec = g->pending_timeout_usec,
        .preempted_interactive = CORE_SKIPPED,
        .preemptible_priority = PRIORITY_COUNT - 1,
    };

    retry_options_defaults(&s);
    return s;
}

int core_check_scheduling(const struct resource_group *g, struct aq_error *err)
{
    struct core_scheduling read = options_defaults(g);
    int r = options_read_sequencer(g->scheduler, &read.options, err);

    if (r == 0)
        r = options_read_selector("selection", g->selection, &read.options, err);
    if (r == 0 && g->scheduler_opts)
        r = options_read_opts(g->scheduler_opts, &read, err);
    return r;
}

void core_read_scheduling(const struct resource_group *g, struct core_scheduling *ret)
{
    *ret = options_defaults(g);
    (void)options_read_sequencer(g->scheduler, &ret->options, NULL);
    (void)options_read_selector("selection", g->selection, &ret->options, NULL);
    if (g->scheduler_opts)
        (void)options_read_opts(g->scheduler_opts, ret, NULL);
}

void core_default_scheduling(const struct core *core, struct core_scheduling *s)
{
    if (s->options.sequencer == &sched_fifo && !s->has_retries)
        s->options.retries_to_skip = core->fifo_retries;
}
