/* SPDX-License-Identifier: Apache-2.0 */
/* The image store: root file systems as they are, what is rejected, cancelling. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/image/images_internal.h"
#include "agent/image/pull.h"
#include "base/fs.h"
#include "conf/tables.h"

struct scene {
    uv_loop_t loop;
    char folder[64];
    struct settings settings;
    struct images *images;
    struct image *image;
    struct aq_error err;
    bool is_done;
};

static void on_ready(void *data, struct image *image)
{
    struct scene *s = data;

    s->image = image;
    s->is_done = true;
}

static void on_failed(void *data, const struct aq_error *err)
{
    struct scene *s = data;

    s->err = *err;
    s->is_done = true;
}

static const struct image_events events = { .on_ready = on_ready, .on_failed = on_failed };

static int scene_init(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    (void)strcpy(s->folder, "/tmp/aq-images-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(settings_load("/dev/null", s->folder, SETTINGS_DEV, &s->settings, NULL), 0);
    assert_int_equal(images_new(&s->loop, &s->settings, &s->images, NULL), 0);
    *state = s;
    return 0;
}

static int scene_done(void **state)
{
    struct scene *s = *state;

    image_unref(s->image);
    images_free(s->images);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    settings_done(&s->settings);
    assert_int_equal(fs_remove_tree(AT_FDCWD, s->folder, NULL), 0);
    free(s);
    return 0;
}

/* What images_get() returned, or what came later. */
static int get(struct scene *s, const char *name)
{
    struct image_request *request;
    int r = images_get(s->images, name, NULL, IMAGE_PULL_MISSING, &events, s, &request, &s->err);

    s->is_done = false;
    while (r == 0 && !s->is_done)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    return r < 0 ? r : s->image ? 0 : -s->err.code;
}

static void allow(struct scene *s, const char *pattern)
{
    conf_list_done(&s->settings.image_allow);
    conf_list_add(&s->settings.image_allow, pattern, strlen(pattern));
}

static void test_host(void **state)
{
    struct scene *s = *state;
    bool state_hidden = false;

    assert_int_equal(get(s, "host"), 0);
    assert_string_equal(s->image->reference, "host");
    assert_null(s->image->digest);
    assert_int_equal(s->image->lower_count, 1);
    assert_string_equal(s->image->lowers[0], "/");
    assert_null(s->image->config->env);
    for (const char *const *at = s->image->hidden; *at; at++)
        state_hidden = state_hidden || strcmp(*at, s->folder) == 0;
    assert_true(state_hidden);
}

static void test_rootfs(void **state)
{
    struct scene *s = *state;
    char name[128];

    allow(s, "rootfs:/tmp");
    (void)snprintf(name, sizeof(name), "rootfs:%s", s->folder);
    assert_int_equal(get(s, name), 0);
    assert_string_equal(s->image->lowers[0], s->folder);
    assert_null(s->image->hidden[0]);
}

static void test_refusals(void **state)
{
    struct scene *s = *state;

    assert_int_equal(get(s, "rootfs:/srv"), -EACCES);
    assert_string_equal(s->err.kind, "image-not-allowed");
    assert_int_equal(get(s, "Bad Name"), -EINVAL);
    allow(s, "rootfs:/");
    assert_int_equal(get(s, "host"), -EACCES);
    assert_int_equal(get(s, "rootfs:/nonexistent"), -ENOENT);
    assert_int_equal(get(s, "rootfs:/etc/passwd"), -ENOTDIR);
    assert_string_equal(s->err.field, "image");
}

static void test_cancel(void **state)
{
    struct scene *s = *state;
    struct image_request *request;

    assert_int_equal(
        images_get(s->images, "host", NULL, IMAGE_PULL_NEVER, &events, s, &request, NULL), 0);
    assert_false(s->is_done);
    images_cancel(request);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_false(s->is_done);
}

static void test_find(void **state)
{
    struct scene *s = *state;

    assert_int_equal(images_find(s->images, "host", &s->image, NULL), 0);
    assert_string_equal(s->image->lowers[0], "/");
    image_unref(AQ_TAKE(s->image));
    assert_int_equal(images_find(s->images, "python", &s->image, &s->err), -ENOENT);
}

/* ---- progress ---- */

#define REQUESTS 3

static struct image_request *asked[REQUESTS]; /* on the heap, as they go while others are told */
static size_t told;

static void cancel_asked(size_t at)
{
    if (!asked[at])
        return;
    list_remove(&asked[at]->waiting);
    free(AQ_TAKE(asked[at]));
}

