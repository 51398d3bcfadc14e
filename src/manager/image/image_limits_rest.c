/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/image-limits: the least and the most that images get. */
#include "manager/image/image_limits.h"

#include "base/json_load.h"
#include "manager/image/image_feature.h"
#include "model/reference.h"

static void image_limits_write(struct jsonw *w, const char *bound, const json_t *amounts)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(amounts, JSON_COMPACT);

    api_write_raw(w, bound, text);
}

static void image_limits_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *all = (json_t *)(uintptr_t)image_limits_all(data);
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    const char *image;
    json_t *limits;

    if (api_decode(req, NULL, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    json_object_foreach(all, image, limits) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "image", image);
        image_limits_write(&w, "min", json_object_get(limits, "min"));
        image_limits_write(&w, "max", json_object_get(limits, "max"));
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)json_object_size(all));
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct image_limits_params {
    const char *image;
    const json_t *min, *max;
};

static const struct field image_limits_fields[] = {
    { "image", FIELD_STR, FIELD_REQUIRED, offsetof(struct image_limits_params, image), 1,
      REFERENCE_MAX },
    { "min", FIELD_OBJECT, 0, offsetof(struct image_limits_params, min),
      .doc = "slot to amount: what a container has at least, and unless asked otherwise" },
    { "max", FIELD_OBJECT, 0, offsetof(struct image_limits_params, max),
      .doc = "slot to amount: what a container may have" },
    FIELD_END,
};

static int image_limits_read(const struct api *api, const json_t *object, struct slots *ret,
                             struct aq_error *err)
{
    return object ? slots_from_json(object, core_slot_types(api->core), ret, err) : 0;
}

static void image_limits_on_put(struct request *req, void *data)
{
    AQ_CLEANUP(slots_donep) struct slots min = { 0 }, max = { 0 };
    struct image_limits_params params = { 0 };
    json_auto_t *tree = NULL; /* of min and max */
    struct aq_error err = { 0 };

    if (api_decode(req, &params, &tree, &err) < 0
        || image_limits_read(data, params.min, &min, &err) < 0
        || image_limits_read(data, params.max, &max, &err) < 0
        || image_limits_set(data, params.image, &min, &max, api_who(data, req), api_reply_done, req,
                            &err)
               < 0)
        request_fail(req, &err);
}

static const struct route image_limits_routes[] = {
    { METHOD_GET, "/aliquot/v1/image-limits", API_USER, image_limits_on_list, NULL,
      "What administrators set as the least and the most that images get" },
    { METHOD_PUT, "/aliquot/v1/image-limits", API_SUPERADMIN, image_limits_on_put,
      image_limits_fields, "Set the least and the most that an image gets, over its labels",
      .answer = { 204 } },
};
API_ROUTES_END(image_limits);
