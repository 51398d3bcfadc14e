#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/image/record.h"
#include "base/list.h"

struct images {
    uv_loop_t *loop;
    const struct settings *settings;
    struct list requests;
    bool is_closing;
};

struct image_request {
    struct list link;
    struct images *images;
    const struct image_events *events; /* NULL = cancelled */
    void *data;
    struct reference ref;
    uv_fs_t look;
};

static void request_free(struct image_request *request)
{
    list_remove(&request->link);
    reference_done(&request->ref);
    free(request);
}

static void images_release(struct images *images)
{
    if (images->is_closing && list_is_empty(&images->requests))
        free(images);
}

/* ---- root file systems as they are ---- */

static int local_image(struct image_request *request, struct image **ret, struct aq_error *err)
{
    AQ_CLEANUP(record_unrefp) struct record *record = NULL;
    const char *path = request->ref.path ? request->ref.path : "/";
    int r;

    if (request->look.result < 0)
        return aq_fail_field(err, (int)-request->look.result, "image",
                             "image '%s': %s: %s", request->ref.text, path,
                             uv_strerror((int)request->look.result));
    if (!S_ISDIR(request->look.statbuf.st_mode))
        return aq_fail_field(err, ENOTDIR, "image", "image '%s': %s is not a folder",
                             request->ref.text, path);
    r = record_new_local(&request->ref, request->images->settings->state, &record, err);
    if (r == 0 && !(*ret = record_hold(record, request->ref.text)))
        r = aq_fail(err, ENOMEM, "image");
    return r;
}

static void on_looked(uv_fs_t *look)
{
    struct image_request *request = look->data;
    struct images *images = request->images;
    struct image *image = NULL;
    struct aq_error err = { 0 };
    int r = request->events ? local_image(request, &image, &err) : 0;

    uv_fs_req_cleanup(look);
    if (request->events && r < 0)
        request->events->on_failed(request->data, &err);
    else if (request->events)
        request->events->on_ready(request->data, image);
    request_free(request);
    images_release(images);
}

/* ---- the public face ---- */

int images_new(uv_loop_t *loop, const struct settings *settings, struct images **ret,
               struct aq_error *err)
{
    struct images *images = calloc(1, sizeof(*images));

    if (!images)
        return aq_fail(err, ENOMEM, "images");
    images->loop = loop;
    images->settings = settings;
    list_init(&images->requests);
    *ret = images;
    return 0;
}

void images_free(struct images *images)
{
    if (!images)
        return;
    LIST_FOREACH(it, &images->requests)
        images_cancel(LIST_ENTRY(it, struct image_request, link));
    images->is_closing = true;
    images_release(images);
}

int images_get(struct images *images, const char *reference, const char *architecture,
               enum image_policy policy, const struct image_events *events, void *data,
               struct image_request **ret, struct aq_error *err)
{
    struct image_request *request = calloc(1, sizeof(*request));
    int r;

    (void)architecture;
    (void)policy;
    if (!request)
        return aq_fail(err, ENOMEM, "image");
    *request = (struct image_request){ .images = images, .events = events, .data = data };
    list_add(&images->requests, &request->link);
    request->look.data = request;
    r = reference_parse(reference, images->settings->image_registry, &request->ref, err);
    if (r == 0 && !reference_is_allowed(&request->ref, images->settings->image_allow))
        r = aq_fail_as(err, EACCES, "image-not-allowed", "image",
                       "this node's administrator does not admit the image '%s'",
                       request->ref.text);
    if (r == 0 && request->ref.form != REFERENCE_HOST && request->ref.form != REFERENCE_ROOTFS)
        r = aq_fail_field(err, EOPNOTSUPP, "image", "'%s' has to be fetched", request->ref.text);
    if (r == 0 && uv_fs_stat(images->loop, &request->look,
                             request->ref.path ? request->ref.path : "/", on_looked) < 0)
        r = aq_fail(err, ENOMEM, "image");
    if (r < 0)
        request_free(request);
    else
        *ret = request;
    return r;
}

void images_cancel(struct image_request *request)
{
    request->events = NULL;
}

int images_find(struct images *images, const char *name, struct image **ret,
                struct aq_error *err)
{
    AQ_CLEANUP(record_unrefp) struct record *record = NULL;
    struct reference ref = { .form = REFERENCE_REGISTRY };
    int r = reference_parse(name, images->settings->image_registry, &ref, err);

    if (r == 0 && (ref.form == REFERENCE_HOST || ref.form == REFERENCE_ROOTFS))
        r = record_new_local(&ref, images->settings->state, &record, err);
    else if (r == 0)
        r = aq_fail_field(err, ENOENT, "image", "the image '%s' is not on this node", ref.text);
    if (r == 0 && !(*ret = record_hold(record, ref.text)))
        r = aq_fail(err, ENOMEM, "image");
    reference_done(&ref);
    return r;
}
