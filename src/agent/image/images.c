#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/image/store.h"
#include "base/fs.h"

#define ENOUGH_NAMES 64

char *images_path(const struct images *images, const char *rest)
{
    return aq_format("%s/%s", images->folder, rest);
}

/* ---- requests ---- */

static void request_free(struct image_request *request)
{
    list_remove(&request->link);
    reference_done(&request->ref);
    record_unref(request->found);
    free(request->architecture);
    free(request);
}

/* The request is gone before its owner is told, who may do anything. */
void request_failed(struct image_request *request, const struct aq_error *err)
{
    const struct image_events *events = request->events;
    const struct aq_error copy = *err;
    void *data = request->data;

    request_free(request);
    if (events)
        events->on_failed(data, &copy);
}

void request_ready(struct image_request *request, struct record *record)
{
    const struct aq_error no_memory = { .code = ENOMEM, .text = "memory is short" };
    const struct image_events *events = request->events;
    void *data = request->data;
    struct image *image = events ? record_hold(record, request->ref.text) : NULL;

    request_free(request);
    if (image)
        events->on_ready(data, image);
    else if (events)
        events->on_failed(data, &no_memory);
}

static void on_soon(uv_timer_t *timer)
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
            request_ready(request, request->found);
    } while (request);
}

void images_changed(struct images *images)
{
    images->is_changed = true;
    if (!images->is_closing)
        (void)uv_timer_start(&images->soon, on_soon, 0, 0);
}

void images_set_on_change(struct images *images, void (*on_change)(void *data), void *data)
{
    images->on_change = on_change;
    images->change_data = data;
}

/* ---- root file systems as they are ---- */

static int local_record(const struct image_request *request, struct record **ret,
                        struct aq_error *err)
{
    const char *path = request->ref.path ? request->ref.path : "/";

    if (request->look.result < 0)
        return aq_fail_field(err, (int)-request->look.result, "image",
                             "image '%s': %s: %s", request->ref.text, path,
                             uv_strerror((int)request->look.result));
    if (!S_ISDIR(request->look.statbuf.st_mode))
        return aq_fail_field(err, ENOTDIR, "image", "image '%s': %s is not a folder",
                             request->ref.text, path);
    return record_new_local(&request->ref, request->images->settings->state, ret, err);
}

static void on_looked(uv_fs_t *look)
{
    struct image_request *request = look->data;
    struct images *images = request->images;
    AQ_CLEANUP(record_unrefp) struct record *record = NULL;
    struct aq_error err = { 0 };

    uv_fs_req_cleanup(look);
    if (local_record(request, &record, &err) < 0)
        request_failed(request, &err);
    else
        request_ready(request, record);
    images_let_go(images);
}

static int look(struct images *images, struct image_request *request, struct aq_error *err)
{
    request->look.data = request;
    if (uv_fs_stat(images->loop, &request->look, request->ref.path ? request->ref.path : "/",
                   on_looked) < 0)
        return aq_fail(err, ENOMEM, "image");
    request->is_looking = true;
    images->open++;
    return 0;
}

/* ---- getting ---- */

static bool is_local(const struct reference *ref)
{
    return ref->form == REFERENCE_HOST || ref->form == REFERENCE_ROOTFS;
}

static int fail_missing(const struct reference *ref, struct aq_error *err)
{
    return aq_fail_as(err, ENOENT, "image-not-found", "image",
                      "the image '%s' is not on this node", ref->text);
}

static int find_or_pull(struct images *images, struct image_request *request,
                        enum image_policy policy, struct aq_error *err)
{
    struct record *record = index_find(images, request->ref.text, request->architecture);
    bool is_certain = policy != IMAGE_PULL_ALWAYS || reference_is_pinned(&request->ref);

    if (record && is_certain) {
        record->refs++;
        request->found = record;
        (void)uv_timer_start(&images->soon, on_soon, 0, 0);
        return 0;
    }
    return policy == IMAGE_PULL_NEVER ? fail_missing(&request->ref, err)
                                      : pull_join(images, request, err);
}

static char *own_architecture(void)
{
    struct utsname host;

    return strdup(manifest_architecture(uname(&host) == 0 ? host.machine : "x86_64"));
}

int images_get(struct images *images, const char *reference, const char *architecture,
               enum image_policy policy, const struct image_events *events, void *data,
               struct image_request **ret, struct aq_error *err)
{
    struct image_request *request = calloc(1, sizeof(*request));
    int r;

    if (!request)
        return aq_fail(err, ENOMEM, "image");
    *request = (struct image_request){ .images = images, .events = events, .data = data };
    list_add(&images->requests, &request->link);
    list_init(&request->waiting);
    request->architecture = architecture ? strdup(manifest_architecture(architecture))
                                         : own_architecture();
    r = request->architecture
            ? reference_parse(reference, images->settings->image_registry, &request->ref, err)
            : aq_fail(err, ENOMEM, "image");
    if (r == 0
        && !reference_is_allowed(&request->ref,
                                 (const char *const *)images->settings->image_allow.items,
                                 images->settings->image_allow.count))
        r = aq_fail_as(err, EACCES, "image-not-allowed", "image",
                       "this node's administrator does not admit the image '%s' ([image] allow)",
                       request->ref.text);
    if (r == 0)
        r = is_local(&request->ref) ? look(images, request, err)
                                    : find_or_pull(images, request, policy, err);
    if (r < 0)
        request_free(request);
    else
        *ret = request;
    return r;
}

