/* SPDX-License-Identifier: Apache-2.0 */
/* session_use.h - when people worked in a session last, and what went through its apps; part of
 * core.h, whose rules hold here
 *
 * Work is what goes through the manager into a session and back: terminals, commands, executed
 * code, files, connections to apps and ports. Its time is in the session's row within ten
 * seconds, which a killed manager loses; the counts live in memory, those of a session until it
 * or the manager ends.
 */
#ifndef AQ_MANAGER_CORE_SESSION_USE_H
#define AQ_MANAGER_CORE_SESSION_USE_H

#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"
#include "model/service_port.h"

struct core;

#define SESSION_APPS_MAX 16 /* counted one by one in a session; more are counted as "other" */
#define APP_TOTALS_MAX 32   /* likewise, over all sessions */

struct app_use {
    char name[SERVICE_NAME_MAX + 1]; /* of the app; "port" = connections to a port's number */
    int64_t connections;             /* open now */
    int64_t requests;                /* connections that were opened, whatever they carried */
    int64_t bytes_in, bytes_out;     /* into the session, and out of it */
};

struct app_uses {
    struct app_use *items;
    size_t count, cap;
};

struct session_use {
    int64_t at_usec; /* wall clock */
    struct app_uses apps;
};

/* Somebody works in the session, now. Nothing happens if it is not alive. */
void core_note_access(struct core *core, const struct uuid *session);

/* Add what 'more' has to the app of its name; what bytes or requests it has are an access.
 * Each connection is taken off (-1) when it ends, also after the session's end.
 */
void core_note_app_use(struct core *core, const struct uuid *session, const struct app_use *more);

/* NULL if it is not alive, or nobody has worked in it since the manager began. */
const struct session_use *core_session_use(const struct core *core, const struct uuid *session);

/* Over all sessions since the manager began, those that ended included. */
const struct app_uses *core_app_totals(const struct core *core);

#endif
