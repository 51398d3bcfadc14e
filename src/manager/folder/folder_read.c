/* SPDX-License-Identifier: Apache-2.0 */
/* folder_read.c - small files of folders, for other features */
#include "manager/folder/folder.h"

#include <errno.h>
#include <string.h>

#include "manager/folder/folder_call.h"
#include "manager/folder/folder_feature.h"

struct folder_reading {
    folder_text_fn *done;
    void *data;
};

/* storage_done_fn */
static void folder_read_on_answer(void *data, json_t *answer, const struct aq_error *err)
{
    const struct folder_reading *reading = data;
    const json_t *text = json_object_get(answer, "text");
    struct aq_error known = { 0 };

    if (err)
        known = folder_storage_error(err);
    else if (!json_is_string(text))
        (void)aq_fail_kind(&known, EPROTO, "storage-proxy-error",
                           "the storage host sent an answer without a text");
    if (known.code)
        reading->done(reading->data, NULL, 0, &known);
    else
        reading->done(reading->data, json_string_value(text), json_string_length(text), NULL);
}

int folder_read_text(const struct api *api, const char *host, const struct uuid *folder,
                     const struct uuid *who, const char *path, struct arena *arena,
                     folder_text_fn *done, void *data, struct aq_error *err)
{
    struct folder_reading *reading = arena_alloc(arena, sizeof(*reading));
    json_auto_t *args = json_object();
    struct storage_call *call;
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];

    *reading = (struct folder_reading){ done, data };
    (void)json_object_set_new(args, "id", json_string(uuid_format(folder, id)));
    (void)json_object_set_new(args, "user", json_string(uuid_format(who, user)));
    (void)json_object_set_new(args, "path", json_string(path));
    return storage_ask(api->folder->hosts, host, "read", args, folder_read_on_answer, reading,
                       &call, err);
}
