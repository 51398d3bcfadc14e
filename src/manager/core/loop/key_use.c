/* SPDX-License-Identifier: Apache-2.0 */
/* key_use.c - when each keypair was used last
 *
 * Requests only note the time in memory. All keypairs that were used since
 * the last write share one batch a minute; what a killed manager had noted
 * since then is lost.
 */
#include "manager/core/loop/loop_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/state/state.h"

#define WRITE_USEC (60 * USEC_PER_SEC)

struct key_use {
    int64_t at_usec; /* wall clock */
    bool is_unsaved;
};

void core_note_key_use(struct core *core, const char *access_key)
{
    struct key_use *use = map_gets(&core->key_uses, access_key);

    if (!use) {
        use = aq_alloc(sizeof(*use));
        map_sets(&core->key_uses, access_key, use);
    }
    use->at_usec = clock_realtime_usec();
    core->unsaved_key_uses += !use->is_unsaved;
    use->is_unsaved = true;
}

int64_t core_key_used(const struct core *core, const char *access_key)
{
    const struct key_use *use = map_gets(&core->key_uses, access_key);

    return use ? use->at_usec : 0;
}

void key_use_tick(struct core *core, int64_t now)
{
    if (now < core->key_uses_due_usec || !core->unsaved_key_uses)
        return;
    core->key_uses_due_usec = now + WRITE_USEC;
    key_use_save(core);
}

void key_use_save(struct core *core)
{
    struct event_batch *batch;

    if (!core->unsaved_key_uses)
        return;
    batch = event_batch_new();
    for (size_t i = 0; i < core->key_uses.count; i++) {
        struct key_use *use = core->key_uses.entries[i].value;
        struct event *e;

        if (!use->is_unsaved)
            continue;
        e = event_batch_add(batch, EVENT_KEYPAIR_USED, use->at_usec);
        (void)snprintf(e->keypair.access_key, sizeof(e->keypair.access_key), "%s",
                       core->key_uses.entries[i].key);
        use->is_unsaved = false;
        core->unsaved_key_uses--;
    }
    proposal_commit_command(core, batch, NULL, NULL);
}

void key_use_free(struct core *core)
{
    for (size_t i = 0; i < core->key_uses.count; i++)
        free(core->key_uses.entries[i].value);
    map_done(&core->key_uses);
}
