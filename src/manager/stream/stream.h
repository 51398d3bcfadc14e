/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - limits of what goes into and out of sessions */
#ifndef AQ_MANAGER_STREAM_STREAM_H
#define AQ_MANAGER_STREAM_STREAM_H

#include <stdint.h>

struct api;

/* Of one transfer of files into or out of a session; 0 = any number. */
struct transfer_limits {
    int64_t bytes_max, files_max;
};

/* How much may go into or out of a session at one time. Before the first request. */
void stream_set_transfer_limits(struct api *api, const struct transfer_limits *limits);
/* How long proxies may lead users to apps without the manager. Before the first request. */
void stream_set_ticket_lifetime(struct api *api, int64_t usec);
/* How long code that is run in a session may take; 0 = any time. Before the first request. */
void stream_set_execution_timeout(struct api *api, int64_t usec);

#endif
