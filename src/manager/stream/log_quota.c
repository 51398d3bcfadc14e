/* SPDX-License-Identifier: Apache-2.0 */
/* log_quota.c - how many logs of one agent a user reads at a time */
#include "manager/stream/log_quota.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/agent.h"

struct log_quota {
    struct map readers; /* name -> struct log_quota_readers */
};

struct log_quota_readers {
    struct log_quota *quota;
    unsigned count;
    char name[UUID_TEXT_MAX + AGENT_ID_MAX + 1]; /* the user's id, the agent's */
};

struct log_quota *log_quota_new(void)
{
    return aq_alloc(sizeof(struct log_quota));
}

void log_quota_free(struct log_quota *quota)
{
    if (quota)
        map_done(&quota->readers);
    free(quota);
}

static struct log_quota_readers *log_quota_get(struct log_quota *quota, const struct uuid *user_id,
                                               const char *agent_id)
{
    struct log_quota_readers new = { .quota = quota }, *readers;
    char user[UUID_TEXT_MAX];

    (void)snprintf(new.name, sizeof(new.name), "%s %s", uuid_format(user_id, user), agent_id);
    if ((readers = map_gets(&quota->readers, new.name)))
        return readers;
    readers = aq_alloc(sizeof(*readers));
    *readers = new;
    (void)map_sets(&quota->readers, new.name, readers);
    return readers;
}

int log_quota_enter(struct log_quota *quota, const struct uuid *user_id, const char *agent_id,
                    struct log_quota_readers **ret, struct aq_error *err)
{
    struct log_quota_readers *readers = log_quota_get(quota, user_id, agent_id);

    if (readers->count == LOG_QUOTA_MAX)
        return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                            "you are reading %d logs of agent %s, which is as many as a user may "
                            "at a time; end some of them first",
                            LOG_QUOTA_MAX, agent_id);
    readers->count++;
    *ret = readers;
    return 0;
}

void log_quota_leave(struct log_quota_readers *readers)
{
    if (!readers || --readers->count)
        return;
    (void)map_removes(&readers->quota->readers, readers->name);
    free(readers);
}
