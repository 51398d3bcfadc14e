/* SPDX-License-Identifier: Apache-2.0 */
/* account_tables.h - columns and options of entities, from the tables of their members */
#ifndef AQ_CLI_ACCOUNT_TABLES_H
#define AQ_CLI_ACCOUNT_TABLES_H

#include "cli/opt.h"
#include "cli/output/output.h"
#include "model/entity.h"

/* The value of any option. */
union account_option {
    const char *text;
    int choice;
    bool is_set;
    struct cli_int number;
    struct cli_list list;
};

/* Both end as tables do, and are empty before account_tables_complete(). */
struct account_table {
    const struct entity *entity;
    struct column columns[ENTITY_FIELDS_MAX + 1];
    struct cli_opt create[ENTITY_FIELDS_MAX + 1]; /* without the name, which is the argument */
    struct cli_opt set[ENTITY_FIELDS_MAX + 1];
};

/* Options go to such a struct. */
struct account_options {
    union account_option members[ENTITY_FIELDS_MAX];
};

extern struct account_table account_domain_table, account_keypair_table, account_policy_table,
    account_project_table, account_resource_group_table, account_user_table, resource_preset_table;

/* Fill in the tables, at the start of the program. */
void account_tables_complete(void);

#endif
