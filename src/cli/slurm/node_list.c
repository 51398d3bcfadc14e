/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that the user may see as nodes of Slurm, resource groups as partitions. */
#include "cli/slurm/node_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cli/client.h"

#define DEFAULT_GROUP "default"

static const char *node_text(const json_t *row, const char *member)
{
    const char *text = json_string_value(json_object_get(row, member));

    return text ? text : "";
}

static int64_t node_amount(const json_t *row, const char *member, const char *slot)
{
    const char *text = json_string_value(json_object_get(json_object_get(row, member), slot));

    return text ? strtoll(text, NULL, 10) : 0;
}

static const char *node_state(const json_t *row, const struct node *node)
{
    if (strcmp(node_text(row, "status"), "ALIVE") != 0)
        return "down";
    if (!json_is_true(json_object_get(row, "schedulable")))
        return "drain";
    if (node->free_cpus == node->cpus)
        return "idle";
    return node->free_cpus == 0 ? "alloc" : "mix";
}

static int node_compare(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    int order = strcmp(x->partition, y->partition);

    return order ? order : strcmp(x->id, y->id);
}

/* The partition of a job that names none, as far as that can be known here. */
static const char *node_default_partition(const struct cli *cli, const struct node_list *list)
{
    const char *chosen = cli_config_get(&cli->config, SETTING_RESOURCE_GROUP);
    bool is_one = list->count > 0;

    for (size_t i = 0; i < list->count; i++) {
        if (!chosen && strcmp(list->nodes[i].partition, DEFAULT_GROUP) == 0)
            return list->nodes[i].partition;
        is_one = is_one && strcmp(list->nodes[i].partition, list->nodes[0].partition) == 0;
    }
    return chosen ? chosen : is_one ? list->nodes[0].partition : NULL;
}

int node_list_read(struct cli *cli, struct node_list *ret, struct aq_error *err)
{
    const json_t *row;
    size_t i;
    int r = cli_call(cli, METHOD_GET, "/aliquot/v1/nodes", NULL, &ret->answer, err);

    if (r < 0)
        return r;
    json_array_foreach(json_object_get(ret->answer, "items"), i, row) {
        struct node *node;

        vec_grow(&ret->nodes, &ret->cap, ret->count + 1, sizeof(*ret->nodes));
        node = &ret->nodes[ret->count++];
        *node = (struct node){
            .id = node_text(row, "id"),
            .partition = node_text(row, "resource_group"),
            .reason = node_text(row, "drain_reason"),
            .cpus = node_amount(row, "total_slots", "cpu"),
            .free_cpus = node_amount(row, "free_slots", "cpu"),
            .mem_bytes = node_amount(row, "total_slots", "mem"),
            .free_mem_bytes = node_amount(row, "free_slots", "mem"),
            .gpus = node_amount(row, "total_slots", "cuda.device"),
        };
        node->state = node_state(row, node);
    }
    if (ret->count)
        qsort(ret->nodes, ret->count, sizeof(*ret->nodes), node_compare);
    ret->partition = node_default_partition(cli, ret);
    return 0;
}

void node_list_done(struct node_list *list)
{
    json_decref(list->answer);
    free(list->nodes);
}
