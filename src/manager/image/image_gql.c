/* SPDX-License-Identifier: Apache-2.0 */
/* Image: what agents have, as clients name it: once for each name and
 * architecture. The objects are struct image_row, made from the agents' lists
 * in the request's arena.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_pair.h"
#include "manager/image/image_aliases.h"
#include "manager/image/image_limits.h"
#include "manager/image/image_inventory.h"
#include "manager/image/image.h"
#include "manager/image/image_feature.h"
#include "model/architecture.h"
#include "model/reference.h"

#define FIELD(name) SCHEMA_FIELD_Image_##name
#define AT(how, member) GQL_##how##_AT(struct image_row, member)

#define LABEL_ACCELERATORS "ai.backend.accelerators"
#define LABEL_FEATURES "ai.backend.features"

struct limit {
    const char *key, *min, *max;
};

/* ---- parts of a row ---- */

static const char *gql_image_text_in(const json_t *image, const char *key)
{
    const char *text = json_string_value(json_object_get(image, key));

    return text ? text : "";
}

static struct gql_value gql_image_pairs_of(struct arena *arena, const struct text_pair *pairs,
                                           size_t count)
{
    return gql_rows_of(arena, pairs, (uint32_t)count, sizeof(*pairs));
}

static struct gql_value gql_image_list_labels(struct arena *arena, const json_t *labels)
{
    struct text_pair *pairs = arena_array(arena, json_object_size(labels) + 1, sizeof(*pairs));
    const char *key;
    json_t *value;
    size_t count = 0;

    json_object_foreach((json_t *)(uintptr_t)labels, key, value) {
        const char *text = json_string_value(value);

        if (!text)
            continue;
        pairs[count].key = arena_strdup(arena, key);
        pairs[count].value = arena_strdup(arena, text);
        count++;
    }
    return gql_image_pairs_of(arena, pairs, count);
}

/* Bytes in the largest unit that they are whole in, as labels have them: pages take a number
 * without a unit for GiB.
 */
static const char *gql_image_bytes(struct arena *arena, const char *text)
{
    static const char units[] = "kmgt";
    char *end, out[32];
    unsigned long long bytes = strtoull(text, &end, 10);
    size_t unit = 0;

    for (; !*end && bytes && bytes % 1024 == 0 && units[unit]; bytes /= 1024)
        unit++;
    (void)snprintf(out, sizeof(out), "%llu%c", bytes, unit ? units[unit - 1] : '\0');
    return arena_strdup(arena, unit ? out : text);
}

static const char *gql_image_bound(struct arena *arena, const char *slot, const json_t *limit,
                                   const char *bound, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(limit, bound));

    if (!text)
        return otherwise;
    return strcmp(slot, "mem") == 0 ? gql_image_bytes(arena, text) : arena_strdup(arena, text);
}

/* {SLOT: {"min": ..., "max": ...}}. Pages let people set what is in the list alone, and ask for
 * the least: so processors and memory are always there, with what nothing runs without.
 */
static struct gql_value gql_image_list_limits(struct arena *arena, const json_t *limits)
{
    static const struct limit usual[] = { { "cpu", "1", "Infinity" },
                                          { "mem", "64m", "Infinity" } };
    struct limit *rows = arena_array(arena, json_object_size(limits) + AQ_COUNT(usual) + 1,
                                     sizeof(*rows));
    const char *slot;
    json_t *limit;
    uint32_t count = 0;

    json_object_foreach((json_t *)(uintptr_t)limits, slot, limit) {
        rows[count].key = arena_strdup(arena, slot);
        rows[count].min = gql_image_bound(arena, slot, limit, "min", "0");
        rows[count].max = gql_image_bound(arena, slot, limit, "max", "Infinity");
        count++;
    }
    for (size_t i = 0; i < AQ_COUNT(usual); i++)
        if (!json_object_get(limits, usual[i].key))
            rows[count++] = usual[i];
    return gql_rows_of(arena, rows, count, sizeof(*rows));
}

/* The words of the label; an image without it runs with all. */
static struct gql_value gql_image_list_accelerators(struct arena *arena, const json_t *labels)
{
    const char *words = gql_image_text_in(labels, LABEL_ACCELERATORS);

    return gql_words(arena, *words ? words : "*", ", ");
}

static struct gql_value gql_image_list_texts(struct arena *arena, const json_t *array)
{
    struct gql_value *items = arena_array(arena, json_array_size(array) + 1, sizeof(*items));
    uint32_t count = 0;
    size_t i;
    json_t *text;

    json_array_foreach((json_t *)(uintptr_t)array, i, text)
        items[count++] = gql_text(arena_strdup(arena, json_string_value(text)));
    return gql_list(items, count);
}

