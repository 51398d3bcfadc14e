/* SPDX-License-Identifier: Apache-2.0 */
/* dependency_resolve.c - the sessions that a request names as dependencies */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "manager/core/core.h"
#include "manager/core/session/dependency_resolve.h"
#include "store/query.h"

/* Add one, once; it must still be able to succeed. */
static int dependency_add(struct session *s, const struct uuid *id, bool ended,
                          enum session_result result, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];

    for (size_t i = 0; i < s->dependency_count; i++)
        if (uuid_equals(&s->dependencies[i].id, id))
            return 0;
    if (ended && result != RESULT_SUCCESS)
        return aq_fail_field(err, EINVAL, "dependencies",
                             "session %s has ended without success; "
                             "what depends on it would never start",
                             uuid_format(id, text));
    s->dependencies[s->dependency_count++] = (struct session_dependency){ *id, ended, result };
    return 0;
}

static const struct session *dependency_find_live(const struct core *core,
                                                  const struct session *owner, const char *text)
{
    struct uuid id;
    const struct session *s;

    if (uuid_parse(text, &id) < 0)
        return core_find_session_named(core, &owner->user_id, text);
    s = core_find_session(core, &id);
    return s && uuid_equals(&s->user_id, &owner->user_id) ? s : NULL;
}

int dependency_resolve(const struct core *core, const struct session_request *req,
                       struct session *s, struct dependency_missing *ret, struct aq_error *err)
{
    int r = 0;

    if (req->dependency_count == 0)
        return 0;
    if (req->dependency_count > 1000)
        return aq_fail_field(err, EINVAL, "dependencies", "more than 1000 dependencies");
    s->dependencies = aq_alloc_array(req->dependency_count, sizeof(*s->dependencies));
    ret->names = aq_alloc_array(req->dependency_count, sizeof(*ret->names));
    for (size_t i = 0; i < req->dependency_count && r == 0; i++) {
        const struct session *live = dependency_find_live(core, s, req->dependencies[i]);

        if (live)
            r = dependency_add(s, &live->id, false, RESULT_UNDEFINED, err);
        else
            ret->names[ret->count++] = aq_strdup(req->dependencies[i]);
    }
    return r;
}

/* The latest session of that id or name. */
static int dependency_resolve_ended(struct store_tx *tx, struct session *s, const char *text,
                                    struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct store_query q = { .user_id = &s->user_id, .limit = 1 };
    struct uuid id;
    int r;

    if (uuid_parse(text, &id) == 0) {
        q.ids = &id;
        q.id_count = 1;
    } else {
        q.name = text;
    }
    if ((r = store_list_sessions(tx, &q, &page, err)) < 0)
        return r;
    if (page->count == 0)
        return aq_fail_field(err, ENOENT, "dependencies", "no session of yours is called '%s'",
                             text);
    return dependency_add(s, &page->sessions[0].session.id,
                          session_is_terminal(page->sessions[0].session.status),
                          page->sessions[0].session.result, err);
}

int dependency_read_missing(struct store_tx *tx, struct session *s,
                            const struct dependency_missing *missing, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; i < missing->count && r == 0; i++)
        r = dependency_resolve_ended(tx, s, missing->names[i], err);
    return r;
}

void dependency_missing_done(struct dependency_missing *missing)
{
    for (size_t i = 0; i < missing->count; i++)
        free(missing->names[i]);
    free(AQ_TAKE(missing->names));
    missing->count = 0;
}
