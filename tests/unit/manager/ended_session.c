/* SPDX-License-Identifier: Apache-2.0 */
/* ended_session.c - reads sessions that have ended from the store */
#include "ended_session.h"

static int ended_session_find(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct ended_session *g = data;
    struct store_query q = { .ids = &g->id, .id_count = 1, .with_kernels = true };
    int r = store_list_sessions(tx, &q, &page, err);

    if (r < 0 || page->count != 1)
        return -ENOENT;
    g->status = page->sessions[0].session.status;
    g->result = page->sessions[0].session.result;
    (void)snprintf(g->reason, sizeof(g->reason), "%s",
                   page->sessions[0].session.reason ? page->sessions[0].session.reason : "");
    (void)snprintf(g->data, sizeof(g->data), "%s",
                   page->sessions[0].session.status_data ? page->sessions[0].session.status_data
                                                         : "");
    g->running_usec = page->sessions[0].session.running_usec;
    g->started_usec = session_started_usec(&page->sessions[0].session);
    g->has_exit = page->sessions[0].kernels[0].kernel.has_exit;
    g->exit_code = page->sessions[0].kernels[0].kernel.exit_code;
    return 0;
}

struct ended_session ended_session_read(const struct uuid *id)
{
    struct ended_session g = { .id = *id };

    assert_int_equal(store_call(world.core->store, ended_session_find, &g, NULL), 0);
    return g;
}
