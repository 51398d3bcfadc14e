/* misuse.c - what agents found: programs that use GPUs past their part of them
 *
 * It comes with every report of the kernel, so a new manager hears of it, too.
 * It is kept in memory while the kernel runs, and in the session's status_data
 * from its end on.
 */
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "manager/core/parts.h"

void misuse_take(struct core *core, const struct agent_live *a, struct live *l, size_t rank,
                 const char *text)
{
    struct kernel_live *f = &l->kernels[rank];
    const struct core_event event = { .name = "kernel_gpu_misuse", .session = &l->s,
                                      .kernel = &l->s.kernels[rank], .reason = REASON_GPU_MISUSE,
                                      .misuse = text, .at_usec = clock_realtime_usec() };
    char id[UUID_TEXT_MAX];
    char *copy;

    if (!text || (f->misuse && strcmp(f->misuse, text) == 0) || !(copy = strdup(text)))
        return;
    log_warning("a GPU is misused session=%s agent=%s: %s", uuid_format(&l->s.id, id), a->a.id,
                text);
    free(f->misuse);
    f->misuse = copy;
    bus_publish(core, &event);
}

char *misuse_json(const struct live *l)
{
    struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct jsonw w = jsonw_make(&json);

    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->kernels[i].misuse)
            strbuf_addf(&text, "%s%s", text.len ? "\n" : "A GPU was misused: ",
                        l->kernels[i].misuse);
    if (text.len) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "text", text.data);
        jsonw_object_end(&w);
    }
    strbuf_done(&text);
    return json.len ? strbuf_steal(&json) : NULL;
}

const char *core_kernel_misuse(const struct core *core, const struct uuid *session,
                               const struct uuid *kernel)
{
    const struct live *l = live_find(core, session);

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, kernel))
            return l->kernels[i].misuse;
    return NULL;
}

void core_agent_misuse(const struct core *core, const char *agent, struct strbuf *out)
{
    const struct agent_live *a = agent_find(core, agent);

    if (!a)
        return;
    LIST_FOREACH(link, &a->kernels) {
        const struct kernel_live *f = LIST_ENTRY(link, struct kernel_live, agent_link);

        if (f->misuse)
            strbuf_addf(out, "%ssession %s: %s", out->len ? "\n" : "", f->live->s.name, f->misuse);
    }
}
