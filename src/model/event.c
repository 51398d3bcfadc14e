/* SPDX-License-Identifier: Apache-2.0 */
/* Every change of durable state, as a value. */
#include "model/event.h"

#include <string.h>

#include "base/memory.h"
#include "base/vec.h"

static void event_done(struct event *e)
{
    switch (e->kind) {
    case EVENT_SESSION_CREATED:
        session_done(&e->session);
        break;
    case EVENT_SESSION_STATUS:
        free(e->session_status.status_data);
        free(e->session_status.subnet);
        break;
    case EVENT_SESSION_RENAMED:
    case EVENT_SESSION_PRIORITY:
    case EVENT_SESSION_FORCED:
    case EVENT_SESSION_EXPLAINED:
    case EVENT_SESSION_DISMISSED:
    case EVENT_SESSION_ACCESSED:
        free(e->session_change.reason);
        free(e->session_change.status_data);
        break;
    case EVENT_ARRAY_CREATED:
        if (e->array)
            session_array_done(e->array);
        free(e->array);
        break;
    case EVENT_ARRAY_CHANGED:
        array_set_done(&e->array_change.removed);
        break;
    case EVENT_BOOKING_CREATED:
    case EVENT_BOOKING_CHANGED:
        if (e->booking.row)
            booking_done(e->booking.row);
        free(e->booking.row);
        break;
    case EVENT_SERVICE_CREATED:
    case EVENT_SERVICE_CHANGED:
        if (e->service.row)
            model_service_done(e->service.row);
        free(e->service.row);
        break;
    case EVENT_SERVICE_TOKEN_ADDED:
    case EVENT_SERVICE_TOKEN_REMOVED:
    case EVENT_SERVICE_TOKEN_USED:
        model_service_token_done(&e->service_token.token);
        break;
    case EVENT_KERNEL_STATUS:
        free(e->kernel_status.agent_id);
        free(e->kernel_status.alloc);
        free(e->kernel_status.service_ports);
        free(e->kernel_status.last_stat);
        free(e->kernel_status.outputs);
        break;
    case EVENT_KERNEL_RESIZED:
        slots_done(&e->kernel_resized.requested);
        free(e->kernel_resized.alloc);
        break;
    case EVENT_AGENT_SAVED:
        agent_done(&e->agent);
        break;
    case EVENT_DOMAIN_SAVED:
        entity_done(&domain_entity, &e->domain);
        break;
    case EVENT_DOMAIN_RENAMED:
        free(e->domain_renamed.from);
        free(e->domain_renamed.to);
        break;
    case EVENT_PROJECT_SAVED:
        entity_done(&project_entity, &e->project);
        break;
    case EVENT_USER_SAVED:
        entity_done(&user_entity, &e->user.user);
        if (e->user.password_hash)
            explicit_bzero(e->user.password_hash, strlen(e->user.password_hash));
        free(e->user.password_hash);
        break;
    case EVENT_KEYPAIR_SAVED:
    case EVENT_KEYPAIR_REMOVED:
    case EVENT_KEYPAIR_USED:
        entity_done(&keypair_entity, &e->keypair);
        break;
    case EVENT_KEYPAIR_POLICY_SAVED:
        entity_done(&keypair_policy_entity, &e->policy);
        break;
    case EVENT_RESOURCE_GROUP_SAVED:
        entity_done(&resource_group_entity, &e->resource_group);
        break;
    case EVENT_ACCOUNT_PURGED:
        free(e->purge_account.name);
        break;
    case EVENT_RUN_ENDED:
        free(e->run_ended.agent_id);
        free(e->run_ended.text);
        free(e->run_ended.usage);
        break;
    case EVENT_SESSION_ATTEMPT:
        free(e->attempt.detail);
        break;
    case EVENT_SESSION_IDLE:
    case EVENT_REPLICA_CHANGED:
    case EVENT_ATTEMPTS_PRUNED:
    case EVENT_AGENT_STATUS:
    case EVENT_AGENT_REMOVED:
    case EVENT_SLOT_TYPE_KNOWN:
    case EVENT_REQUEST_ANSWERED:
    case EVENT_AUDITED:
    case EVENT_ROWS_ADDED:
    case EVENT_KIND_COUNT:
        break;
    }
}

struct event_batch *event_batch_new(void)
{
    return aq_alloc(sizeof(struct event_batch));
}

void event_batch_free(struct event_batch *batch)
{
    if (!batch)
        return;
    for (size_t i = 0; i < batch->count; i++)
        event_done(&batch->events[i]);
    free(batch->events);
    arena_done(&batch->arena);
    free(batch);
}

struct event *event_batch_add(struct event_batch *batch, enum event_kind kind, int64_t at_usec)
{
    struct event *e;

    /* Most batches of commands have one event: start with room for just that. */
    if (!batch->events) {
        batch->events = aq_alloc(sizeof(*batch->events));
        batch->cap = 1;
    }
    vec_grow(&batch->events, &batch->cap, batch->count + 1, sizeof(*batch->events));
    e = &batch->events[batch->count++];
    *e = (struct event){ .kind = kind, .at_usec = at_usec };
    return e;
}