static void cancel_the_others(void *data, const struct image_progress *progress)
{
    const struct image_request *own = data;

    assert_int_equal(progress->done_bytes, 7);
    told++;
    for (size_t i = 0; i < REQUESTS; i++)
        if (asked[i] != own)
            cancel_asked(i);
}

static void test_progress_cancels_the_others(void **state)
{
    static const struct image_events cancelling = { .on_progress = cancel_the_others };
    struct images images = { 0 };
    struct pull pull = { .images = &images };

    (void)state;
    list_init(&images.pulls);
    list_init(&pull.requests);
    list_add(&images.pulls, &pull.link);
    for (size_t i = 0; i < REQUESTS; i++) {
        asked[i] = calloc(1, sizeof(*asked[i]));
        assert_non_null(asked[i]);
        asked[i]->events = &cancelling;
        asked[i]->data = asked[i];
        list_add(&pull.requests, &asked[i]->waiting);
    }
    pull_tell(&pull, IMAGE_FETCHING, 7);
    assert_int_equal(told, 1);
    cancel_asked(0);
    assert_true(list_is_empty(&pull.requests));
}

/* ---- what is in an image ---- */

static void make_link(struct scene *s, const char *target, const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", s->folder, name);

    assert_int_equal(symlink(target, path), 0);
}

static void make_folder(struct scene *s, const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", s->folder, name);

    assert_int_equal(fs_mkdirs(path, 0755, NULL), 0);
}

/* As Nix makes them: a layer for each package, and links to them in the topmost one. */
static void test_paths_through_layers(void **state)
{
    static const char *const there[] = { "/bin/sh",      "/sbin/sh",   "/usr/bin/sh", "/deep/sh",
                                         "/store/x/bin", "//bin/./sh", "/broken",     "/up/store" };
    static const char *const missing[] = { "/bin/bash", "/broken/sh", "/loop/sh", "/none/sh" };
    struct scene *s = *state;
    AQ_CLEANUP(aq_freep) char *top = aq_format("%s/top", s->folder);
    AQ_CLEANUP(aq_freep) char *low = aq_format("%s/low", s->folder);
    const char *lowers[] = { top, low };
    const struct image image = { .lowers = lowers, .lower_count = 2 };

    make_folder(s, "low/store/x/bin/sh");
    make_folder(s, "top/usr");
    make_link(s, "/store/x/bin", "top/bin");
    make_link(s, "bin", "top/sbin");
    make_link(s, "../bin", "top/usr/bin");
    make_link(s, "../../../store/x/../x/./bin", "top/deep");
    make_link(s, "..", "top/up");
    make_link(s, "/nothing", "top/broken");
    make_link(s, "loop", "top/loop");
    for (size_t i = 0; i < AQ_COUNT(there); i++)
        if (!image_has(&image, there[i]))
            fail_msg("%s", there[i]);
    for (size_t i = 0; i < AQ_COUNT(missing); i++)
        if (image_has(&image, missing[i]))
            fail_msg("%s", missing[i]);
}

static void test_paths_in_one_layer(void **state)
{
    static const char *const there[] = { "/bin/sh", "/usr/bin/sh", "//bin/./sh", "/broken",
                                         "/up/bin/sh" };
    static const char *const missing[] = { "/bin/bash", "/broken/sh", "/loop/sh", "/etc/hostname",
                                           "/bin/sh/x" };
    struct scene *s = *state;
    AQ_CLEANUP(aq_freep) char *root = aq_format("%s/one", s->folder);
    AQ_CLEANUP(aq_freep) char *program = aq_format("%s/one/usr/bin/sh", s->folder);
    const char *lowers[] = { root };
    const struct image image = { .lowers = lowers, .lower_count = 1 };

    make_folder(s, "one/usr/bin");
    assert_int_equal(fs_write_quick(AT_FDCWD, program, "", 0, 0755, NULL), 0);
    make_link(s, "/usr/bin", "one/bin");
    make_link(s, "../../..", "one/up");
    make_link(s, "/nothing", "one/broken");
    make_link(s, "loop", "one/loop");
    for (size_t i = 0; i < AQ_COUNT(there); i++)
        assert_row(image_has(&image, there[i]), "%s", there[i]);
    for (size_t i = 0; i < AQ_COUNT(missing); i++)
        assert_row(!image_has(&image, missing[i]), "%s", missing[i]);
}

