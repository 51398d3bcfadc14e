/* SPDX-License-Identifier: Apache-2.0 */
/* limit_violation.c - what agents found: programs that use GPUs past their part of them
 *
 * It comes with every report of the kernel, so a new manager hears of it, too.
 * It is kept in memory while the kernel runs, and in the session's status_data
 * from its end on.
 */
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/bus.h"
#include "manager/core/events/bus_internal.h"
#include "manager/core/lookup.h"
#include "manager/core/session/limit_violation.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/session_entry.h"

void limit_violation_take(struct core *core, struct agent_entry *a, struct session_entry *l,
                          size_t rank, const char *text)
{
    struct kernel_entry *f = &l->kernels[rank];
    const struct core_event event = { .name = "kernel_gpu_misuse",
                                      .session = &l->s,
                                      .kernel = &l->s.kernels[rank],
                                      .reason = REASON_GPU_MISUSE,
                                      .limit_violations = text,
                                      .at_usec = clock_realtime_usec() };
    char id[UUID_TEXT_MAX];

    if (!text || (f->limit_violations && strcmp(f->limit_violations, text) == 0))
        return;
    log_limited(&a->log, LOG_LEVEL_WARNING, "a GPU is misused session=%s agent=%s: %s",
                uuid_format(&l->s.id, id), a->a.id, text);
    free(f->limit_violations);
    f->limit_violations = aq_strdup(text);
    bus_publish(core, &event);
}

char *limit_violation_json(const struct session_entry *l)
{
    struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct jsonw w = jsonw_make(&json);

    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->kernels[i].limit_violations)
            strbuf_addf(&text, "%s%s",
                        text.len ? "\n" : "A GPU was misused: ", l->kernels[i].limit_violations);
    if (text.len) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "text", text.data);
        jsonw_object_end(&w);
    }
    strbuf_done(&text);
    return json.len ? strbuf_steal(&json) : NULL;
}

const char *core_kernel_limit_violations(const struct core *core, const struct uuid *session,
                                         const struct uuid *kernel)
{
    const struct session_entry *l = session_entry_find(core, session);

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, kernel))
            return l->kernels[i].limit_violations;
    return NULL;
}

void core_agent_limit_violations(const struct core *core, const char *agent, const char *domain,
                                 struct strbuf *out)
{
    const struct agent_entry *a = agent_entry_find(core, agent);

    if (!a)
        return;
    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);
        const char *owner = f->entry->s.domain;

        if (f->limit_violations && (!domain || (owner && strcmp(owner, domain) == 0)))
            strbuf_addf(out, "%ssession %s: %s", out->len ? "\n" : "", f->entry->s.name,
                        f->limit_violations);
    }
}
