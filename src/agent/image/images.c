/* SPDX-License-Identifier: Apache-2.0 */
/* images.c - the public functions of the image store */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "agent/image/images_internal.h"
#include "base/fs.h"
#include "base/installed.h"
#include "base/memory.h"
#include "model/architecture.h"

#define ENOUGH_NAMES 64
#define USE_MSEC 2000 /* sessions that come and go within it are told of together, or not at all */

char *images_path(const struct images *images, const char *rest)
{
    return aq_format("%s/%s", images->directory, rest);
}

/* ---- requests ---- */

static void images_request_free(struct image_request *request)
{
    list_remove(&request->link);
    reference_done(&request->ref);
    image_record_unref(request->found);
    free(request->architecture);
    free(request->user);
    free(request);
}

/* The request is gone before its owner is told, who may do anything. */
void image_request_failed(struct image_request *request, const struct aq_error *err)
{
    const struct image_events *events = request->events;
    const struct aq_error copy = *err;
    void *data = request->data;

    images_request_free(request);
    if (events)
        events->on_failed(data, &copy);
}

void image_request_ready(struct image_request *request, struct image_record *record)
{
    const struct image_events *events = request->events;
    void *data = request->data;
    struct image *image = NULL;

    if (events) {
        image = image_record_hold(record, request->ref.text);
        image_record_charge(record, request->user);
    }
    images_request_free(request);
    if (events)
        events->on_ready(data, image);
}

static void images_on_soon(uv_timer_t *timer)
{
    struct images *images = timer->data;
    struct image_request *request;

    if (images->is_changed && images->on_change) {
        images->is_changed = false;
        images->on_change(images->change_data);
    }
    do {
        request = NULL;
        LIST_FOREACH(it, &images->requests)
            if (LIST_ENTRY(it, struct image_request, link)->found)
                request = LIST_ENTRY(it, struct image_request, link);
        if (request)
            image_request_ready(request, request->found);
    } while (request);
}

void images_changed(struct images *images)
{
    images->is_changed = true;
    if (!images->is_closing)
        (void)uv_timer_start(&images->soon, images_on_soon, 0, 0);
}

static void images_on_use(uv_timer_t *timer)
{
    struct images *images = timer->data;

    for (size_t i = 0; i < images->records.count; i++) {
        const struct image_record *record = images->records.entries[i].value;

        if (record->is_said_used != (record->holds > 0))
            images_changed(images);
    }
}

void images_use_changed(struct images *images)
{
    if (images && !images->is_closing && !uv_is_active((const uv_handle_t *)&images->use_timer))
        (void)uv_timer_start(&images->use_timer, images_on_use, USE_MSEC, 0);
}

void images_set_on_change(struct images *images, void (*on_change)(void *data), void *data)
{
    images->on_change = on_change;
    images->change_data = data;
}

void images_set_promised(struct images *images, int64_t (*promised)(void *data), void *data)
{
    images->promised = promised;
    images->promised_data = data;
}

void images_set_pull_group(struct images *images, uint32_t group)
{
    images->pull_group = group;
}

/* ---- root file systems as they are ---- */

/* The root of sessions for files is empty: all that is in it is mounted. */
static void images_place(const struct images *images, struct reference *ref)
{
    if (ref->form == REFERENCE_FILES)
        ref->path = images_path(images, "files");
}

static int images_local_record(const struct image_request *request, struct image_record **ret,
                               struct aq_error *err)
{
    const char *path = request->ref.path ? request->ref.path : "/";

    if (request->check.result < 0)
        return aq_fail_field(err, (int)-request->check.result, "image", "image '%s': %s: %s",
                             request->ref.text, path, uv_strerror((int)request->check.result));
    if (!S_ISDIR(request->check.statbuf.st_mode))
        return aq_fail_field(err, ENOTDIR, "image", "image '%s': %s is not a folder",
                             request->ref.text, path);
    *ret = image_record_new_local(&request->ref, request->images->settings->state);
    return 0;
}

static void images_on_checked(uv_fs_t *check)
{
    struct image_request *request = check->data;
    struct images *images = request->images;
    AQ_CLEANUP(image_record_unrefp) struct image_record *record = NULL;
    struct aq_error err = { 0 };

    uv_fs_req_cleanup(check);
    if (images_local_record(request, &record, &err) < 0)
        image_request_failed(request, &err);
    else
        image_request_ready(request, record);
    images_let_go(images);
}

