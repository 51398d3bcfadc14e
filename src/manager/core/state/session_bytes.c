/* SPDX-License-Identifier: Apache-2.0 */
/* session_bytes.c - what sessions take of the manager's memory, and how much they may */
#include "manager/core/state/session_bytes.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "manager/core/state/account.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* What is elsewhere: indexes, placement constraints, the scheduler's copy, what the allocator adds.
 * The sum is what was measured of sessions with 1 and 64 kernels, rounded up. */
#define SESSION_BESIDE 768
#define KERNEL_BESIDE 256
#define DEPENDENCY_BESIDE 64

static int64_t session_bytes_of_text(const char *text)
{
    return text ? (int64_t)strlen(text) + 1 : 0;
}

int64_t session_bytes_of(const struct session *s)
{
    int64_t bytes = (int64_t)sizeof(struct session_entry) + SESSION_BESIDE
                    + session_bytes_of_text(s->domain) + session_bytes_of_text(s->resource_group)
                    + AQ_MIN((int64_t)session_spec_size(s->spec), SESSION_SPEC_KEPT_MAX)
                    + session_bytes_of_text(s->image) + session_bytes_of_text(s->tag);

    for (size_t i = 0; i < s->kernel_count; i++)
        bytes += (int64_t)(sizeof(struct kernel) + sizeof(struct kernel_entry) + KERNEL_BESIDE
                           + 2 * s->kernels[i].requested.count * sizeof(struct slot));
    return bytes
           + (int64_t)(s->dependency_count
                       * (sizeof(struct session_dependency) + DEPENDENCY_BESIDE));
}

int session_bytes_check(const struct core *core, const struct account *user, int64_t bytes,
                        struct aq_error *err)
{
    const struct core_conf *conf = &core->conf;
    char most[AMOUNT_TEXT_MAX];

    if (user->session_bytes + bytes > conf->user_session_bytes_max)
        return aq_fail(err, EDQUOT,
                       "Your sessions may take %s of the manager's memory ([sessions] "
                       "max-memory-per-user): wait until some of them have ended, or end some.",
                       slot_amount_humanize(conf->user_session_bytes_max, SLOT_BYTES, most));
    if (core->session_bytes + bytes > conf->session_bytes_max)
        return aq_fail(err, EDQUOT,
                       "All sessions together may take %s of the manager's memory ([sessions] "
                       "max-memory): try again when some have ended, or end some of yours.",
                       slot_amount_humanize(conf->session_bytes_max, SLOT_BYTES, most));
    return 0;
}

void session_bytes_add(struct core *core, struct account *user, int64_t bytes)
{
    user->session_bytes += bytes;
    core->session_bytes += bytes;
    assert(user->session_bytes >= 0 && core->session_bytes >= user->session_bytes);
}