/* Only of images whose files do not change. */
static void test_answers_about_paths_are_kept(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(aq_freep) char *root = aq_format("%s/kept", s->folder);
    AQ_CLEANUP(aq_freep) char *first = aq_format("%s/kept/first", s->folder);
    const char *lowers[] = { root };
    struct map known = MAP_INIT;
    const struct image image = { .lowers = lowers, .lower_count = 1, .known = &known };
    const struct image changing = { .lowers = lowers, .lower_count = 1 };

    make_folder(s, "kept/first");
    assert_true(image_has(&image, "/first") && image_has(&changing, "/first"));
    assert_false(image_has(&image, "/second") || image_has(&changing, "/second"));
    assert_int_equal(rmdir(first), 0);
    make_folder(s, "kept/second");
    assert_true(image_has(&image, "/first") && !image_has(&changing, "/first"));
    assert_true(!image_has(&image, "/second") && image_has(&changing, "/second"));
    map_done(&known);
}

/* ---- why a fetch failed, to administrators and to users ---- */

static const char *tell(struct scene *s, const char *name, const char *said)
{
    struct reference ref;
    struct aq_error failure = { 0 };

    assert_int_equal(reference_parse(name, NULL, &ref, NULL), 0);
    assert_true(fetch_failed(&ref, 1, said, &failure) < 0);
    assert_non_null(strstr(failure.text, said));
    reference_done(&ref);
    image_hide_failure(s->images, name, &failure, &s->err);
    assert_null(strstr(s->err.text, "10.1.2.3"));
    return s->err.text;
}

static void test_causes(void **state)
{
    static const char *const rows[][2] = {
        { "dial tcp: lookup x on 10.1.2.3:53: no such host", "no such host" },
        { "dial tcp 10.1.2.3:5000: connect: connection refused", "connection refused" },
        { "dial tcp 10.1.2.3:5000: connect: no route to host", "no route to the registry" },
        { "dial tcp 10.1.2.3:5000: i/o timeout", "does not answer in time" },
        { "http: server gave HTTP response to HTTPS client", "has no TLS" },
        { "x509: certificate signed by unknown authority", "certificate is not trusted" },
        { "read tcp 10.1.2.3:1: connection reset by peer", "the connection broke" },
        { "writing blob: happened during read: unexpected EOF", "closed the connection early" },
        { "Get \"https://10.1.2.3/v2/\": EOF", "closed the connection early" },
        { "invalid status code from registry 404 (Not Found)", "lacks a part of the image" },
        { "reading manifest t in a: StatusCode: 401, unauthorized", "401, 403" },
        { "invalid status code from registry 403 (Forbidden)", "401, 403" },
        { "reading manifest t in a: manifest unknown", "was not found: check its name and tag" },
        { "reading manifest t in a: StatusCode: 404, <html>", "was not found" },
        { "reading manifest t in a: toomanyrequests: rate", "limits how often" },
        { "received unexpected HTTP status: 503 Service Unavailable", "an error of its own" },
        { "Running image docker://a is rejected by policy.", "policy for signatures" },
        { "malformed HTTP response \\x00\\x00 of 10.1.2.3", "could not be fetched" },
    };
    struct scene *s = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        if (!strstr(tell(s, "docker.io/team/a:t", rows[i][0]), rows[i][1])
            || (strstr(s->err.text, "check its name") && !strstr(s->err.text, "not found")))
            fail_msg("'%s': '%s'", rows[i][0], s->err.text);
    assert_non_null(
        strstr(tell(s, "oci:/layout:a", "open blobs/x: permission denied"), "open blobs"));
}

/* A registry that nobody but the user has named, where fetches reach more than containers. */
static void test_no_scan_by_names(void **state)
{
    static const char refused[] = "dial tcp 10.1.2.3:5000: connect: connection refused";
    static const char none[] = "lookup x on 10.1.2.3:53: no such host";
    struct scene *s = *state;

    assert_null(strstr(tell(s, "10.0.0.1:5000/a:t", refused), "refused"));
    assert_non_null(strstr(tell(s, "nosuch.invalid/a:t", none), "no such host"));
    conf_list_add(&s->settings.image_insecure, "10.0.0.1:5000", 13);
    assert_non_null(strstr(tell(s, "10.0.0.1:5000/a:t", refused), "connection refused"));
    assert_null(strstr(tell(s, "10.0.0.1:5001/a:t", refused), "refused"));
    images_set_pull_group(s->images, 0x60000000);
    assert_non_null(strstr(tell(s, "10.0.0.1:5001/a:t", refused), "connection refused"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_host, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_rootfs, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_refusals, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_cancel, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_find, scene_init, scene_done),
        cmocka_unit_test(test_progress_cancels_the_others),
        cmocka_unit_test_setup_teardown(test_paths_through_layers, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_paths_in_one_layer, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_answers_about_paths_are_kept, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_causes, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_no_scan_by_names, scene_init, scene_done),
    };

    return cmocka_run_group_tests_name("agent/images", tests, NULL, NULL);
}
