/* SPDX-License-Identifier: Apache-2.0 */
/* "nodes": what users may know of the machines that their sessions can run on. */
#include "cli/client.h"
#include "cli/list.h"
#include "cli/verbs.h"

static const struct column columns[] = {
    { "id", "NODE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, 0 },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "schedulable", "SCHEDULABLE", COLUMN_BOOL, 0 },
    { "architecture", "ARCHITECTURE", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "free_slots", "FREE", COLUMN_SLOTS, 0 },
    { "total_slots", "TOTAL", COLUMN_SLOTS, 0 },
    { "drain_reason", "REASON", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static int nodes_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *answer = NULL;
    const json_t *nodes;
    int r = cli_call(cli, METHOD_GET, "/aliquot/v1/nodes", NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    list_choose_ids(cli, columns);
    nodes = json_object_get(answer, "items");
    if (r == 0)
        r = list_print(cli, columns, nodes, err);
    if (r == 0)
        (void)list_note_empty(cli, nodes);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_nodes = {
    .name = "nodes",
    .args = "",
    .summary = "List the nodes that your sessions can run on, with what is free",
    .details = "Nodes of the resource groups that you may use. SCHEDULABLE is 'no' while a node\n"
               "takes no new sessions, and REASON says why, if a reason was given.\n"
               "'aliquot agent ls' shows administrators more.",
    .examples = "aliquot nodes\n"
                "aliquot nodes --sort resource_group,id -o json",
    .if_empty = "you may use no resource group that has nodes; an administrator can allow one",
    .run = nodes_run,
};
