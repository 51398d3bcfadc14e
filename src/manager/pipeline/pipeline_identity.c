/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_identity.c - what a node does and needs, as a hash */
#include "manager/pipeline/pipeline_identity.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

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
                                     struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, all = STRBUF_INIT;
    const char **nodes = arena_array(arena, p->node_count, sizeof(*nodes));
    char(*tasks)[PIPELINE_HASH_MAX] = arena_array(arena, p->task_count, sizeof(*tasks));
    char hash[PIPELINE_HASH_MAX];

    for (size_t i = 0; i < p->task_count; i++) {
        const struct pipeline_task *task = &p->tasks[i];

        strbuf_clear(&all);
        for (size_t k = task->node; k < task->node + task->node_count; k++) {
            strbuf_clear(&text);
            pipeline_identify(p, k, parameters, &text);
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
