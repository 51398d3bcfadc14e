/* SPDX-License-Identifier: Apache-2.0 */
/* What users of a run were promised of each session. */
#include "sim/play/play_sessions.h"

#include <string.h>

#include "base/memory.h"
#include "simuv/simuv.h"

void play_sessions_begin(struct play_sessions *s)
{
    list_init(&s->live);
}

struct play_session *play_sessions_add(struct play_sessions *s, char *name)
{
    struct play_session *session = aq_alloc(sizeof(*session));

    session->name = name;
    session->asked_usec = simuv_now_usec();
    if (s->count == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 256;
        s->all = aq_realloc(s->all, s->cap * sizeof(*s->all));
    }
    s->all[s->count++] = session;
    list_add(&s->live, &session->live_link);
    (void)map_sets(&s->by_name, name, session);
    return session;
}

void play_sessions_identify(struct play_sessions *s, struct play_session *session,
                            const struct uuid *id)
{
    session->id = *id;
    session->has_id = true;
    (void)map_set(&s->by_id, id, sizeof(*id), session);
}

struct play_session *play_sessions_find(const struct play_sessions *s, const struct uuid *id)
{
    return map_get(&s->by_id, id, sizeof(*id));
}

struct play_session *play_sessions_find_named(const struct play_sessions *s, const char *name)
{
    return map_gets(&s->by_name, name);
}