static void images_check_local(struct images *images, struct image_request *request)
{
    images_place(images, &request->ref);
    request->check.data = request;
    if (uv_fs_stat(images->loop, &request->check, request->ref.path ? request->ref.path : "/",
                   images_on_checked)
        < 0)
        memory_is_short();
    request->is_checking = true;
    images->open++;
}

/* ---- getting ---- */

static bool images_is_local(const struct reference *ref)
{
    return ref->form == REFERENCE_HOST || ref->form == REFERENCE_ROOTFS
           || ref->form == REFERENCE_FILES;
}

static int images_fail_missing(const struct reference *ref, struct aq_error *err)
{
    return aq_fail_as(err, ENOENT, "image-not-found", "image", "the image '%s' is not on this node",
                      ref->text);
}

static int images_find_or_pull(struct images *images, struct image_request *request,
                               enum image_policy policy, struct aq_error *err)
{
    struct image_record *record = index_find(images, request->ref.text, request->architecture);
    bool is_certain = policy != IMAGE_PULL_ALWAYS || reference_is_pinned(&request->ref);

    if (record && is_certain) {
        record->refs++;
        request->found = record;
        (void)uv_timer_start(&images->soon, images_on_soon, 0, 0);
        return 0;
    }
    return policy == IMAGE_PULL_NEVER ? images_fail_missing(&request->ref, err)
                                      : pull_join(images, request, err);
}

static char *images_own_architecture(void)
{
    struct utsname host;

    return aq_strdup(architecture_of_image(uname(&host) == 0 ? host.machine : "x86_64"));
}

int images_get(struct images *images, const char *reference, const char *architecture,
               enum image_policy policy, const struct image_events *events, void *data,
               struct image_request **ret, struct aq_error *err)
{
    struct image_request *request = aq_alloc(sizeof(*request));
    int r;

    *request = (struct image_request){ .images = images, .events = events, .data = data };
    list_add(&images->requests, &request->link);
    list_init(&request->waiting);
    request->architecture = architecture ? aq_strdup(architecture_of_image(architecture))
                                         : images_own_architecture();
    r = reference_parse(reference, images->settings->image_registry, &request->ref, err);
    if (r == 0
        && !reference_is_allowed(&request->ref,
                                 (const char *const *)images->settings->image_allow.items,
                                 images->settings->image_allow.count))
        r = aq_fail_as(err, EACCES, "image-not-allowed", "image",
                       "this node's administrator does not admit the image '%s' ([image] allow)",
                       request->ref.text);
    if (r == 0 && images_is_local(&request->ref))
        images_check_local(images, request);
    else if (r == 0)
        r = images_find_or_pull(images, request, policy, err);
    if (r < 0)
        images_request_free(request);
    else
        *ret = request;
    return r;
}

void image_request_charge(struct image_request *request, const char *user)
{
    request->user = aq_strdup(user);
}

void images_cancel(struct image_request *request)
{
    request->events = NULL;
    if (request->pull)
        pull_leave(request->pull, request);
    if (!request->is_checking)
        images_request_free(request); /* else images_on_checked() does */
}

int images_lookup(struct images *images, const char *name, struct image_record **ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *architecture = images_own_architecture();
    struct reference ref = { .form = REFERENCE_REGISTRY };
    struct image_record *record;
    int r = 0;

    if (digest_is_valid(name)) {
        record = index_find(images, name, architecture);
        if (!record)
            r = aq_fail_as(err, ENOENT, "image-not-found", "image",
                           "the image %s is not on this node", name);
    } else {
        r = reference_parse(name, images->settings->image_registry, &ref, err);
        record = r == 0 ? index_find(images, ref.text, architecture) : NULL;
        if (r == 0 && !record)
            r = images_fail_missing(&ref, err);
        reference_done(&ref);
    }
    if (r == 0)
        *ret = record;
    return r;
}

int images_find(struct images *images, const char *name, struct image **ret, struct aq_error *err)
{
    AQ_CLEANUP(image_record_unrefp) struct image_record *local = NULL;
    struct reference ref = { .form = REFERENCE_REGISTRY };
    struct image_record *record = NULL;
    int r = 0;

    if (strcmp(name, "host") == 0 || strcmp(name, IMAGE_OF_FILES) == 0
        || strncmp(name, "rootfs:", 7) == 0) {
        r = reference_parse(name, NULL, &ref, err);
        if (r == 0) {
            images_place(images, &ref);
            record = local = image_record_new_local(&ref, images->settings->state);
        }
        reference_done(&ref);
    } else {
        r = images_lookup(images, name, &record, err);
    }
    if (r == 0)
        *ret = image_record_hold(record, name);
    return r;
}

