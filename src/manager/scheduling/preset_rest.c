/* SPDX-License-Identifier: Apache-2.0 */
/* Resource presets: GET /resource/presets, and what administrators do to them. */
#include <errno.h>

#include "manager/scheduling/scheduling_feature.h"
#include "manager/scheduling/presets.h"

/* Backend.AI's clients read sizes as text, in our own form they are numbers. */
static void preset_write_all(const struct api *api, bool sizes_are_text, struct jsonw *w)
{
    json_t *presets = (json_t *)(uintptr_t)presets_all(api), *preset;
    const char *name;

    jsonw_array_begin(w);
    json_object_foreach(presets, name, preset) {
        jsonw_object_begin(w);
        presets_write(name, preset, sizes_are_text, w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void preset_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "presets");
    preset_write_all(data, true, &w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void preset_on_list_own(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    preset_write_all(data, false, &w);
    jsonw_member_int(&w, "total", (int64_t)json_object_size(presets_all(data)));
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct preset_params {
    const json_t *slots;
    const char *shared_memory;
};

static const struct field preset_fields[] = {
    { "resource_slots", FIELD_OBJECT, FIELD_REQUIRED, offsetof(struct preset_params, slots),
      .doc = "e.g. {\"cpu\": \"2\", \"mem\": \"4g\"}" },
    { "shared_memory", FIELD_STR, FIELD_NULLABLE, offsetof(struct preset_params, shared_memory), 1,
      32, .doc = "e.g. 64m" },
    FIELD_END,
};

static void preset_on_set(struct request *req, void *data)
{
    struct preset_params params = { .slots = NULL };
    json_auto_t *tree = NULL;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, &tree, &err) < 0
        || presets_change(data, OBJECT_SETTING_PUT, request_get_param(req, "name"), params.slots,
                          params.shared_memory, api_who(data, req), api_reply_done, req, &err)
               < 0)
        request_fail(req, &err);
}

static void preset_on_remove(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) < 0
        || presets_change(data, OBJECT_SETTING_REMOVE, request_get_param(req, "name"), NULL, NULL,
                          api_who(data, req), api_reply_done, req, &err)
               < 0)
        request_fail(req, &err);
}

static const struct route preset_routes[] = {
    { METHOD_GET, "/resource/presets", API_USER, preset_on_list, NULL, "Resource presets" },
    { METHOD_GET, "/aliquot/v1/resource-presets", API_USER, preset_on_list_own, NULL,
      "Resource presets" },
    { METHOD_PUT, "/aliquot/v1/resource-presets/{name}", API_SUPERADMIN, preset_on_set,
      preset_fields, "Make or change a resource preset", .answer = { 204 } },
    { METHOD_DELETE, "/aliquot/v1/resource-presets/{name}", API_SUPERADMIN, preset_on_remove, NULL,
      "Remove a resource preset", .answer = { 204 } },
};
API_ROUTES_END(preset);
