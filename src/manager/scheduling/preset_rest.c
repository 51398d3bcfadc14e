/* SPDX-License-Identifier: Apache-2.0 */
/* Resource presets: GET /resource/presets, and what administrators do to them. */
#include <errno.h>

#include "manager/scheduling/scheduling_feature.h"
#include "manager/scheduling/presets.h"

static void preset_write_all(const struct api *api, struct request *req, bool sizes_are_text,
                             struct jsonw *w)
{
    size_t count;
    const struct resource_preset *presets = presets_list(api, request_get_arena(req), &count);

    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        jsonw_object_begin(w);
        presets_write(&presets[i], sizes_are_text, w);
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
    preset_write_all(data, req, true, &w);
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
    preset_write_all(data, req, false, &w);
    jsonw_member_int(&w, "total", (int64_t)json_object_size(presets_all(data)));
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void preset_on_set(struct request *req, void *data)
{
    json_auto_t *given = NULL;
    struct aq_error err = { 0 };

    if (api_parse(req, &given, &err) < 0
        || presets_change(data, OBJECT_SETTING_PUT, request_get_param(req, "name"), given,
                          api_who(data, req), api_reply_done, req, &err)
               < 0)
        request_fail(req, &err);
}

static void preset_on_remove(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) < 0
        || presets_change(data, OBJECT_SETTING_REMOVE, request_get_param(req, "name"), NULL,
                          api_who(data, req), api_reply_done, req, &err)
               < 0)
        request_fail(req, &err);
}

static const struct route preset_routes[] = {
    { METHOD_GET, "/resource/presets", API_USER, preset_on_list, NULL, "Resource presets" },
    { METHOD_GET, "/aliquot/v1/resource-presets", API_USER, preset_on_list_own, NULL,
      "Resource presets" },
    { METHOD_PUT, "/aliquot/v1/resource-presets/{name}", API_SUPERADMIN, preset_on_set,
      resource_preset_create, "Make or change a resource preset", .answer = { 204 } },
    { METHOD_DELETE, "/aliquot/v1/resource-presets/{name}", API_SUPERADMIN, preset_on_remove, NULL,
      "Remove a resource preset", .answer = { 204 } },
};
API_ROUTES_END(preset);
