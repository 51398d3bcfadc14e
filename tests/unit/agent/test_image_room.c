/* SPDX-License-Identifier: Apache-2.0 */
/* Which unused images give way, and to whom. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/images_internal.h"
#include "base/clock.h"
#include "base/fs.h"

#define MEBIBYTE (INT64_C(1) << 20)

struct scene {
    uv_loop_t loop;
    char folder[64];
    struct settings settings;
    struct images *images;
    struct image_room room;
    bool is_made;
};

static void on_made(void *data)
{
    ((struct scene *)data)->is_made = true;
}

static int scene_init(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    (void)strcpy(s->folder, "/tmp/aq-room-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(settings_load("/dev/null", s->folder, SETTINGS_DEV, &s->settings, NULL), 0);
    s->settings.image_keep_free = INT64_MAX / 2; /* images have what they have, and no more */
    s->room = (struct image_room){ .on_made = on_made, .data = s };
    list_init(&s->room.link);
    *state = s;
    return 0;
}

static int scene_done(void **state)
{
    struct scene *s = *state;

    images_free(s->images);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    settings_done(&s->settings);
    assert_int_equal(fs_remove_tree(AT_FDCWD, s->folder, NULL), 0);
    free(s);
    return 0;
}

/* ---- a store ---- */

static void write_file(struct scene *s, const char *directory, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/images/%s", s->folder, directory);
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", folder, name);

    assert_int_equal(fs_mkdirs(folder, 0700, NULL), 0);
    assert_int_equal(fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void digest_of(char letter, char ret[DIGEST_TEXT_MAX])
{
    (void)strcpy(ret, "sha256:");
    memset(ret + 7, letter, 64);
    ret[7 + 64] = '\0';
}

/* A layer of 100 MiB for each letter. */
static void add_layer(struct scene *s, char letter)
{
    char digest[DIGEST_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *directory = NULL;

    digest_of(letter, digest);
    directory = aq_format("layers/%s", digest + 7);
    write_file(s, directory, "layer.json", "{\"size_bytes\":104857600}");
}

/* An image of layers, which was used so many hours ago. */
static void add_image(struct scene *s, char letter, const char *layers, const char *user, int hours)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf config = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *directory = NULL;
    time_t then = (time_t)(clock_realtime_usec() / USEC_PER_SEC - hours * 3600);
    const struct timespec times[2] = { { .tv_sec = then }, { .tv_sec = then } };
    static const char *const files[] = { "used", "config.json" };
    char digest[DIGEST_TEXT_MAX];

    strbuf_adds(&config,
                "{\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\","
                "\"diff_ids\":[");
    for (const char *at = layers; *at; at++) {
        digest_of(*at, digest);
        strbuf_addf(&config, "%s\"%s\"", at == layers ? "" : ",", digest);
        add_layer(s, *at);
    }
    strbuf_adds(&config, "]}}");
    digest_of(letter, digest);
    directory = aq_format("images/%s", digest + 7);
    write_file(s, directory, "config.json", config.data);
    write_file(s, directory, "used", user);
    for (size_t i = 0; i < AQ_COUNT(files); i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/images/%s/%s", s->folder, directory,
                                                    files[i]);

        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

static void open_store(struct scene *s)
{
    assert_int_equal(images_new(&s->loop, &s->settings, &s->images, NULL), 0);
}

static struct image_record *record_of(struct scene *s, char letter)
{
    char digest[DIGEST_TEXT_MAX];

    digest_of(letter, digest);
    return map_gets(&s->images->records, digest);
}

static struct image *hold(struct scene *s, char letter)
{
    struct image *image = NULL;

    assert_int_equal(images_find(s->images, record_of(s, letter)->digest, &image, NULL), 0);
    return image;
}

/* Ask for room, wait for it if it is being made, and compare which images are left. */
static void make(struct scene *s, const struct room_wish *wish, int result, const char *left)
{
    char found[16] = "";
    struct aq_error err = { 0 };
    size_t count = 0;

    s->is_made = false;
    assert_int_equal(room_make(s->images, wish, &s->room, &err), result);
    if (result == -EINPROGRESS)
        (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(s->is_made, result == -EINPROGRESS);
    for (char letter = 'a'; letter <= 'f'; letter++)
        if (record_of(s, letter))
            found[count++] = letter;
    assert_string_equal(found, left);
}

/* ---- choices ---- */

static void test_least_recently_used_first(void **state)
{
    const struct room_wish wish = { .bytes = 150 * MEBIBYTE };
    struct scene *s = *state;

    add_image(s, 'a', "1", "", 3);
    add_image(s, 'b', "2", "", 9);
    add_image(s, 'c', "3", "", 6);
    open_store(s);
    make(s, &wish, -EINPROGRESS, "a");
}

static void test_nothing_goes_in_vain(void **state)
{
    const struct room_wish wish = { .bytes = 201 * MEBIBYTE };
    const struct room_wish estimate = { .bytes = 201 * MEBIBYTE, .is_estimate = true };
    struct scene *s = *state;

    add_image(s, 'a', "1", "", 3);
    add_image(s, 'b', "2", "", 9);
    open_store(s);
    make(s, &wish, -ENOSPC, "ab");
    make(s, &estimate, -EINPROGRESS, "");
}

/* The one that was used last of all is not, and neither is what has its layer. */
static void test_what_is_used_stays(void **state)
{
    const struct room_wish wish = { .bytes = 1 };
    struct scene *s = *state;
    struct image *image;

    add_image(s, 'a', "1", "", 9);
    add_image(s, 'b', "1", "", 8);
    add_image(s, 'c', "12", "", 7);
    open_store(s);
    image = hold(s, 'a');
    make(s, &wish, -EINPROGRESS, "ab");
    make(s, &wish, -ENOSPC, "ab");
    image_unref(image);
}

static void test_what_is_asked_for_stays(void **state)
{
    const struct room_wish wish = { .bytes = 1 };
    struct image_request request = { .events = NULL };
    struct scene *s = *state;

    add_image(s, 'a', "1", "", 9);
    open_store(s);
    request.found = record_of(s, 'a');
    list_add(&s->images->requests, &request.link);
    make(s, &wish, -ENOSPC, "a");
    list_remove(&request.link);
    make(s, &wish, -EINPROGRESS, "");
}

/* What two images have in common goes only with both. */
static void test_shared_layers(void **state)
{
    const struct room_wish wish = { .bytes = 150 * MEBIBYTE };
    struct scene *s = *state;

    add_image(s, 'a', "1", "", 9);
    add_image(s, 'b', "12", "", 8);
    add_image(s, 'c', "3", "", 7);
    open_store(s);
    make(s, &wish, -EINPROGRESS, "c");
}

/* Of pulls that were given up: blobs, half a layer, a layer of no image. */
static void test_leftovers_go_before_images(void **state)
{
    static const char *const left[] = { "pulls/cc", "layers/.new-dd-1", "layers/" };
    const struct room_wish wish = { .bytes = 1 };
    struct scene *s = *state;
    char digest[DIGEST_TEXT_MAX];

    add_image(s, 'a', "1", "", 9);
    add_layer(s, '2');
    open_store(s);
    write_file(s, left[0], "blob", "x");
    write_file(s, left[1], "file", "x");
    make(s, &wish, -EINPROGRESS, "a");
    digest_of('2', digest);
    for (size_t i = 0; i < AQ_COUNT(left); i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/images/%s%s", s->folder, left[i],
                                                    i == 2 ? digest + 7 : "");

        assert_int_equal(access(path, F_OK), -1);
    }
    make(s, &wish, -EINPROGRESS, "");
}

/* ---- shares ---- */

static void test_above_a_share_first(void **state)
{
    const struct room_wish wish = { .bytes = 1, .user = "new", .image_bytes = 1 };
    struct scene *s = *state;

    add_image(s, 'a', "1", "one", 9);
    add_image(s, 'b', "2", "two", 3);
    add_image(s, 'c', "3", "two", 2);
    open_store(s);
    make(s, &wish, -EINPROGRESS, "ac"); /* of 300 MiB, 150 are a share */
    make(s, &wish, -EINPROGRESS, "c");
}

/* Layers that a user has more than once count once. */
static void test_common_layers_count_once(void **state)
{
    const struct room_wish wish = { .bytes = 1, .user = "new", .image_bytes = 1 };
    struct scene *s = *state;

    add_image(s, 'a', "34", "one", 9);
    add_image(s, 'b', "1", "two", 3);
    add_image(s, 'c', "12", "two", 2);
    open_store(s);
    make(s, &wish, -EINPROGRESS, "bc");
}

static void test_greed(void **state)
{
    const struct room_wish wish = { .bytes = 1, .user = "two", .image_bytes = 100 * MEBIBYTE };
    struct scene *s = *state;
    struct aq_error err = { 0 };
    struct image *image;

    add_image(s, 'a', "1", "one", 9);
    add_image(s, 'b', "2", "two", 3);
    add_image(s, 'c', "3", "two", 2);
    add_image(s, 'd', "4", "", 8);
    open_store(s);
    image = hold(s, 'c');
    make(s, &wish, -EINPROGRESS, "acd");
    make(s, &wish, -EINPROGRESS, "ac"); /* nobody's */
    make(s, &wish, -ENOSPC, "ac");
    assert_int_equal(room_make(s->images, &wish, &s->room, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "user-share"));
    s->settings.image_user_share = 100;
    make(s, &wish, -EINPROGRESS, "c");
    image_unref(image);
}

static void test_charge(void **state)
{
    struct scene *s = *state;
    struct image_record *record;

    add_image(s, 'a', "1", "one", 9);
    add_image(s, 'b', "2", "", 9);
    open_store(s);
    record = record_of(s, 'a');
    assert_string_equal(record->user, "one");
    image_record_charge(record, "two");
    image_record_charge(record_of(s, 'b'), "two");
    images_free(AQ_TAKE(s->images));
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    open_store(s);
    record = record_of(s, 'a');
    assert_string_equal(record->user, "two");
    image_record_charge(record, NULL);
    assert_null(record->user);
    record = record_of(s, 'b');
    assert_null(record->user);
}

/* ---- how much is kept ---- */

static int64_t promise(void *data)
{
    return *(int64_t *)data;
}

static void test_kept(void **state)
{
    struct scene *s = *state;
    int64_t promised = 30 * 1024 * MEBIBYTE;

    s->settings.image_keep_free = 0;
    open_store(s);
    assert_int_equal(room_kept(s->images), (10 * 1024 + 256) * MEBIBYTE);
    images_set_promised(s->images, promise, &promised);
    assert_int_equal(room_kept(s->images), promised);
    promised = 0;
    s->settings.scratch_reserve = false;
    room_init(s->images);
    assert_int_equal(room_kept(s->images), 1024 * MEBIBYTE);
    s->settings.image_keep_free = 5;
    room_init(s->images);
    assert_int_equal(room_kept(s->images), 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_init, scene_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_least_recently_used_first),
        TEST(test_nothing_goes_in_vain),
        TEST(test_what_is_used_stays),
        TEST(test_what_is_asked_for_stays),
        TEST(test_shared_layers),
        TEST(test_leftovers_go_before_images),
        TEST(test_above_a_share_first),
        TEST(test_common_layers_count_once),
        TEST(test_greed),
        TEST(test_charge),
        TEST(test_kept),
    };

    return cmocka_run_group_tests_name("agent/image_room", tests, NULL, NULL);
}
