/* SPDX-License-Identifier: Apache-2.0 */
/* lost_commits.c - commits of former leaders that the database lacks, which agents can prove */
#include "manager/core/nodes/lost_commits.h"

#include <stdio.h>

#include "base/log.h"
#include "link/link.h"
#include "manager/core/state/state.h"

static int lost_commits_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct core *core = data;

    return lineage_load(tx, &core->lost_commits.lineage, err);
}

int lost_commits_load(struct core *core, struct aq_error *err)
{
    return store_call(core->store, lost_commits_read, core, err);
}

bool lost_commits_note(struct core *core, const char *agent_id, int64_t epoch, int64_t commit)
{
    int64_t had = epoch ? lineage_find_last(&core->lost_commits.lineage, epoch) : INT64_MAX;

    if (commit <= had)
        return false;
    if (commit > core->lost_commits.seen) {
        /* Agents report one after another, and a lying one without end: a line if the number doubles. */
        bool is_news = commit / 2 >= core->lost_commits.seen;

        core->lost_commits.epoch = epoch;
        core->lost_commits.had = had;
        core->lost_commits.seen = commit;
        (void)snprintf(core->lost_commits.agent_id, sizeof(core->lost_commits.agent_id), "%s",
                       agent_id);
        if (is_news)
            log_error(
                "the database lacks at least %lld commits of epoch %lld: its last one is %lld, "
                "but agent '%s' has an order that followed commit %lld; containers of lost "
                "commits are kept ('aliquot admin orphan ls')",
                (long long)(commit - had), (long long)epoch, (long long)had, agent_id,
                (long long)commit);
    }
    return true;
}

bool core_get_lost_commits(const struct core *core, struct core_lost_commits *ret)
{
    *ret = (struct core_lost_commits){ .epoch = core->lost_commits.epoch,
                                       .had = core->lost_commits.had,
                                       .seen = core->lost_commits.seen,
                                       .agent_id = core->lost_commits.agent_id };
    return ret->seen > 0;
}

int64_t core_get_epoch_ahead(const struct core *core, const char **ret_agent_id)
{
    *ret_agent_id = "";
    return core->link ? link_server_get_ahead(core->link, ret_agent_id) : 0;
}
