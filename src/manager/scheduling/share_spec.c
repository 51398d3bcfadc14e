/* SPDX-License-Identifier: Apache-2.0 */
/* /fair-share/resource-groups: how resource groups weigh what was used of them, shown and changed as
 * Backend.AI's administrators do it from 26 on.
 */
#include "manager/scheduling/share_spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/account/account.h"
#include "manager/scheduling/scheduling.h"
#include "manager/scheduling/scheduling_feature.h"

/* ---- shown ---- */

/* core_fair_weight_fn */
static void share_spec_write_weight(void *data, const char *slot, double weight)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%.9g", weight);
    fair_search_write_slot(data, slot, text);
}

int share_spec_read(const struct api *api, const char *resource_group, struct arena *arena,
                    struct share_spec *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf weights = STRBUF_INIT;
    struct jsonw w = jsonw_make(&weights);
    int r;

    jsonw_object_begin(&w);
    jsonw_key(&w, "entries");
    jsonw_array_begin(&w);
    r = core_read_fair_settings(api->core, resource_group, &ret->settings, share_spec_write_weight,
                                &w, err);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    if (r < 0)
        return r;
    ret->weights = arena_strdup(arena, weights.data);
    return 0;
}

/* Clients read whole days. */
static int64_t share_spec_days(double days)
{
    return AQ_MAX(llround(days), 1);
}

void share_spec_write(const struct share_spec *spec, struct jsonw *w)
{
    jsonw_member_int(w, "half_life_days", share_spec_days(spec->settings.half_life_days));
    jsonw_member_int(w, "lookback_days", share_spec_days(spec->settings.lookback_days));
    jsonw_member_int(w, "decay_unit_days", 1);
    jsonw_key(w, "default_weight");
    jsonw_double(w, spec->settings.default_weight);
    api_write_raw(w, "resource_weights", spec->weights);
}

static int share_spec_write_group(const struct api *api, struct request *req, const char *name,
                                  struct jsonw *w, struct aq_error *err)
{
    struct share_spec spec;
    int r = share_spec_read(api, name, request_get_arena(req), &spec, err);

    if (r < 0)
        return r;
    jsonw_object_begin(w);
    jsonw_member_str(w, "resource_group", name);
    jsonw_key(w, "fair_share_spec");
    jsonw_object_begin(w);
    share_spec_write(&spec, w);
    jsonw_object_end(w);
    jsonw_object_end(w);
    return 0;
}

static void share_spec_reply(const struct api *api, struct request *req, const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    if (share_spec_write_group(api, req, name, &w, &err) < 0)
        request_fail(req, &err);
    else
        request_reply_json(req, 200, &out);
}

static void share_spec_on_show(struct request *req, void *data)
{
    if (api_has_no_params(req))
        share_spec_reply(data, req, request_get_param(req, "resource_group"));
}

static void share_spec_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    const struct resource_group *group;
    struct aq_error err = { 0 };
    int64_t count = 0;
    int r = 0;

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; r == 0 && (group = core_get_resource_group(api->core, i)); i++) {
        if (!group->is_active)
            continue;
        r = share_spec_write_group(api, req, group->name, &w, &err);
        count++;
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total_count", count);
    jsonw_object_end(&w);
    if (r < 0)
        request_fail(req, &err);
    else
        request_reply_json(req, 200, &out);
}

/* ---- changed ---- */

json_t *share_spec_read_weight(const json_t *given, const char *field, struct aq_error *err)
{
    const char *text = json_string_value(given);
    json_t *weight = NULL;
    char *end = NULL;

    if (!given || json_is_null(given)) {
        weight = json_null();
    } else if (json_is_number(given)) {
        weight = json_real(json_number_value(given));
    } else if (text && *text && !text[strspn(text, "0123456789.+-eE")]) {
        double value = strtod(text, &end);
        bool is_lost = value == 0 && strcspn(text, "123456789") < strcspn(text, "eE");

        weight = *end || !isfinite(value) || is_lost ? NULL : json_real(value);
    }
    if (!weight)
        api_fail_param(err, field, "is no number");
    return weight;
}

void share_spec_save(struct api *api, struct request *req, const char *resource_group,
                     json_t *given, core_done_fn done, void *data)
{
    json_auto_t *body = json_pack("{s:o}", "fair_share", given);
    struct account_change *change = account_begin(api, req, &account_resource_group);
    struct aq_error err = { 0 };

    if (account_change_row(change, resource_group, body, &err) < 0)
        account_end(change, req, &err);
    else
        account_save(change, req, done, data);
}

