/* SPDX-License-Identifier: Apache-2.0 */
/* app_activity.h - what of the bytes that go into an app is a person's work
 *
 * A page that nobody looks at goes on asking its server how it is: the same requests again and
 * again, and pings of WebSockets. These are no work. Requests that change something are, and so are
 * requests that were not made lately, data of WebSockets, and whatever is not HTTP. Pure.
 *
 * The manager counts so what it passes on, and a proxy what it passes on without the manager.
 */
#ifndef AQ_HTTP_APP_ACTIVITY_H
#define AQ_HTTP_APP_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

enum app_activity_state {
    APP_ACTIVITY_HEAD,  /* of a request, or nothing has come */
    APP_ACTIVITY_BODY,  /* 'left' bytes */
    APP_ACTIVITY_FRAME, /* of a WebSocket: its head */
    APP_ACTIVITY_DATA,  /* of a frame: 'left' bytes */
    APP_ACTIVITY_OTHER  /* not HTTP: all counts */
};

struct app_activity {
    enum app_activity_state state;
    struct strbuf held; /* of a head that is not whole */
    uint64_t left;
    bool is_control; /* of this frame */
};

/* Of what an app sends so many bytes count as one of what it gets: a page that polls gets little,
 * and a download gives nothing.
 */
#define APP_ACTIVITY_OUTPUT_PER_BYTE 2048

/* What was found in some bytes. */
struct app_activity_found {
    int64_t bytes; /* of work: the caller knows how many are enough */
    bool is_work;  /* enough by itself */
    /* A request was made that may be one of a page that polls: its hash. True = made lately. */
    bool (*is_repeated)(void *data, uint64_t hash);
    void *data;
};

/* A connection begins. */
void app_activity_begin(struct app_activity *a);
void app_activity_done(struct app_activity *a);

/* The next bytes to the app; 'found' is added to. */
void app_activity_take(struct app_activity *a, const char *bytes, size_t len,
                       struct app_activity_found *found) AQ_UNTRUSTED;

/* Is what was found in bytes for this app enough to be work, however few they are? */
bool app_activity_is_work(const struct app_activity *a, const char *app,
                          const struct app_activity_found *found);

#endif
