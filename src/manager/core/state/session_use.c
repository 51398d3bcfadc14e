/* SPDX-License-Identifier: Apache-2.0 */
/* When people worked in a session last, and what went through its apps: in memory. */
#include "manager/core/state/session_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sum.h"
#include "base/vec.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define OTHER "other"

/* ---- apps ---- */

/* The one of that name, or a new one as long as there are few; else the one of all others. */
static struct app_use *session_use_find_app(struct app_uses *uses, const char *name, size_t max)
{
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->items[i].name, name) == 0)
            return &uses->items[i];
    if (uses->count >= max && strcmp(name, OTHER) != 0)
        return session_use_find_app(uses, OTHER, max);
    vec_grow(&uses->items, &uses->cap, uses->count + 1, sizeof(*uses->items));
    uses->items[uses->count] = (struct app_use){ .connections = 0 };
    (void)snprintf(uses->items[uses->count].name, sizeof(uses->items[0].name), "%s", name);
    return &uses->items[uses->count++];
}

static void session_use_add(struct app_uses *uses, const struct app_use *more, size_t max)
{
    struct app_use *to = session_use_find_app(uses, more->name, max);

    to->connections = AQ_MAX(sum_add(to->connections, more->connections), 0);
    to->requests = sum_add(to->requests, more->requests);
    to->bytes_in = sum_add(to->bytes_in, more->bytes_in);
    to->bytes_out = sum_add(to->bytes_out, more->bytes_out);
}

/* ---- sessions ---- */

/* Of a session that lives. */
static struct session_use_entry *session_use_of(struct session_entry *l)
{
    if (!l->use) {
        l->use = aq_alloc(sizeof(*l->use));
        list_init(&l->use->unsaved_link);
        l->use->session = l->s.id;
    }
    return l->use;
}

void core_note_access(struct core *core, const struct uuid *session)
{
    struct session_entry *l = session_entry_find(core, session);
    struct session_use_entry *use = l ? session_use_of(l) : NULL;

    if (!use)
        return;
    use->shown.at_usec = clock_realtime_usec();
    if (list_is_empty(&use->unsaved_link))
        list_add(&core->session_uses.unsaved, &use->unsaved_link);
}

void core_note_app_use(struct core *core, const struct uuid *session, const struct app_use *more)
{
    struct session_entry *l;

    if (more->requests || more->bytes_in || more->bytes_out)
        core_note_access(core, session);
    if ((l = session_entry_find(core, session)) && l->use)
        session_use_add(&l->use->shown.apps, more, SESSION_APPS_MAX);
    session_use_add(&core->session_uses.totals, more, APP_TOTALS_MAX);
}

const struct session_use *core_session_use(const struct core *core, const struct uuid *session)
{
    const struct session_entry *l = session_entry_find(core, session);

    return l && l->use ? &l->use->shown : NULL;
}

const struct app_uses *core_app_totals(const struct core *core)
{
    return &core->session_uses.totals;
}

void session_use_free(struct session_use_entry *use)
{
    list_remove(&use->unsaved_link);
    free(use->shown.apps.items);
    free(use);
}

void session_use_release(struct session_use_entry *use)
{
    if (use && list_is_empty(&use->unsaved_link))
        session_use_free(use);
    else if (use)
        use->is_ended = true;
}
