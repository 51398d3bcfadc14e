/* SPDX-License-Identifier: Apache-2.0 */
/* service_settings.h - what can change of a service without a new revision */
#ifndef AQ_CLI_SERVICE_SERVICE_SETTINGS_H
#define AQ_CLI_SERVICE_SERVICE_SETTINGS_H

#include "cli/request.h"

struct service_settings {
    const char *replicas, *affinity, *tag, *queue_bytes;
    struct cli_int cap, queue, queue_timeout, request_timeout, drain_timeout;
    const char *scaling;     /* a file */
    struct cli_list targets; /* "SIGNAL=VALUE" */
    struct cli_int window, idle;
    const char *share_min, *share_max; /* numbers; "none" = no bounds */
};

/* The rows for a struct whose member 'settings' is the above. */
/* clang-format off */
#define SERVICE_SETTINGS_ROWS(type)                                                                \
    { 'n', "replicas", CLI_STR, offsetof(type, settings.replicas), "N|MIN-MAX",                    \
      "number, default 1; with a range, as many as requests need" },                               \
    { 0, "target", CLI_LIST, offsetof(type, settings.targets), "SIGNAL=VALUE",                     \
      "load of one replica of a range; default in_flight=8; repeatable" },                         \
    { 0, "window", CLI_DURATION, offsetof(type, settings.window), "TIME",                          \
      "remove replicas after this long without a need; default 5m", "scaling.window" },            \
    { 0, "idle", CLI_DURATION, offsetof(type, settings.idle), "TIME",                              \
      "sleep after this long without requests, if MIN is 0; default 10m", "scaling.idle" },        \
    { 0, "share-min", CLI_STR, offsetof(type, settings.share_min), "SHARE",                        \
      "smallest share of a GPU that a replica gets, such as 0.25" },                               \
    { 0, "share-max", CLI_STR, offsetof(type, settings.share_max), "SHARE|none",                   \
      "largest share; it grows up to this before replicas are added" },                            \
    { 0, "scaling", CLI_STR, offsetof(type, settings.scaling), "FILE",                             \
      "rules as JSON, in place of the five above; - is standard input" },                          \
    { 0, "cap", CLI_INT, offsetof(type, settings.cap), "N",                                        \
      "concurrent requests in a replica, others wait; default 0, no limit", "limits.cap" },        \
    { 0, "queue", CLI_INT, offsetof(type, settings.queue), "N",                                    \
      "requests that may wait in each proxy; default 1000", "limits.queue" },                      \
    { 0, "queue-bytes", CLI_STR, offsetof(type, settings.queue_bytes), "SIZE",                     \
      "bytes of requests that may wait in each proxy; default 64m", "limits.queue_bytes" },        \
    { 0, "queue-timeout", CLI_DURATION, offsetof(type, settings.queue_timeout), "TIME",            \
      "how long a request waits for a replica; default 10m", "limits.queue_timeout" },             \
    { 0, "request-timeout", CLI_DURATION, offsetof(type, settings.request_timeout), "TIME",        \
      "longest silence of a replica during an answer; default 10m",                                \
      "limits.request_timeout" },                                                                  \
    { 0, "drain-timeout", CLI_DURATION, offsetof(type, settings.drain_timeout), "TIME",            \
      "how long a replica that ends may finish requests; default 10m", "limits.drain_timeout" },   \
    { 0, "affinity", CLI_STR, offsetof(type, settings.affinity), "header:NAME|prompt|none",        \
      "requests that have this in common go to one replica", "limits.affinity" },                  \
    { 0, "tag", CLI_STR, offsetof(type, settings.tag), "TEXT", "a note that lists show", "tag" }
/* clang-format on */

/* Set what the rows do not say by themselves: "replicas", "scaling" or members of it as
 * "scaling.rules". -EINVAL of kind usage.
 */
int service_settings_add(const struct service_settings *settings, json_t *body,
                         struct aq_error *err);

#endif