/* "3.9-py39-cuda11.3" is version 3.9 with what comes after, parted where the
 * digits begin: py 39, cuda 11.3.
 */
static struct gql_value gql_image_list_tags(struct arena *arena, const char *tag)
{
    struct text_pair *pairs = arena_array(arena, strlen(tag) / 2 + 1, sizeof(*pairs));
    size_t count = 0;

    for (const char *at = strchr(tag, '-'); at; at = strchr(at, '-')) {
        size_t len = strcspn(++at, "-"), letters = strcspn(at, "0123456789-");

        if (len == 0)
            continue;
        pairs[count].key = arena_strndup(arena, at, letters ? letters : len);
        pairs[count].value = letters ? arena_strndup(arena, at + letters, len - letters) : "";
        count++;
    }
    return gql_image_pairs_of(arena, pairs, count);
}

static bool gql_image_has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (; *(text += strspn(text, " ,")); text += strcspn(text, " ,"))
        if (strcspn(text, " ,") == len && strncmp(text, word, len) == 0)
            return true;
    return false;
}

static bool gql_image_is_installed(const struct core *core, const json_t *agents)
{
    size_t i;
    json_t *id;

    json_array_foreach((json_t *)(uintptr_t)agents, i, id)
        if (core_agent_is_connected(core, json_string_value(id)))
            return true;
    return false;
}

/* ---- rows ---- */

static void gql_image_fill_names(struct arena *arena, const struct reference *ref,
                                 struct image_row *row)
{
    const char *slash;

    row->reference = arena_strdup(arena, ref->text);
    row->registry = arena_strdup(arena, ref->registry);
    row->name = arena_strdup(arena, ref->repository);
    row->tag = arena_strdup(arena, ref->tag);
    slash = strrchr(row->name, '/');
    row->base_name = slash ? slash + 1 : row->name;
    row->version = arena_strndup(arena, row->tag, strcspn(row->tag, "-"));
    row->tags = gql_image_list_tags(arena, row->tag);
}

static void gql_image_fill(struct gql_call *call, const json_t *image, const struct reference *ref,
                           struct image_row *row)
{
    const struct api *api = ((const struct gql_context *)call->context)->api;
    const json_t *labels = json_object_get(image, "labels");
    const json_t *agents = json_object_get(image, "agents");
    json_auto_t *limits = image_limits_shown(api, ref->text, labels);
    AQ_CLEANUP(aq_freep) char *key = NULL;
    char id[UUID_TEXT_MAX];
    struct uuid uuid;

    gql_image_fill_names(call->arena, ref, row);
    row->architecture = arena_strdup(
        call->arena, architecture_of_machine(gql_image_text_in(image, "architecture")));
    row->digest = arena_strdup(call->arena, gql_image_text_in(image, "digest"));
    row->fetched_at = arena_strdup(call->arena, gql_image_text_in(image, "fetched_at"));
    key = aq_format("%s@%s", row->reference, row->architecture);
    row->key = arena_strdup(call->arena, key);
    uuid = gql_image_id(row->reference, row->architecture);
    row->id = arena_strdup(call->arena, uuid_format(&uuid, id));
    row->size_bytes = json_integer_value(json_object_get(image, "size_bytes"));
    row->is_installed = gql_image_is_installed(api->core, agents);
    row->is_operation = gql_image_has_word(gql_image_text_in(labels, LABEL_FEATURES), "operation");
    row->labels = gql_image_list_labels(call->arena, labels);
    row->limits = gql_image_list_limits(call->arena, limits);
    row->accelerators = gql_image_list_accelerators(call->arena, labels);
    row->agents = gql_image_list_texts(call->arena, agents);
}

/* All aliases, for those of each image. */
static void gql_image_load_aliases(struct gql_call *call, struct gql_images *rows)
{
    json_t *aliases = (json_t *)(uintptr_t)image_aliases_all(
        ((struct gql_context *)call->context)->api);
    const char *alias;
    json_t *image;

    rows->aliases = arena_array(call->arena, json_object_size(aliases) + 1, sizeof(*rows->aliases));
    json_object_foreach(aliases, alias, image) {
        struct text_pair *pair = &rows->aliases[rows->alias_count];
        struct reference ref;

        if (reference_parse(json_string_value(image), NULL, &ref, NULL) < 0)
            continue;
        pair->key = arena_strdup(call->arena, alias);
        pair->value = arena_strdup(call->arena, ref.text);
        reference_done(&ref);
        rows->alias_count++;
    }
}

