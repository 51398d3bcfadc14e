/* SPDX-License-Identifier: Apache-2.0 */
/* service_spec.h - what a revision of a model service says: options of "create" and "deploy" */
#ifndef AQ_CLI_SERVICE_SERVICE_SPEC_H
#define AQ_CLI_SERVICE_SERVICE_SPEC_H

#include "cli/request.h"

struct service_spec_opts {
    const char *image, *architecture, *model, *definition, *runtime, *health, *shmem, *bootstrap;
    struct cli_int port, health_status, health_interval, health_timeout, health_retries;
    struct cli_int ready_timeout, priority, cluster_size;
    int cluster_mode; /* CLI_CHOICE */
    struct cli_list resources, environ, mounts;
    const char *note;
};

/* The rows for a struct whose member 'spec' is the above. Members with a dot are nested by
 * service_nest().
 */
/* clang-format off */
#define SERVICE_SPEC_ROWS(type)                                                                    \
    { 0, "image", CLI_STR, offsetof(type, spec.image), "IMAGE", "image in which replicas run", "image" }, \
    { 'm', "model", CLI_STR, offsetof(type, spec.model), "FOLDER[:TARGET]",                        \
      "folder with the model, mounted read only; default TARGET /models", "model" },               \
    { 0, "definition", CLI_STR, offsetof(type, spec.definition), "PATH",                           \
      "model definition in the folder; default model-definition.yaml", "definition" },             \
    { 0, "runtime", CLI_STR, offsetof(type, spec.runtime), "RUNTIME",                              \
      "vllm, sglang, huggingface-tgi, nim, modular-max, cmd or custom", "runtime" },               \
    { 0, "port", CLI_INT, offsetof(type, spec.port), "N",                                          \
      "port at which a replica takes requests", "port" },                                          \
    { 0, "health", CLI_STR, offsetof(type, spec.health), "PATH",                                   \
      "path that a ready replica answers; default: it accepts a connection", "health.path" },      \
    { 0, "health-status", CLI_INT, offsetof(type, spec.health_status), "N",                        \
      "status expected from this path; default 200", "health.status" },                            \
    { 0, "health-interval", CLI_DURATION, offsetof(type, spec.health_interval), "TIME",            \
      "time between probes; default 10s", "health.interval" },                                     \
    { 0, "health-timeout", CLI_DURATION, offsetof(type, spec.health_timeout), "TIME",              \
      "how long a probe may take; default 15s", "health.timeout" },                                \
    { 0, "health-retries", CLI_INT, offsetof(type, spec.health_retries), "N",                      \
      "failed probes in a row that make a replica unhealthy; default 10", "health.retries" },      \
    { 0, "ready-timeout", CLI_DURATION, offsetof(type, spec.ready_timeout), "TIME",                \
      "a replica not ready after this long is replaced; default 30m", "ready_timeout" },           \
    { 'r', "resource", CLI_LIST, offsetof(type, spec.resources), "SLOT=AMOUNT",                    \
      "what each replica gets: cpu=2, mem=4g, cuda.shares=0.25; repeatable", "resources" },        \
    { 0, "shmem", CLI_STR, offsetof(type, spec.shmem), "SIZE", "shared memory, such as 1g",        \
      "shmem" },                                                                                   \
    { 'e', "env", CLI_LIST, offsetof(type, spec.environ), "NAME[=VALUE]",                          \
      "environment variable; without value: that of this shell; repeatable", "environ" },          \
    { 'v', "mount", CLI_LIST, offsetof(type, spec.mounts), "FOLDER[:TARGET[:ro]]",                 \
      "further folder to mount; repeatable", "mounts" },                                           \
    { 0, "bootstrap", CLI_STR, offsetof(type, spec.bootstrap), "FILE",                             \
      "shell script, read from here, that runs before the command", "bootstrap" },                 \
    { 0, "architecture", CLI_STR, offsetof(type, spec.architecture), "ARCH",                       \
      "of the image; default x86_64", "architecture" },                                            \
    { 0, "cluster-size", CLI_INT, offsetof(type, spec.cluster_size), "N",                          \
      "kernels of each replica; the first takes requests", "cluster_size" },                       \
    { 0, "cluster-mode", CLI_CHOICE, offsetof(type, spec.cluster_mode),                            \
      "single-node|multi-node", "whether its kernels may be on several nodes", "cluster_mode" },   \
    { 'p', "priority", CLI_INT, offsetof(type, spec.priority), "N",                                \
      "0 to 100; higher goes first, default 10", "priority" },                                     \
    { 0, "note", CLI_STR, offsetof(type, spec.note), "TEXT",                                       \
      "reason for this revision; 'service revisions' shows it", "note" }
/* clang-format on */

/* Set the members that the options and the command (words after the name; none = argc 0) say. With
 * 'goal', the spec of the present revision, amounts and variables that are not named stay as they are
 * there; NULL for a new service. 'rows' have SERVICE_SPEC_ROWS and may have others.
 */
int service_spec_add(const struct cli_opt *rows, const void *target,
                     const struct service_spec_opts *spec, const json_t *goal, int argc,
                     char *const argv[], json_t *body, struct aq_error *err);

#endif