void images_cancel(struct image_request *request)
{
    request->events = NULL;
    if (request->pull)
        pull_leave(request->pull, request);
    if (!request->is_looking)
        request_free(request); /* else on_looked() does */
}

int images_lookup(struct images *images, const char *name, struct record **ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *architecture = own_architecture();
    struct reference ref = { .form = REFERENCE_REGISTRY };
    struct record *record;
    int r = 0;

    if (!architecture)
        return aq_fail(err, ENOMEM, "image");
    if (digest_is_valid(name)) {
        record = index_find(images, name, architecture);
        if (!record)
            r = aq_fail_as(err, ENOENT, "image-not-found", "image",
                           "the image %s is not on this node", name);
    } else {
        r = reference_parse(name, images->settings->image_registry, &ref, err);
        record = r == 0 ? index_find(images, ref.text, architecture) : NULL;
        if (r == 0 && !record)
            r = fail_missing(&ref, err);
        reference_done(&ref);
    }
    if (r == 0)
        *ret = record;
    return r;
}

int images_find(struct images *images, const char *name, struct image **ret,
                struct aq_error *err)
{
    AQ_CLEANUP(record_unrefp) struct record *local = NULL;
    struct reference ref = { .form = REFERENCE_REGISTRY };
    struct record *record = NULL;
    int r = 0;

    if (strcmp(name, "host") == 0 || strncmp(name, "rootfs:", 7) == 0) {
        r = reference_parse(name, NULL, &ref, err);
        if (r == 0)
            r = record_new_local(&ref, images->settings->state, &local, err);
        record = local;
        reference_done(&ref);
    } else {
        r = images_lookup(images, name, &record, err);
    }
    if (r == 0 && !(*ret = record_hold(record, name)))
        r = aq_fail(err, ENOMEM, "image");
    return r;
}

/* ---- listing ---- */

static int describe(struct images *images, const struct record *record,
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
        const struct name *name = images->names.entries[i].value;

        if (name->record == record)
            names[info.name_count++] = name->text;
    }
    return fn(data, &info);
}

int images_each(struct images *images, int (*fn)(void *data, const struct image_info *info),
                void *data)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < images->records.count; i++)
        r = describe(images, images->records.entries[i].value, fn, data);
    return AQ_MIN(r, 0);
}

/* ---- making and ending ---- */

void images_let_go(struct images *images)
{
    if (--images->open)
        return;
    index_done(images);
    layers_done(images);
    free(images->folder);
    free(images->unpack_program);
    free(images);
}

static void on_closed(uv_handle_t *handle)
{
    images_let_go(handle->data);
}

static char *find_unpack(const struct settings *settings)
{
    static const char *const places[] = { "", "../libexec/aliquot/" };
    AQ_CLEANUP(aq_freep) char *folder = fs_program_dir();

    if (settings->image_unpack)
        return strdup(settings->image_unpack);
    for (size_t i = 0; folder && i < AQ_COUNT(places); i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%saliquot-unpack", folder, places[i]);

        if (path && access(path, X_OK) == 0)
            return AQ_TAKE(path);
    }
    return strdup("aliquot-unpack");
}

static int make_folders(struct images *images, struct aq_error *err)
{
    static const char *const names[] = { "layers", "images", "names", "pulls" };

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        AQ_CLEANUP(aq_freep) char *path = images_path(images, names[i]);
        int r = path ? fs_mkdirs(path, 0700, err) : aq_fail(err, ENOMEM, "images");

        if (r < 0)
            return r;
    }
    return 0;
}

static int load(struct images *images, struct aq_error *err)
{
    int r;

    if (!images->folder || !images->unpack_program)
        return aq_fail(err, ENOMEM, "images");
    /* overlayfs parts folders by ':' and options by ','; skopeo parts by ':', too */
    if (strpbrk(images->folder, ":,\\\""))
        return aq_fail_field(err, EINVAL, "image.folder",
                             "the folder of images '%s' may not have any of : , \\ \" in its path",
                             images->folder);
    r = make_folders(images, err);
    if (r == 0)
        r = fetch_write_registries(images, err);
    if (r == 0)
        r = layers_load(images, err);
    return r < 0 ? r : index_load(images, err);
}

int images_new(uv_loop_t *loop, const struct settings *settings, struct images **ret,
               struct aq_error *err)
{
    struct images *images = calloc(1, sizeof(*images));
    int r;

    if (!images)
        return aq_fail(err, ENOMEM, "images");
    images->loop = loop;
    images->settings = settings;
    list_init(&images->requests);
    list_init(&images->pulls);
    list_init(&images->unpacking);
    list_init(&images->rubbish);
    images->folder = settings->image_folder ? strdup(settings->image_folder)
                                            : settings_path(settings, "images");
    images->unpack_program = find_unpack(settings);
    images->soon.data = images->unpack_soon.data = images->gc_timer.data = images;
    (void)uv_timer_init(loop, &images->soon);
    (void)uv_timer_init(loop, &images->unpack_soon);
    (void)uv_timer_init(loop, &images->gc_timer);
    images->open = 3;
    r = load(images, err);
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
    uv_close((uv_handle_t *)&images->soon, on_closed);
    uv_close((uv_handle_t *)&images->unpack_soon, on_closed);
    uv_close((uv_handle_t *)&images->gc_timer, on_closed);
}
