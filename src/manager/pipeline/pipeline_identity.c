/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_identity.c - what a node does and needs, as a hash */
#include "manager/pipeline/pipeline_identity.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "manager/call/api.h"

/* Texts of nodes as the file has them, and the values in them. */
#define IDENTITY_BYTES_MAX (2 * (size_t)PIPELINE_NODES_BYTES_MAX)

void pipeline_hash(const char *text, size_t len, char ret[PIPELINE_HASH_MAX])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx sha;

    sha256_init(&sha);
    sha256_update(&sha, len, (const uint8_t *)text);
    sha256_digest(&sha, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

const char **pipeline_identify_nodes(const struct pipeline *p, const json_t *parameters,
                                     struct arena *arena, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, all = STRBUF_INIT;
    AQ_CLEANUP(pipeline_identifier_done) struct pipeline_identifier of = { .arena = ARENA_INIT };
    const char **nodes = arena_array(arena, p->node_count, sizeof(*nodes));
    char(*tasks)[PIPELINE_HASH_MAX] = arena_array(arena, p->task_count, sizeof(*tasks));
    char hash[PIPELINE_HASH_MAX];
    size_t bytes = 0;

    for (size_t i = 0; i < p->task_count; i++) {
        const struct pipeline_task *task = &p->tasks[i];

        strbuf_clear(&all);
        for (size_t k = task->node; k < task->node + task->node_count; k++) {
            strbuf_clear(&text);
            pipeline_identify(&of, p, k, parameters, &text);
            if ((bytes += text.len) > IDENTITY_BYTES_MAX) {
                (void)api_fail_param(err, "parameters",
                                     "with the values of parameters the tasks have more than %d "
                                     "MiB of text; keep long texts in a folder",
                                     PIPELINE_NODES_BYTES_MAX >> 20);
                return NULL;
            }
            for (size_t n = 0; n < task->need_count; n++)
                strbuf_addf(&text, "%s\n", tasks[task->needs[n]]);
            pipeline_hash(text.data, text.len, hash);
            nodes[k] = arena_strdup(arena, hash);
            strbuf_adds(&all, hash);
        }
        pipeline_hash(all.data, all.len, tasks[i]);
    }
    return nodes;
}

const char *pipeline_hash_inputs(const struct pipeline_context *context, struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char hash[PIPELINE_HASH_MAX];

    pipeline_describe_inputs(context, &text);
    if (!text.len)
        return NULL;
    pipeline_hash(text.data, text.len, hash);
    return arena_strdup(arena, hash);
}
