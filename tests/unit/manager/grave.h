/* grave.h - sessions that are dead, as the store tells of them */
#ifndef AQ_TESTS_UNIT_MANAGER_GRAVE_H
#define AQ_TESTS_UNIT_MANAGER_GRAVE_H

#include "world.h"

/* What the store says of a session that is dead. */
struct grave {
    struct uuid id;
    enum session_status status;
    enum session_result result;
    char reason[40];
    bool has_exit;
    int exit_code;
};

static inline int read_grave(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct grave *g = data;
    struct store_query q = { .ids = &g->id, .id_count = 1, .with_kernels = true };
    int r = store_list_sessions(tx, &q, &page, err);

    if (r < 0 || page->count != 1)
        return -ENOENT;
    g->status = page->sessions[0].session.status;
    g->result = page->sessions[0].session.result;
    (void)snprintf(g->reason, sizeof(g->reason), "%s",
                   page->sessions[0].session.reason ? page->sessions[0].session.reason : "");
    g->has_exit = page->sessions[0].kernels[0].kernel.has_exit;
    g->exit_code = page->sessions[0].kernels[0].kernel.exit_code;
    return 0;
}

static inline struct grave grave_of(const struct uuid *id)
{
    struct grave g = { .id = *id };

    assert_int_equal(store_call(world.core->store, read_grave, &g, NULL), 0);
    return g;
}

#endif