static struct gql_value gql_image_list_aliases(struct arena *arena, const struct gql_images *rows,
                                               const char *reference)
{
    struct gql_value *items = arena_array(arena, rows->alias_count + 1, sizeof(*items));
    uint32_t count = 0;

    for (size_t i = 0; i < rows->alias_count; i++)
        if (strcmp(rows->aliases[i].value, reference) == 0)
            items[count++] = gql_text(rows->aliases[i].key);
    return gql_list(items, count);
}

/* Images that the sessions of the caller's domain may not use are not shown, but to superadmins. */
static bool gql_image_is_allowed(const struct gql_call *call, const char *registry)
{
    const struct gql_context *context = call->context;
    const struct domain *domain = context->who->domain
                                      ? core_find_domain(context->api->core, context->who->domain)
                                      : NULL;

    return principal_is_superadmin(context->who) || !domain
           || domain_allows_registry(domain, registry);
}

/* Only what clients can name: REGISTRY/NAME:TAG. */
static void gql_image_add_name(struct gql_call *call, const json_t *image, const char *name,
                               struct gql_images *rows)
{
    struct reference ref;

    if (!name || reference_parse(name, NULL, &ref, NULL) < 0)
        return;
    if (ref.form == REFERENCE_REGISTRY && ref.tag && !ref.digest
        && gql_image_is_allowed(call, ref.registry)) {
        struct image_row *row = &rows->items[rows->count++];

        gql_image_fill(call, image, &ref, row);
        row->aliases = gql_image_list_aliases(call->arena, rows, ref.text);
    }
    reference_done(&ref);
}

/* By name and architecture, what was fetched last first. */
static int gql_image_compare(const void *left, const void *right)
{
    const struct image_row *a = left, *b = right;
    int r = strcmp(a->key, b->key);

    if (r == 0)
        r = strcmp(b->fetched_at, a->fetched_at);
    return r ? r : strcmp(a->digest, b->digest);
}

/* Of a name that has come to mean another image, the latest meaning stays. */
static void gql_image_sort_out(struct gql_images *rows)
{
    size_t kept = 0;

    if (rows->count)
        qsort(rows->items, rows->count, sizeof(*rows->items), gql_image_compare);
    for (size_t i = 0; i < rows->count; i++)
        if (kept == 0 || strcmp(rows->items[kept - 1].id, rows->items[i].id) != 0)
            rows->items[kept++] = rows->items[i];
    rows->count = kept;
}

static size_t gql_image_count_names(const json_t *images)
{
    size_t i, count = 0;
    json_t *image;

    json_array_foreach((json_t *)(uintptr_t)images, i, image)
        count += json_array_size(json_object_get(image, "names"));
    return count;
}

void gql_images_load(struct gql_call *call, struct gql_images *ret)
{
    const struct gql_context *context = call->context;
    json_auto_t *images = image_inventory(context->api, NULL);
    size_t i, k, names = gql_image_count_names(images) + 1;
    json_t *image, *name;

    *ret = (struct gql_images){ .items = NULL };
    if (!arena_has_room(call->arena, names, sizeof(*ret->items)))
        return;
    ret->items = arena_array(call->arena, names, sizeof(*ret->items));
    gql_image_load_aliases(call, ret);
    json_array_foreach(images, i, image)
        json_array_foreach(json_object_get(image, "names"), k, name)
            if (!arena_is_over(call->arena))
                gql_image_add_name(call, image, json_string_value(name), ret);
    gql_image_sort_out(ret);
}

/* ---- root fields ---- */

/* By a name, of any architecture if that is NULL. */
static int gql_image_find_named(struct gql_call *call, const struct gql_images *rows,
                                const char *text, const char *architecture)
{
    struct reference ref;
    struct aq_error err = { 0 };

    if (reference_parse(
            image_aliases_resolve(((const struct gql_context *)call->context)->api, text), NULL,
            &ref, &err)
        < 0)
        return gql_call_fail(call, "reference: %s", err.text);
    for (size_t i = 0; i < rows->count && call->results[0].kind == GQL_NULL; i++)
        if (strcmp(rows->items[i].reference, ref.text) == 0
            && (!architecture
                || strcmp(rows->items[i].architecture, architecture_of_machine(architecture)) == 0))
            call->results[0] = gql_object(&rows->items[i]);
    reference_done(&ref);
    return GQL_DONE;
}

