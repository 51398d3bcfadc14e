/* SPDX-License-Identifier: Apache-2.0 */
/* The image store: root file systems as they are, what is rejected, cancelling. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/image/image.h"
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
    assert_int_equal(conf_list_add(&s->settings.image_allow, pattern, strlen(pattern)), 0);
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
    image_unref(image_ref(s->image));
    image_unref(AQ_TAKE(s->image));
    assert_int_equal(images_find(s->images, "python", &s->image, &s->err), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_host, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_rootfs, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_refusals, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_cancel, scene_init, scene_done),
        cmocka_unit_test_setup_teardown(test_find, scene_init, scene_done),
    };

    return cmocka_run_group_tests_name("agent/images", tests, NULL, NULL);
}