struct share_spec_params {
    int64_t half_life_days, lookback_days, decay_unit_days;
    const json_t *default_weight, *resource_weights;
};

static const struct field share_spec_fields[] = {
    { "half_life_days", FIELD_INT, FIELD_NULLABLE,
      offsetof(struct share_spec_params, half_life_days), 1, 366 },
    { "lookback_days", FIELD_INT, FIELD_NULLABLE, offsetof(struct share_spec_params, lookback_days),
      1, 366 },
    { "decay_unit_days", FIELD_INT, FIELD_NULLABLE,
      offsetof(struct share_spec_params, decay_unit_days), 1, 1,
      .doc = "what was used is summed by the day" },
    { "default_weight", FIELD_JSON, FIELD_NULLABLE,
      offsetof(struct share_spec_params, default_weight), .doc = "a number, or its text" },
    { "resource_weights", FIELD_JSON, FIELD_NULLABLE,
      offsetof(struct share_spec_params, resource_weights),
      .doc =
          "[{\"resource_type\": slot, \"weight\": a number, its text, or null for the default}]" },
    FIELD_END,
};

static int share_spec_set_slot(const struct api *api, json_t *settings, const json_t *entry,
                               struct aq_error *err)
{
    const char *slot = json_string_value(json_object_get(entry, "resource_type"));
    enum slot_type type;
    json_t *weight;
    char key[80];

    if (!slot || slot_types_find(core_slot_types(api->core), slot, &type) < 0)
        return api_fail_param(err, "resource_weights", "there is no slot '%.64s'",
                              slot ? slot : "");
    weight = share_spec_read_weight(json_object_get(entry, "weight"), "resource_weights", err);
    if (!weight)
        return -err->code;
    (void)snprintf(key, sizeof(key), "slot:%s", slot);
    (void)json_object_set_new(settings, key, weight);
    return 0;
}

/* What is given, as members of "fair_share". */
static int share_spec_read_change(const struct api *api, const struct share_spec_params *params,
                                  json_t *settings, struct aq_error *err)
{
    json_t *entry, *weight;
    size_t i;

    if (params->half_life_days)
        json_object_set_new(settings, "half_life_days", json_integer(params->half_life_days));
    if (params->lookback_days)
        json_object_set_new(settings, "lookback_days", json_integer(params->lookback_days));
    if (params->default_weight) {
        if (!(weight = share_spec_read_weight(params->default_weight, "default_weight", err)))
            return -err->code;
        json_object_set_new(settings, "default_weight", weight);
    }
    if (params->resource_weights && !json_is_array(params->resource_weights))
        return api_fail_param(err, "resource_weights", "is a list");
    json_array_foreach((json_t *)(uintptr_t)params->resource_weights, i, entry)
        if (share_spec_set_slot(api, settings, entry, err) < 0)
            return -err->code;
    return 0;
}

struct share_spec_change {
    const struct api *api;
    struct request *req;
};

/* core_done_fn */
static void share_spec_on_saved(void *data, int r, const struct aq_error *err)
{
    const struct share_spec_change *change = data;

    if (r < 0)
        request_fail(change->req, err);
    else
        share_spec_reply(change->api, change->req,
                         request_get_param(change->req, "resource_group"));
}

static void share_spec_on_change(struct request *req, void *data)
{
    const char *name = request_get_param(req, "resource_group");
    struct share_spec_change *change = arena_alloc(request_get_arena(req), sizeof(*change));
    struct share_spec_params params = { 0 };
    json_auto_t *tree = NULL, *settings = json_object();
    struct aq_error err = { 0 };

    if (api_decode(req, &params, &tree, &err) < 0
        || core_check_fair_share(((struct api *)data)->core, name, &err) < 0
        || share_spec_read_change(data, &params, settings, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    *change = (struct share_spec_change){ data, req };
    share_spec_save(data, req, name, AQ_TAKE(settings), share_spec_on_saved, change);
}

static const struct route share_spec_routes[] = {
    { METHOD_GET, "/fair-share/resource-groups/specs", API_SUPERADMIN, share_spec_on_list, NULL,
      "How resource groups weigh what was used of them" },
    { METHOD_GET, "/fair-share/resource-groups/{resource_group}/spec", API_SUPERADMIN,
      share_spec_on_show, NULL, "How a resource group weighs what was used of it" },
    { METHOD_PATCH, "/fair-share/resource-groups/{resource_group}/spec", API_SUPERADMIN,
      share_spec_on_change, share_spec_fields,
      "Change how a resource group weighs what was used of it" },
};
API_ROUTES_END(share_spec);
