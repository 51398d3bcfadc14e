/* SPDX-License-Identifier: Apache-2.0 */
/* streams.h - long answers end with the right to them
 *
 * Events, followed logs, terminals and commands in sessions last longer than the check of
 * their request. While any is open, all are looked at every half second: who has been
 * deactivated or removed, or whose keypair or domain has, loses them.
 *
 * What serves the stream owns it and has one end: it closes the stream, ends its subscriptions and
 * what it has at agents, frees itself, and answers the request last. An answer may bring the next
 * request, and nothing of the old one must be found by that.
 */
#ifndef AQ_MANAGER_CALL_STREAMS_H
#define AQ_MANAGER_CALL_STREAMS_H

#include "base/list.h"
#include "manager/call/api.h"

/* Part of what serves the stream; zeroed before. */
struct api_stream {
    struct list link;
    struct api_streams *streams; /* NULL = not open */
    char access_key[ACCESS_KEY_MAX];
    void (*end)(void *data, const struct aq_error *err); /* end it, for this reason */
    void *data;
};

struct api_streams *api_streams_new(const struct core *core);
void api_streams_free(struct api_streams *streams); /* after the last stream */

/* From now on the keypair of whom it is must stay active; else 'end' is called, once, when the
 * stream is closed already as far as this file is concerned.
 */
void api_stream_open(const struct api *api, const char *access_key, struct api_stream *stream,
                     void (*end)(void *data, const struct aq_error *err), void *data);
/* Why this key has no right to a stream any more; NULL = it has. */
const char *api_stream_why_not(const struct core *core, const char *access_key);
/* It has ended by itself. Of one that is not open nothing happens. */
void api_stream_close(struct api_stream *stream);

#endif
