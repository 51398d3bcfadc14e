/* SPDX-License-Identifier: Apache-2.0 */
/* service_rollout.h - how a new revision of a service takes over: options, and a picture of it */
#ifndef AQ_CLI_SERVICE_SERVICE_ROLLOUT_H
#define AQ_CLI_SERVICE_SERVICE_ROLLOUT_H

#include "cli/request.h"

struct service_rollout_opts {
    int strategy, when_full; /* CLI_CHOICE */
    const char *max_surge, *max_unavailable, *steps, *abort_errors, *abort_latency;
    struct cli_int step_interval, promote_after, keep, abort_failures, abort_stalled;
    bool promote_manually;
};

/* The rows for a struct whose member 'rollout' is the above. Members with a dot are nested by
 * service_nest().
 */
/* clang-format off */
#define SERVICE_ROLLOUT_ROWS(type)                                                                 \
    { 0, "strategy", CLI_CHOICE, offsetof(type, rollout.strategy), "rolling|blue-green|canary",    \
      "how a new revision takes over; default rolling", "rollout.strategy" },                      \
    { 0, "max-surge", CLI_STR, offsetof(type, rollout.max_surge), "N|N%",                          \
      "replicas beyond the wanted number during a rollout; default 1" },                           \
    { 0, "max-unavailable", CLI_STR, offsetof(type, rollout.max_unavailable), "N|N%",              \
      "ready replicas that may be missing meanwhile; default 0" },                                 \
    { 0, "steps", CLI_STR, offsetof(type, rollout.steps), "N,N...",                                \
      "canary: percentages of requests; default 20,40,60,80" },                                    \
    { 0, "step-interval", CLI_DURATION, offsetof(type, rollout.step_interval), "TIME",             \
      "canary: how long each step lasts; default 5m", "rollout.step_interval" },                   \
    { 0, "promote-after", CLI_DURATION, offsetof(type, rollout.promote_after), "TIME",             \
      "blue-green: promote this long after all are ready" },                                       \
    { 0, "promote-manually", CLI_FLAG, offsetof(type, rollout.promote_manually), NULL,             \
      "blue-green: wait for 'service promote'; the default" },                                     \
    { 0, "keep", CLI_DURATION, offsetof(type, rollout.keep), "TIME",                               \
      "blue-green: keep old replicas this long afterwards; default 0", "rollout.keep" },           \
    { 0, "when-full", CLI_CHOICE, offsetof(type, rollout.when_full), "wait|replace|share",         \
      "if no agent has room for a new replica; default wait", "rollout.when_full" },               \
    { 0, "abort-failures", CLI_INT, offsetof(type, rollout.abort_failures), "N",                   \
      "go back after N failed new replicas; default 3, 0 = never" },                               \
    { 0, "abort-errors", CLI_STR, offsetof(type, rollout.abort_errors), "RATIO",                   \
      "go back if the error rate rises by this much, such as 5%" },                                \
    { 0, "abort-latency", CLI_STR, offsetof(type, rollout.abort_latency), "FACTOR",                \
      "go back if answers take this many times as long, such as 2" },                              \
    { 0, "abort-stalled", CLI_DURATION, offsetof(type, rollout.abort_stalled), "TIME",             \
      "go back after this long without progress; default never" }
/* clang-format on */

/* Set the members that the rows do not set by themselves. -EINVAL of kind usage. */
int service_rollout_add(const struct service_rollout_opts *opts, json_t *body,
                        struct aq_error *err);

bool service_rollout_is_under_way(const json_t *service);

/* One that is under way, or the last one if it was aborted: what people should see unasked. */
bool service_has_rollout(const json_t *service);

/* "canary max-surge=1 steps=5,25,50 step-interval=5m", as options name the settings. */
json_t *service_rollout_text(const struct output *o, const json_t *service);

/* Old and new replicas as bars with their parts of requests, the step, and why; lines. */
void service_write_rollout(const struct output *o, const json_t *service, struct strbuf *out);

#endif
