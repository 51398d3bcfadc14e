/* SPDX-License-Identifier: Apache-2.0 */
/* serving_rollout.c - see serving_rollout.h */
#include "manager/serving/serving_rollout.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "manager/call/api.h"
#include "serving/rollout.h"

/* Settings and state of a service, whose JSON the core wrote and checked. */
static void rollout_read(const struct model_service *s, struct rollout *ret,
                         struct rollout_state *ret_state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct aq_error err;

    *ret = rollout_default();
    *ret_state = (struct rollout_state){ .phase = ROLLOUT_NONE };
    if (s->rollout)
        (void)rollout_parse(s->rollout, strlen(s->rollout), &arena, ret, ret_state, &err);
}

/* ---- requests ---- */

/* The present settings with the members of 'given' over them; those of "abort" one by one. */
static void rollout_merge(const struct rollout *present, json_t *given)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    json_t *abort = json_object_get(given, "abort");
    json_auto_t *base = NULL;

    rollout_write(present, NULL, &w);
    base = json_loadb(text.data, text.len, 0, NULL);
    if (json_object_get(given, "step_weight"))
        (void)json_object_del(base, "steps"); /* which are made from the weight */
    if (json_is_object(abort))
        (void)json_object_update_missing(abort, json_object_get(base, "abort"));
    (void)json_object_update_missing(given, base);
}

int serving_rollout_apply(const char *text, struct model_service *s, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct rollout rollout;
    struct rollout_state state, none;

    rollout_read(s, &rollout, &state);
    if (text) {
        json_auto_t *given = json_loads(text, 0, NULL);
        AQ_CLEANUP(aq_freep) char *merged = NULL;
        int r;

        if (json_object_get(given, "state"))
            return api_fail_param(err, "rollout.state",
                                  "is set by the rollout itself; leave it out of the request");
        if (!json_object_get(given, "strategy"))
            rollout_merge(&rollout, given);
        merged = json_dump_text(given, JSON_COMPACT);
        r = rollout_parse(merged, strlen(merged), &arena, &rollout, &none, err);
        if (r < 0) {
            err->kind = "invalid-api-params";
            return r;
        }
    } else {
        rollout = rollout_default();
    }
    rollout_write(&rollout, state.phase == ROLLOUT_NONE ? NULL : &state, &w);
    free(s->rollout);
    s->rollout = aq_strdup(out.data);
    return 0;
}

/* ---- answers ---- */

struct rollout_counts {
    int64_t replicas; /* that have not ended */
    int64_t ready;    /* take requests */
    double weight;    /* of these, as requests are divided */
};

static void rollout_count(const struct core *core, const struct model_service *s, int64_t to,
                          struct rollout_counts *ret_old, struct rollout_counts *ret_new)
{
    struct core_replica replica;

    *ret_old = *ret_new = (struct rollout_counts){ .replicas = 0 };
    if (core_find_service_by_id(core, &s->id) != s)
        return;
    for (const struct session *session = NULL; (session = core_next_replica(core, s, session));) {
        struct rollout_counts *counts;

        if (!core_find_replica(core, session, &replica))
            continue;
        counts = replica.revision == to ? ret_new : ret_old;
        counts->replicas++;
        if (replica.is_draining || replica.health != CORE_REPLICA_READY)
            continue;
        counts->ready++;
        counts->weight += (double)replica.ratio_ppm * (double)replica.rollout_ratio_ppm;
    }
}

static void rollout_write_counts(const char *key, const struct rollout_counts *counts,
                                 struct jsonw *w)
{
    jsonw_key(w, key);
    jsonw_object_begin(w);
    jsonw_member_int(w, "replicas", counts->replicas);
    jsonw_member_int(w, "ready", counts->ready);
    jsonw_object_end(w);
}

/* When the rollout goes on, if that is a matter of time alone; else 0. */
static int64_t rollout_next_usec(const struct rollout *rollout, const struct rollout_state *state)
{
    bool is_under_way = state->phase == ROLLOUT_RUNNING || state->phase == ROLLOUT_READY;

    if (!is_under_way || !state->since_usec || state->is_rolling)
        return 0;
    if (rollout->strategy == ROLLOUT_CANARY)
        return state->step < (int64_t)rollout->step_count
                   ? state->since_usec + rollout->step_interval_usec
                   : 0;
    if (rollout->strategy != ROLLOUT_BLUE_GREEN)
        return 0;
    if (state->is_promoted)
        return state->since_usec + rollout->keep_usec;
    return rollout->promotes ? state->since_usec + rollout->promote_delay_usec : 0;
}

static void rollout_write_state(const struct core *core, const struct model_service *s,
                                const struct rollout *rollout, const struct rollout_state *state,
                                struct jsonw *w)
{
    bool has_steps = rollout->strategy == ROLLOUT_CANARY && !state->is_rolling
                     && (state->phase == ROLLOUT_RUNNING || state->phase == ROLLOUT_DONE);
    struct rollout_counts old, new;
    double weight;

    rollout_count(core, s, state->to, &old, &new);
    weight = old.weight + new.weight;
    jsonw_object_begin(w);
    jsonw_member_str(w, "phase", rollout_phase_name(state->phase));
    jsonw_member_int(w, "from", state->from);
    jsonw_member_int(w, "to", state->to);
    if (has_steps) { /* the last of which are all requests */
        jsonw_member_int(w, "step", AQ_MIN(state->step, (int64_t)rollout->step_count) + 1);
        jsonw_member_int(w, "steps", (int64_t)rollout->step_count + 1);
    } else {
        jsonw_member_null(w, "step");
        jsonw_member_null(w, "steps");
    }
    jsonw_key(w, "percent");
    if (weight > 0)
        jsonw_int(w, (int64_t)(100 * new.weight / weight + 0.5));
    else
        jsonw_null(w);
    jsonw_member_bool(w, "promoted", state->is_promoted);
    api_write_time(w, "since", state->since_usec);
    api_write_time(w, "next_at", rollout_next_usec(rollout, state));
    jsonw_member_str(w, "reason", state->reason[0] ? state->reason : NULL);
    rollout_write_counts("old", &old, w);
    rollout_write_counts("new", &new, w);
    jsonw_object_end(w);
}

void serving_rollout_write(const struct core *core, const struct model_service *s, struct jsonw *w)
{
    struct rollout rollout;
    struct rollout_state state;

    rollout_read(s, &rollout, &state);
    jsonw_key(w, "rollout");
    jsonw_object_begin(w);
    rollout_write_settings(&rollout, w);
    jsonw_key(w, "state");
    if (state.phase == ROLLOUT_NONE)
        jsonw_null(w);
    else
        rollout_write_state(core, s, &rollout, &state, w);
    jsonw_object_end(w);
}
