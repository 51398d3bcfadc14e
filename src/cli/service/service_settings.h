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
      "how many run; of a range as many as requests need" },                                       \
    { 0, "target", CLI_LIST, offsetof(type, settings.targets), "SIGNAL=VALUE",                     \
      "what one replica should have; default in_flight=8" },                                       \
    { 0, "window", CLI_DURATION, offsetof(type, settings.window), "TIME",                          \
      "how long replicas outlast the need for them; default 5m", "scaling.window" },               \
    { 0, "idle", CLI_DURATION, offsetof(type, settings.idle), "TIME",                              \
      "sleep after so long without requests; default 10m", "scaling.idle" },                       \
    { 0, "share-min", CLI_STR, offsetof(type, settings.share_min), "SHARE",                        \
      "least part of a GPU that a replica has, such as 0.25" },                                    \
    { 0, "share-max", CLI_STR, offsetof(type, settings.share_max), "SHARE|none",                   \
      "largest: it grows so far before replicas are added" },                                      \
    { 0, "scaling", CLI_STR, offsetof(type, settings.scaling), "FILE",                             \
      "rules as JSON, in place of these five; - is standard input" },                              \
    { 0, "cap", CLI_INT, offsetof(type, settings.cap), "N",                                        \
      "requests under way in a replica, others wait; default 0, no limit", "limits.cap" },         \
    { 0, "queue", CLI_INT, offsetof(type, settings.queue), "N",                                    \
      "requests that wait, in each proxy; default 1000", "limits.queue" },                         \
    { 0, "queue-bytes", CLI_STR, offsetof(type, settings.queue_bytes), "SIZE",                     \
      "and their bytes; default 64m", "limits.queue_bytes" },                                      \
    { 0, "queue-timeout", CLI_DURATION, offsetof(type, settings.queue_timeout), "TIME",            \
      "how long a request waits for a replica; default 10m", "limits.queue_timeout" },             \
    { 0, "request-timeout", CLI_DURATION, offsetof(type, settings.request_timeout), "TIME",        \
      "how long a replica may send no byte of an answer; default 10m",                             \
      "limits.request_timeout" },                                                                  \
    { 0, "drain-timeout", CLI_DURATION, offsetof(type, settings.drain_timeout), "TIME",            \
      "time for the last requests of a replica that ends; default 10m", "limits.drain_timeout" },  \
    { 0, "affinity", CLI_STR, offsetof(type, settings.affinity), "header:NAME|prompt|none",        \
      "requests that are alike in this go to one replica", "limits.affinity" },                    \
    { 0, "tag", CLI_STR, offsetof(type, settings.tag), "TEXT", "a note that lists show", "tag" }
/* clang-format on */

/* Set what the rows do not say by themselves: "replicas", "scaling" or members of it as
 * "scaling.rules". -EINVAL of kind usage.
 */
int service_settings_add(const struct service_settings *settings, json_t *body,
                         struct aq_error *err);

#endif
