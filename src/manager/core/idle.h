/* SPDX-License-Identifier: Apache-2.0 */
/* idle.h - sessions that end because nobody uses them (model/idle.h has the rules); part of core.h,
 * whose rules hold here
 */
#ifndef AQ_MANAGER_CORE_IDLE_H
#define AQ_MANAGER_CORE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/uuid.h"
#include "model/audit.h"
#include "model/idle.h"

struct aq_error;
struct core;
struct core_event;
struct jsonw;
struct session;

/* ---- what counts as use ---- */

/* Somebody works in the session, now: a key, a command, code, a file. */
void core_note_work(struct core *core, const struct uuid *session);
/* So many bytes went into an app of it: it counts as work once those of a minute are enough. */
void core_note_traffic(struct core *core, const struct uuid *session, int64_t bytes);
/* A request with this hash of method and path was made of an app of it. True if it is one of the
 * latest that were different: programs that poll make the same ones again.
 */
bool core_note_request(struct core *core, const struct uuid *session, uint64_t hash);
/* A command runs in it as long as somebody waits (+1), or does not any more (-1). */
void core_note_command(struct core *core, const struct uuid *session, int change);

/* ---- settings ---- */

/* Those of the configuration tree; copied. */
void core_set_idle(struct core *core, const struct idle_settings *settings);

/* ---- what will become of a session ---- */

#define CORE_IDLE_FOREVER INT64_MAX

struct core_idle {
    struct idle_limits limits;
    struct idle_report report;
    int64_t now_usec;      /* monotonic, as the times of the report */
    int64_t extended_usec; /* monotonic: it is kept until then; 0 = nobody asked */
    bool is_warned;        /* of the end in the report */
    int64_t exempt_usec;   /* likewise; CORE_IDLE_FOREVER, 0 = it is not exempt */
    struct {
        bool is_known;
        double average;
    } averages[IDLE_METRICS_MAX];         /* of the settings' thresholds */
    const struct idle_settings *settings; /* borrowed until the loop runs again */
};
/* False if it does not run. */
bool core_read_idle(const struct core *core, const struct session *s, struct core_idle *ret);

/* {"network_timeout": {"remaining": SECONDS or null, "remaining_time_type": ..., "extra": null},
 * ...} as Backend.AI has it; "{}" if no check looks at it. NULL is one that does not run.
 */
void core_idle_write_checks(const struct core_idle *idle, struct jsonw *w);

/* Append a sentence that says when the session ends and how to keep it: "Session 'x' is idle ...";
 * nothing before the first warning.
 */
void core_idle_write_text(const struct core_idle *idle, const char *name, struct strbuf *out);

/* The same if 'event' is a warning and the session has not been used since; else append nothing. */
void core_idle_write_warning(const struct core *core, const struct core_event *event,
                             struct strbuf *out);

/* ---- extensions and exemptions ---- */

typedef void (*core_extend_fn)(void *data, int r, const struct aq_error *err, int64_t until_usec);

/* Keep an idle session for 'usec' from now, 0 = its idle timeout; at most until its lifetime is
 * over, and within the total that the owner's policy allows. 'until' (wall clock) is the resulting
 * time. -ENOENT; -EINVAL, field "session": it is not running, or no check ends it; field
 * "duration": the policy or the lifetime does not allow it.
 */
void core_extend_session(struct core *core, const struct uuid *id, int64_t usec,
                         const struct audit_who *by, core_extend_fn done, void *data);

/* Exempt it from all checks for 'usec'; 0 = without limit, < 0 = remove the exemption. -ENOENT. */
void core_exempt_session(struct core *core, const struct uuid *id, int64_t usec,
                         const struct audit_who *by,
                         void (*done)(void *data, int r, const struct aq_error *err), void *data);

#endif