/* ---- listing ---- */

static int images_describe(struct images *images, struct image_record *record,
                           int (*fn)(void *data, const struct image_info *info), void *data)
{
    const char *names[ENOUGH_NAMES];
    struct image_info info = {
        .digest = record->digest,
        .architecture = record->config.architecture,
        .names = names,
        .size_bytes = record->size_bytes,
        .fetched_usec = record->fetched_usec,
        .used_usec = record->used_usec,
        .holds = record->holds,
        .config = &record->config,
    };

    for (size_t i = 0; i < images->names.count && info.name_count < ENOUGH_NAMES; i++) {
        const struct image_name *name = images->names.entries[i].value;

        if (name->record == record)
            names[info.name_count++] = name->text;
    }
    record->is_said_used = record->holds > 0;
    return fn(data, &info);
}

int images_each(struct images *images, int (*fn)(void *data, const struct image_info *info),
                void *data)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < images->records.count; i++)
        r = images_describe(images, images->records.entries[i].value, fn, data);
    return AQ_MIN(r, 0);
}

/* ---- making and ending ---- */

void images_let_go(struct images *images)
{
    if (--images->open)
        return;
    index_done(images);
    layers_done(images);
    free(images->directory);
    free(images->unpack_program);
    free(images->fetch_program);
    free(images);
}

static void images_on_closed(uv_handle_t *handle)
{
    images_let_go(handle->data);
}

/* 'set' is the path in the settings, or NULL. */
static char *images_find_program(const char *set, const char *name)
{
    char *found = set ? aq_strdup(set) : installed_find(name);

    return found ? found : aq_strdup(name);
}

static int images_make_directories(struct images *images, struct aq_error *err)
{
    static const char *const names[] = { "layers", "images", "names", "pulls", "files" };

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        AQ_CLEANUP(aq_freep) char *path = images_path(images, names[i]);
        int r = fs_mkdirs(path, 0700, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int images_load(struct images *images, struct aq_error *err)
{
    int r;

    /* overlayfs parts directories by ':' and options by ','; skopeo parts by ':', too */
    if (strpbrk(images->directory, ":,\\\""))
        return aq_fail_field(err, EINVAL, "image.folder",
                             "the folder of images '%s' may not have any of : , \\ \" in its path",
                             images->directory);
    r = images_make_directories(images, err);
    if (r == 0)
        room_init(images);
    if (r == 0)
        r = fetch_write_registries(images, err);
    if (r == 0)
        r = layers_load(images, err);
    return r < 0 ? r : index_load(images, err);
}

int images_new(uv_loop_t *loop, const struct settings *settings, struct images **ret,
               struct aq_error *err)
{
    struct images *images = aq_alloc(sizeof(*images));
    int r;

    images->loop = loop;
    images->settings = settings;
    list_init(&images->requests);
    list_init(&images->pulls);
    list_init(&images->unpacking);
    list_init(&images->garbage);
    list_init(&images->waiting);
    images->directory = settings->image_directory ? aq_strdup(settings->image_directory)
                                                  : settings_path(settings, "images");
    images->unpack_program = images_find_program(settings->image_unpack, "aliquot-unpack");
    images->fetch_program = images_find_program(settings->image_fetch, "aliquot-fetch");
    images->soon.data = images->unpack_soon.data = images->gc_timer.data = images;
    images->use_timer.data = images;
    (void)uv_timer_init(loop, &images->soon);
    (void)uv_timer_init(loop, &images->use_timer);
    (void)uv_timer_init(loop, &images->unpack_soon);
    (void)uv_timer_init(loop, &images->gc_timer);
    images->open = 4;
    r = images_load(images, err);
    if (r < 0) {
        images_free(images);
        return r;
    }
    gc_start(images);
    *ret = images;
    return 0;
}

void images_free(struct images *images)
{
    if (!images)
        return;
    images->is_closing = true;
    images->on_change = NULL;
    LIST_FOREACH(it, &images->requests)
        images_cancel(LIST_ENTRY(it, struct image_request, link));
    uv_close((uv_handle_t *)&images->soon, images_on_closed);
    uv_close((uv_handle_t *)&images->use_timer, images_on_closed);
    uv_close((uv_handle_t *)&images->unpack_soon, images_on_closed);
    uv_close((uv_handle_t *)&images->gc_timer, images_on_closed);
}
