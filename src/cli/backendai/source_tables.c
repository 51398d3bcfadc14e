/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of Backend.AI 22.03. */
#include "cli/backendai/source_tables.h"

#include <stdio.h>
#include <string.h>

#include "model/accounts.h"

/* clang-format off */
#define TEXT(name) { name, SOURCE_TEXT, 0 }
#define KEY(name) { name, SOURCE_TEXT, SOURCE_MUST }
#define BOOL(name) { name, SOURCE_BOOL, 0 }
#define NUMBER(name) { name, SOURCE_NUMBER, 0 }
#define WORD(name) { name, SOURCE_WORD, 0 }
#define JSON(name) { name, SOURCE_JSON, 0 }
#define DOTFILES { "dotfiles", SOURCE_DOTFILES, 0 }
#define END { .name = "" }

static const struct source_column source_domains[] = { KEY("name"), DOTFILES, END };
static const struct source_column source_policies[] = {
    KEY("name"), WORD("default_for_unspecified"), END };
static const struct source_column source_resource_groups[] = {
    KEY("name"), TEXT("scheduler"), JSON("scheduler_opts"), END };
static const struct source_column source_groups[] = {
    KEY("id"), KEY("name"), KEY("domain_name"), DOTFILES, END };
static const struct source_column source_users[] = {
    KEY("uuid"), KEY("email"), TEXT("password"), WORD("status"), WORD("role"), END };
static const struct source_column source_members[] = { KEY("user_id"), KEY("group_id"), END };
static const struct source_column source_keypairs[] = {
    KEY("access_key"), KEY("secret_key"), KEY("user"), TEXT("bootstrap_script"), DOTFILES, END };
static const struct source_column source_for_domains[] = { KEY("scaling_group"), KEY("domain"), END };
static const struct source_column source_for_groups[] = { KEY("scaling_group"), KEY("group"), END };
static const struct source_column source_for_keypairs[] = { KEY("scaling_group"), KEY("access_key"), END };
static const struct source_column source_presets[] = {
    KEY("name"), JSON("resource_slots"), TEXT("shared_memory"), END };
static const struct source_column source_images[] = { TEXT("id"), TEXT("name"), TEXT("architecture"), END };
static const struct source_column source_aliases[] = { KEY("alias"), KEY("image"), END };
static const struct source_column source_folders[] = {
    TEXT("id"), TEXT("host"), TEXT("name"), WORD("usage_mode"), WORD("permission"),
    WORD("ownership_type"), TEXT("user"), TEXT("group"), TEXT("creator"), NUMBER("max_files"),
    NUMBER("max_size"), BOOL("cloneable"), TEXT("unmanaged_path"), END };

#define TAKEN(name, columns) { name, SOURCE_TAKEN, columns, NULL, 0 }
#define COUNTED(name, why) { name, SOURCE_COUNTED, NULL, why, 0 }

const struct source_table source_tables[] = {
    { "domains", SOURCE_TAKEN, source_domains, NULL, SOURCE_MUST, &domain_entity },
    { "keypair_resource_policies", SOURCE_TAKEN, source_policies, NULL, SOURCE_MUST, &keypair_policy_entity },
    { "scaling_groups", SOURCE_TAKEN, source_resource_groups, NULL, 0, &resource_group_entity },
    { "groups", SOURCE_TAKEN, source_groups, NULL, SOURCE_MUST, &project_entity },
    { "users", SOURCE_TAKEN, source_users, NULL, SOURCE_MUST, &user_entity },
    TAKEN("association_groups_users", source_members),
    { "keypairs", SOURCE_TAKEN, source_keypairs, NULL, SOURCE_MUST, &keypair_entity },
    TAKEN("sgroups_for_domains", source_for_domains),
    TAKEN("sgroups_for_groups", source_for_groups),
    TAKEN("sgroups_for_keypairs", source_for_keypairs),
    TAKEN("resource_presets", source_presets),
    TAKEN("image_aliases", source_aliases),
    { "images", SOURCE_KEPT, source_images,
      "agents pull an image when a session first asks for it, or 'aliquot image pull'", 0 },
    { "vfolders", SOURCE_KEPT, source_folders,
      "folders and their files stay with the old cluster; the report has the list", 0 },
    COUNTED("vfolder_permissions", "folders stay with the old cluster"),
    COUNTED("vfolder_invitations", "folders stay with the old cluster"),
    COUNTED("vfolder_attachment", "folders stay with the old cluster"),
    COUNTED("kernels", "sessions and what they used stay with the old cluster"),
    COUNTED("sessions", "sessions and what they used stay with the old cluster"),
    COUNTED("session_dependencies", "sessions stay with the old cluster"),
    COUNTED("session_templates", "session templates stay with the old cluster"),
    COUNTED("agents", "agents join this cluster by 'aliquot agent join'"),
    COUNTED("error_logs", "logs stay with the old cluster"),
    COUNTED("alembic_version", "it is the version of the old database"),
    { .name = NULL },
};
/* clang-format on */

const struct source_table *source_table_find(const char *name)
{
    for (const struct source_table *table = source_tables; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

static enum source_kind source_kind_of(const struct field *field)
{
    switch (field->type) {
    case FIELD_BOOL:
        return SOURCE_BOOL;
    case FIELD_INT32:
    case FIELD_INT:
        return SOURCE_NUMBER;
    case FIELD_SLOTS:
        return SOURCE_JSON;
    default:
        return SOURCE_TEXT;
    }
}

void source_table_columns(const struct source_table *table,
                          struct source_column ret[SOURCE_COLUMNS_MAX])
{
    const struct field *field = table->entity ? table->entity->fields : NULL;
    char buf[FIELD_NAME_MAX];
    const char *name;
    size_t own = 0, count;

    for (; table->columns[own].name[0]; own++)
        ret[own] = table->columns[own];
    for (count = own; field && field->names; field++) {
        size_t i = 0;

        ret[count] = (struct source_column){ .kind = source_kind_of(field) };
        name = field_backendai_name(field, buf);
        (void)snprintf(ret[count].name, FIELD_NAME_MAX, "%s", name);
        while (i < own && strcmp(ret[i].name, ret[count].name) != 0)
            i++;
        count += i == own && !(field->flags & FIELD_OURS);
    }
    ret[count] = (struct source_column){ .name = "" };
}
