/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/image-aliases: list, set and remove short names of images. */
#include "manager/image/image_aliases.h"

#include "manager/image/image_feature.h"
#include "model/reference.h"

static void image_aliases_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *aliases = (json_t *)(uintptr_t)image_aliases_all(data);
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    const char *alias;
    json_t *image;

    if (api_decode(req, NULL, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    json_object_foreach(aliases, alias, image) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "alias", alias);
        jsonw_member_str(&w, "image", json_string_value(image));
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)json_object_size(aliases));
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

struct image_alias_params {
    const char *image;
};

static const struct field image_alias_fields[] = {
    { "image", FIELD_STR, FIELD_REQUIRED, offsetof(struct image_alias_params, image), 1,
      REFERENCE_MAX },
    FIELD_END,
};

static void image_aliases_on_set(struct request *req, void *data)
{
    struct image_alias_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || image_aliases_change(data, request_get_param(req, "alias"), params.image,
                                api_who(data, req), api_reply_done, req, &err)
               < 0)
        request_fail(req, &err);
}

static void image_aliases_on_remove(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) < 0
        || image_aliases_change(data, request_get_param(req, "alias"), NULL, api_who(data, req),
                                api_reply_done, req, &err)
               < 0)
        request_fail(req, &err);
}

static const struct route image_aliases_routes[] = {
    { METHOD_GET, "/aliquot/v1/image-aliases", API_USER, image_aliases_on_list, NULL,
      "Short names of images" },
    { METHOD_PUT, "/aliquot/v1/image-aliases/{alias}", API_SUPERADMIN, image_aliases_on_set,
      image_alias_fields, "Give an image a short name", .answer = { 204 } },
    { METHOD_DELETE, "/aliquot/v1/image-aliases/{alias}", API_SUPERADMIN, image_aliases_on_remove,
      NULL, "Take a short name away", .answer = { 204 } },
};
API_ROUTES_END(image_aliases);