static int gql_image_get_one(struct gql_call *call)
{
    const char *text = gql_arg_text(call, SCHEMA_ARG_Queries_image_reference);
    const char *id = gql_arg_text(call, SCHEMA_ARG_Queries_image_id);
    struct gql_images rows;

    gql_images_load(call, &rows);
    if (id)
        call->results[0] = gql_object(gql_images_find_id(call, &rows, text = id));
    else if (text)
        (void)gql_image_find_named(call, &rows, text,
                                   gql_arg_text(call, SCHEMA_ARG_Queries_image_architecture));
    else
        return gql_call_fail(call, "reference: is required");
    if (call->results[0].kind == GQL_NULL)
        return gql_call_fail(call, "No such environment image. (no agent has '%.200s')", text);
    return GQL_DONE;
}

/* Does a list of texts have this one? */
static bool gql_image_list_has(struct gql_value list, const char *text)
{
    for (uint32_t i = 0; i < list.count; i++)
        if (gql_is_given(list.items[i]) && strcmp(list.items[i].text, text) == 0)
            return true;
    return false;
}

bool gql_image_asks_alive(struct gql_value statuses)
{
    for (uint32_t i = 0; gql_is_given(statuses) && i < statuses.count; i++)
        if (statuses.items[i].kind == GQL_ENUM && statuses.items[i].integer == 0)
            return true;
    return !gql_is_given(statuses);
}

static bool gql_image_is_asked(const struct gql_call *call, const struct image_row *row)
{
    int installed = gql_arg_active(call, SCHEMA_ARG_Queries_images_is_installed);
    int operation = gql_arg_active(call, SCHEMA_ARG_Queries_images_is_operation);
    struct gql_value filters = call->args[SCHEMA_ARG_Queries_images_load_filters];

    if (!gql_is_given(filters))
        filters = call->args[SCHEMA_ARG_Queries_images_image_filters];
    if (installed && row->is_installed != (installed > 0))
        return false;
    if (gql_is_given(filters))
        return gql_image_list_has(filters, row->is_operation ? "operational" : "general");
    return !operation || row->is_operation == (operation > 0);
}

static int gql_image_list(struct gql_call *call)
{
    bool is_alive = gql_image_asks_alive(call->args[SCHEMA_ARG_Queries_images_filter_by_statuses]);
    struct gql_images rows;
    size_t kept = 0;

    gql_images_load(call, &rows);
    for (size_t i = 0; is_alive && i < rows.count; i++)
        if (gql_image_is_asked(call, &rows.items[i]))
            rows.items[kept++] = rows.items[i];
    call->results[0] = gql_rows_of(call->arena, rows.items, (uint32_t)kept, sizeof(*rows.items));
    return GQL_DONE;
}

static const struct gql_entry image_entries[] = {
    { SCHEMA_FIELD_Queries_image, GQL_CALL_COST(gql_image_get_one, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_images, GQL_CALL_COST(gql_image_list, GQL_COST_WALK, GQL_ROWS_WHOLE) },
    { FIELD(id), AT(TEXT, id) },
    { FIELD(name), AT(TEXT, name) },
    { FIELD(humanized_name), AT(TEXT, name) },
    { FIELD(namespace), AT(TEXT, name) },
    { FIELD(base_image_name), AT(TEXT, base_name) },
    { FIELD(tag), AT(TEXT, tag) },
    { FIELD(tags), AT(VALUE, tags) },
    { FIELD(version), AT(TEXT, version) },
    { FIELD(registry), AT(TEXT, registry) },
    { FIELD(architecture), AT(TEXT, architecture) },
    { FIELD(digest), AT(TEXT, digest) },
    { FIELD(status), GQL_FIXED_TEXT("ALIVE") },
    { FIELD(is_local), GQL_FIXED_BOOL(false) },
    { FIELD(labels), AT(VALUE, labels) },
    { FIELD(aliases), AT(VALUE, aliases) },
    { FIELD(size_bytes), AT(INT64, size_bytes) },
    { FIELD(resource_limits), AT(VALUE, limits) },
    { FIELD(supported_accelerators), AT(VALUE, accelerators) },
    { FIELD(installed), AT(BOOL, is_installed) },
    { FIELD(installed_agents), AT(VALUE, agents) },
    { FIELD(hash), AT(TEXT, digest) },
    { SCHEMA_FIELD_KVPair_key, GQL_TEXT_AT(struct text_pair, key) },
    { SCHEMA_FIELD_KVPair_value, GQL_TEXT_AT(struct text_pair, value) },
    { SCHEMA_FIELD_ResourceLimit_key, GQL_TEXT_AT(struct limit, key) },
    { SCHEMA_FIELD_ResourceLimit_min, GQL_TEXT_AT(struct limit, min) },
    { SCHEMA_FIELD_ResourceLimit_max, GQL_TEXT_AT(struct limit, max) },
};
GQL_ENTRIES_END(image);
