/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - requests that wait for a replica, or for room in one
 *
 * Tokens take turns, and each token's requests go in the order in which they came. Where the queue is
 * full, the token with the most waiting requests gives up its latest for one of a token with fewer:
 * so one busy client does not lock out the others.
 */
#include <stdio.h>

#include "base/clock.h"
#include "proxy/serving/service.h"

/* Seconds after which a refused client asks again. */
#define RETRY_SEC 1

static struct token *queue_find_longest(const struct served *service)
{
    struct token *longest = NULL;

    LIST_FOREACH(it, &service->turns) {
        struct token *token = LIST_ENTRY(it, struct token, turn_link);

        if (!longest || token->waiting_count > longest->waiting_count)
            longest = token;
    }
    return longest;
}

static void queue_refuse(struct call *call, const char *text)
{
    served_count_refused(call->service, call->token);
    call_refuse(call, 429, "rate_limit_exceeded", RETRY_SEC, text);
}

/* Room for one more call of this token; false if it has to go. */
static bool queue_make_room(struct call *call)
{
    struct served *service = call->service;
    struct token *longest = queue_find_longest(service);
    char text[200];

    if (service->waiting_count < served_queue_max(service)
        && service->waiting_bytes < served_queue_bytes(service))
        return true;
    if (longest && longest->waiting_count > call->token->waiting_count + 1) {
        queue_refuse(LIST_ENTRY(longest->waiting.prev, struct call, waiting_link),
                     "Too many requests of this token wait for the model service, whose queue is "
                     "full.");
        return true;
    }
    if (call->token->waiting_count && call->token->waiting_count < service->waiting_count) {
        queue_refuse(call, "The queue of the model service is full, and this token has its share "
                           "of it.");
        return false;
    }
    served_count_refused(service, call->token);
    (void)snprintf(text, sizeof(text),
                   "The queue of the model service is full: %zu requests wait for it.",
                   service->waiting_count);
    call_refuse(call, 503, "queue_full", RETRY_SEC, text);
    return false;
}

bool queue_add(struct call *call)
{
    struct served *service = call->service;
    struct token *token = call->token;
    bool wakes = !service->open_usec && !service->waiting_count;

    if (!queue_make_room(call))
        return false;
    call->state = CALL_WAITS;
    call->queued_usec = clock_monotonic_usec();
    if (!token->waiting_count++)
        list_add(&service->turns, &token->turn_link);
    list_add(&token->waiting, &call->waiting_link);
    service->waiting_count++;
    queue_grow(call, call->browser->pump.ends[PUMP_KERNEL].early.len);
    served_report(service, wakes);
    return true;
}

void queue_remove(struct call *call)
{
    struct served *service = call->service;
    struct token *token = call->token;

    list_remove(&call->waiting_link);
    if (!--token->waiting_count)
        list_remove(&token->turn_link);
    service->waiting_count--;
    service->waiting_bytes -= call->queued_bytes;
    call->queued_bytes = 0;
    served_report(service, false);
}

void queue_take(struct call *call)
{
    struct token *token = call->token;

    queue_remove(call);
    if (!token->waiting_count)
        return;
    list_remove(&token->turn_link);
    list_add(&call->service->turns, &token->turn_link);
}

struct call *queue_next(const struct served *service)
{
    const struct token *token;

    if (list_is_empty(&service->turns))
        return NULL;
    token = LIST_ENTRY(service->turns.next, struct token, turn_link);
    return LIST_ENTRY(token->waiting.next, struct call, waiting_link);
}

void queue_grow(struct call *call, size_t len)
{
    struct served *service = call->service;

    call->queued_bytes += len;
    service->waiting_bytes += len;
    if (service->waiting_bytes >= served_queue_bytes(service))
        stream_pause(call->browser->stream);
}
