/* SPDX-License-Identifier: Apache-2.0 */
/* StorageVolume: hosts of folders that are connected. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "manager/call/graphql/resolve.h"
#include "manager/folder/storage_hosts.h"
#include "manager/folder/folder_feature.h"
#include "store/filter.h"

#define VOLUMES_USUAL 10

/* In the request's arena. */
#define VOLUMES_MAX 1000 /* of a page */

struct volume_row {
    const char *name, *backend, *usage;
    struct gql_value capabilities;
};

static const struct filter_field volume_fields[] = {
    { .name = "id", .type = FILTER_STRING, .offset = offsetof(struct volume_row, name) },
    { .name = "backend", .type = FILTER_STRING, .offset = offsetof(struct volume_row, backend) },
};

static struct gql_value volume_copy_words(struct arena *arena, const json_t *list)
{
    struct gql_value *items = arena_array(arena, json_array_size(list) + 1, sizeof(*items));
    uint32_t count = 0;
    const json_t *word;
    size_t i;

    json_array_foreach(list, i, word)
        if (json_is_string(word))
            items[count++] = gql_text(arena_strdup(arena, json_string_value(word)));
    return gql_list(items, count);
}

static void volume_fill(struct arena *arena, const struct storage_host *host,
                        struct volume_row *row)
{
    char usage[96];

    (void)snprintf(usage, sizeof(usage),
                   "{\"used_bytes\":%" PRId64 ",\"capacity_bytes\":%" PRId64 "}", host->used,
                   host->capacity);
    row->name = arena_strdup(arena, host->name);
    row->backend = arena_strdup(arena, host->backend);
    row->usage = arena_strdup(arena, usage);
    row->capabilities = volume_copy_words(arena, host->capabilities);
}

static bool volume_may(struct gql_call *call)
{
    struct aq_error err = { 0 };

    if (gql_need(call->context, API_SUPERADMIN, &err) == 0)
        return true;
    (void)gql_call_fail(call, "%s", err.text);
    return false;
}

static const struct storage_hosts *volume_hosts(const struct gql_call *call)
{
    return ((const struct gql_context *)call->context)->api->folder->hosts;
}

static int volume_get(struct gql_call *call)
{
    const char *name = gql_arg_text(call, 0);
    const struct storage_host *host;
    struct volume_row *row;

    if (!volume_may(call))
        return GQL_DONE;
    host = name ? storage_hosts_find(volume_hosts(call), name) : NULL;
    if (!host)
        return GQL_DONE;
    row = arena_alloc(call->arena, sizeof(*row));
    volume_fill(call->arena, host, row);
    call->results[0] = gql_object(row);
    return GQL_DONE;
}

static int volume_compare(const void *a, const void *b, void *data)
{
    int r = order_compare(data, a, b);

    return r ? r
             : strcmp(((const struct volume_row *)a)->name, ((const struct volume_row *)b)->name);
}

/* Those that the filter finds, in order. */
static int volume_select(struct gql_call *call, struct volume_row *rows, size_t *ret_count,
                         struct aq_error *err)
{
    const char *filter = gql_arg_text(call, 2), *by = gql_arg_text(call, 3);
    const struct filter_program *program = NULL;
    struct order order = { .count = 0 };
    const struct storage_host *hosts;
    size_t count, found = 0;

    if ((filter
         && filter_read(filter, volume_fields, AQ_COUNT(volume_fields), call->arena, &program, err)
                < 0)
        || (by && order_read(by, volume_fields, AQ_COUNT(volume_fields), &order, err) < 0))
        return -err->code;
    hosts = storage_hosts_list(volume_hosts(call), &count);
    for (size_t i = 0; i < count; i++) {
        volume_fill(call->arena, &hosts[i], &rows[found]);
        found += !program || filter_match(program, &rows[found]);
    }
    qsort_r(rows, found, sizeof(*rows), volume_compare, &order);
    *ret_count = found;
    return 0;
}

static int volume_list(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_PAGE, NULL, 0);
    struct gql_rows_page *page = arena_alloc(call->arena, sizeof(*page));
    struct volume_row *rows;
    struct aq_error err = { 0 };
    size_t count = 0, first, shown;

    if (!volume_may(call))
        return GQL_DONE;
    (void)storage_hosts_list(volume_hosts(call), &count);
    rows = arena_array(call->arena, count + 1, sizeof(*rows));
    if (gql_fetch_page_args(fetch, VOLUMES_MAX, &err) < 0
        || volume_select(call, rows, &count, &err) < 0)
        return gql_fetch_fail(fetch, &err);
    first = AQ_MIN((size_t)fetch->query.offset, count);
    shown = AQ_MIN((size_t)fetch->query.limit, count - first);
    page->items = gql_rows_of(call->arena, rows + first, (uint32_t)shown, sizeof(*rows));
    page->total = (int64_t)count;
    call->results[0] = gql_object(page);
    return GQL_DONE;
}

/* ---- what may be allowed on one ---- */

static int volume_get_permissions(struct gql_call *call)
{
    call->results[0] = gql_object(call);
    return GQL_DONE;
}

static struct gql_value volume_get_words(struct gql_get *get, const void *parent)
{
    (void)parent;
    return gql_words(get->arena,
                     "create-vfolder modify-vfolder delete-vfolder mount-in-session upload-file"
                     " download-file invite-others set-user-specific-permission",
                     " ");
}

/* What is before the volume in its name. */
static struct gql_value volume_get_proxy(struct gql_get *get, const void *parent)
{
    const char *name = ((const struct volume_row *)parent)->name;

    return gql_text(arena_strndup(get->arena, name, strcspn(name, ":")));
}

static const struct gql_entry storage_volume_entries[] = {
    { SCHEMA_FIELD_Queries_storage_volume, GQL_CALL(volume_get) },
    { SCHEMA_FIELD_Queries_storage_volume_list, GQL_CALL_COST(volume_list, 5, VOLUMES_USUAL) },
    { SCHEMA_FIELD_StorageVolumeList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_StorageVolumeList_total_count, GQL_PAGE_TOTAL },
    { SCHEMA_FIELD_StorageVolume_id, GQL_TEXT_AT(struct volume_row, name) },
    { SCHEMA_FIELD_StorageVolume_proxy, GQL_GET(volume_get_proxy) },
    { SCHEMA_FIELD_StorageVolume_backend, GQL_TEXT_AT(struct volume_row, backend) },
    { SCHEMA_FIELD_StorageVolume_fsprefix, GQL_FIXED_TEXT("") },
    { SCHEMA_FIELD_StorageVolume_path, GQL_FIXED_TEXT("") },
    { SCHEMA_FIELD_StorageVolume_capabilities, GQL_VALUE_AT(struct volume_row, capabilities) },
    { SCHEMA_FIELD_StorageVolume_hardware_metadata, GQL_FIXED_TEXT("{}") },
    { SCHEMA_FIELD_StorageVolume_performance_metric, GQL_FIXED_TEXT("{}") },
    { SCHEMA_FIELD_StorageVolume_usage, GQL_TEXT_AT(struct volume_row, usage) },
    { SCHEMA_FIELD_Queries_vfolder_host_permissions, GQL_CALL(volume_get_permissions) },
    { SCHEMA_FIELD_PredefinedAtomicPermission_vfolder_host_permission_list,
      GQL_GET(volume_get_words) },
};
GQL_ENTRIES_END(storage_volume);
