/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and options from the tables of entities. */
#include "cli/account_tables.h"

#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "model/accounts.h"
#include "model/resource_preset.h"

struct account_table account_domain_table = { .entity = &domain_entity };
struct account_table account_keypair_table = { .entity = &keypair_entity };
struct account_table account_policy_table = { .entity = &keypair_policy_entity };
struct account_table account_project_table = { .entity = &project_entity };
struct account_table account_resource_group_table = { .entity = &resource_group_entity };
struct account_table account_user_table = { .entity = &user_entity };
struct account_table resource_preset_table = { .entity = &resource_preset_entity };

/* Fields in the order of their places. */
struct account_order {
    const struct field *items[ENTITY_FIELDS_MAX];
    size_t count;
};

static unsigned account_place(const struct field *field)
{
    return field->place ? field->place : UINT_MAX;
}

static void account_order_add(struct account_order *order, const struct field *field)
{
    size_t at = order->count++;

    for (; at && account_place(order->items[at - 1]) > account_place(field); at--)
        order->items[at] = order->items[at - 1];
    order->items[at] = field;
}

/* An object of amounts, kept as a text. */
static bool account_has_slots(const struct field *field)
{
    return field->type == FIELD_JSON_TEXT && field->arg;
}

/* ---- columns ---- */

static struct column account_column(const struct field *field)
{
    struct column column = { .key = aq_strndup(field->names, field_name_len(field)),
                             .title = field->title };

    switch (field->type) {
    case FIELD_BOOL:
    case FIELD_MAYBE:
        column.kind = COLUMN_BOOL;
        break;
    case FIELD_INT32:
    case FIELD_INT:
    case FIELD_USEC:
        column.kind = COLUMN_NUMBER;
        break;
    case FIELD_SLOTS:
        column.kind = COLUMN_SLOTS;
        break;
    case FIELD_SIZE:
        column.kind = COLUMN_BYTES;
        break;
    case FIELD_TIME:
        column.kind = COLUMN_TIME;
        break;
    case FIELD_OWN:
    case FIELD_STR_LIST:
        column.kind = COLUMN_NAMES;
        break;
    case FIELD_JSON_TEXT:
        column.kind = account_has_slots(field) ? COLUMN_SLOTS : COLUMN_TEXT;
        break;
    default:
        column.kind = field->flags & FIELD_STATUS ? COLUMN_STATUS : COLUMN_TEXT;
        break;
    }
    column.flags = (field->flags & FIELD_NAME ? COLUMN_IS_NAME : 0)
                   | (field->flags & FIELD_WIDE ? COLUMN_IS_WIDE : 0)
                   | (field->flags & FIELD_EXTRA ? COLUMN_IS_EXTRA : 0)
                   | (field->flags & FIELD_SHRINKS ? COLUMN_MAY_SHRINK : 0);
    return column;
}

/* In their order, or that of their places; of members what may shrink is last. Members without a
 * title are options only: a column without one would end the table.
 */
static void account_add_columns(const struct entity *entity, struct column *ret)
{
    struct account_order order = { .count = 0 };

    for (const struct field *field = entity->columns; field && field->names; field++)
        if (field->title)
            *ret++ = account_column(field);
    if (entity->columns)
        return;
    for (const struct field *field = entity->fields; field->names; field++)
        if (field->title)
            account_order_add(&order, field);
    for (unsigned shrinks = 0; shrinks < 2; shrinks++)
        for (size_t i = 0; i < order.count; i++)
            if (!(order.items[i]->flags & FIELD_SHRINKS) == !shrinks)
                *ret++ = account_column(order.items[i]);
}

/* ---- options ---- */

/* "max_priority" as "max-priority", of "r|resource" the second; secrets are read from stdin */
static char *account_option_name(const struct field *field)
{
    char *name = field->option ? aq_strdup(field->option + strcspn(field->option, "|") + 1)
                               : aq_format("%.*s%s", (int)field_name_len(field), field->names,
                                           field->flags & FIELD_SECRET ? "_stdin" : "");

    for (char *c = name; *c; c++)
        if (*c == '_')
            *c = '-';
    return name;
}

static struct cli_opt account_option(const struct field *field, size_t place)
{
    struct cli_opt opt = { .letter = field->option ? field->option[0] : 0,
                           .name = account_option_name(field),
                           .offset = place * sizeof(union account_option),
                           .help = field->help,
                           .type = CLI_FLAG };

    if (field->flags & FIELD_SECRET)
        return opt;
    opt.member = aq_strndup(field->names, field_name_len(field));
    switch (field->type) {
    case FIELD_BOOL:
    case FIELD_MAYBE:
        opt.type = CLI_CHOICE;
        opt.arg = "yes|no";
        break;
    case FIELD_INT32:
    case FIELD_INT:
        opt.type = field->flags & FIELD_SECONDS ? CLI_LIMIT : CLI_INT;
        opt.arg = field->flags & FIELD_SECONDS ? "TIME" : "N";
        break;
    case FIELD_USEC:
        opt.type = CLI_DURATION;
        opt.arg = "TIME";
        break;
    case FIELD_SLOTS:
        opt.type = CLI_LIST;
        opt.arg = "SLOT=AMOUNT";
        break;
    case FIELD_OBJECT:
        opt.type = CLI_LIST;
        opt.arg = "KEY=VALUE";
        break;
    case FIELD_JSON_TEXT:
        opt.type = account_has_slots(field) ? CLI_LIST : CLI_STR;
        opt.arg = account_has_slots(field) ? field->arg : "JSON";
        break;
    case FIELD_SIZE:
        opt.type = CLI_STR;
        opt.arg = "SIZE";
        break;
    case FIELD_OWN:
    case FIELD_STR_LIST:
        opt.type = CLI_LIST;
        opt.arg = field->arg;
        break;
    default:
        opt.type = field->words ? CLI_CHOICE : CLI_STR;
        opt.arg = field->words ? field->words : field->arg ? field->arg : "TEXT";
        break;
    }
    return opt;
}

/* Those of a request, without members that have a flag of 'without'. */
static void account_add_options(const struct field *request, unsigned without, struct cli_opt *ret)
{
    struct account_order order = { .count = 0 };

    for (const struct field *field = request; field->names; field++)
        if (field->help && !(field->flags & without))
            account_order_add(&order, field);
    for (size_t i = 0; i < order.count; i++)
        ret[i] = account_option(order.items[i], i);
}

void account_tables_complete(void)
{
    /* clang-format off */
    struct account_table *const tables[] = {
        &account_domain_table, &account_keypair_table, &account_policy_table,
        &account_project_table, &account_resource_group_table, &account_user_table,
        &resource_preset_table,
    };
    /* clang-format on */

    for (size_t i = 0; i < AQ_COUNT(tables); i++) {
        account_add_columns(tables[i]->entity, tables[i]->columns);
        account_add_options(tables[i]->entity->create, FIELD_NAME, tables[i]->create);
        account_add_options(tables[i]->entity->change, 0, tables[i]->set);
    }
}
