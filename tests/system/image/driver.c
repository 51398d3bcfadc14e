/* SPDX-License-Identifier: Apache-2.0 */
/* An image store alone, for tests: aliquot-image-driver STATE CONFIG VERB [ARG]
 *
 *   get NAME...    pull all at once; one line each: progress, "ready NAME DIGEST
 *                  LOWER:LOWER...", or "failed NAME KIND TEXT"
 *   always NAME    the same, asking the registry although it is here
 *   hold NAME      get, then keep it until standard input ends
 *   ls | rm NAME | gc | gc-all
 *
 * What it gets is charged to the user in $DRIVER_USER, if there is one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/image/image.h"
#include "base/log.h"

struct driver {
    uv_loop_t loop;
    uv_pipe_t input;
    struct settings settings;
    struct images *images;
    bool keep;
    int waiting, failed;
};

struct wanted {
    struct driver *driver;
    const char *name;
    struct image *image;
};

static void on_progress(void *data, const struct image_progress *progress)
{
    struct wanted *wanted = data;

    (void)printf("progress %s %s %lld %lld\n", wanted->name, image_phase_name(progress->phase),
                 (long long)progress->done_bytes, (long long)progress->total_bytes);
    (void)fflush(stdout);
}

static void on_input(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct driver *driver = stream->data;

    (void)buf;
    if (got < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        images_free(AQ_TAKE(driver->images));
    }
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    static char room[256];

    (void)handle;
    (void)size;
    *buf = uv_buf_init(room, sizeof(room));
}

static void one_less(struct driver *driver)
{
    (void)fflush(stdout);
    if (--driver->waiting)
        return;
    if (driver->keep && !driver->failed) {
        driver->input.data = driver;
        (void)uv_pipe_init(&driver->loop, &driver->input, 0);
        (void)uv_pipe_open(&driver->input, 0);
        (void)uv_read_start((uv_stream_t *)&driver->input, on_room, on_input);
    } else {
        images_free(AQ_TAKE(driver->images));
    }
}

static void on_ready(void *data, struct image *image)
{
    struct wanted *wanted = data;

    (void)printf("ready %s %s ", wanted->name, image->digest ? image->digest : "-");
    for (size_t i = 0; i < image->lower_count; i++)
        (void)printf("%s%s", i ? ":" : "", image->lowers[i]);
    (void)printf("\n");
    wanted->image = image;
    one_less(wanted->driver);
}

static void on_failed(void *data, const struct aq_error *err)
{
    struct wanted *wanted = data;

    (void)printf("failed %s %s %s\n", wanted->name, err->kind ? err->kind : "-", err->text);
    wanted->driver->failed++;
    one_less(wanted->driver);
}

static int get(struct driver *driver, int count, char **names, enum image_policy policy)
{
    static const struct image_events events = { on_progress, on_ready, on_failed };
    const char *user = getenv("DRIVER_USER");
    struct wanted wanted[64] = { { NULL } };

    driver->waiting = count;
    for (int i = 0; i < count && i < 64; i++) {
        struct image_request *request;
        struct aq_error err = { 0 };

        wanted[i] = (struct wanted){ .driver = driver, .name = names[i] };
        if (images_get(driver->images, names[i], NULL, policy, &events, &wanted[i], &request, &err)
            < 0)
            on_failed(&wanted[i], &err);
        else if (user && user[0])
            image_request_charge(request, user);
    }
    (void)uv_run(&driver->loop, UV_RUN_DEFAULT);
    for (int i = 0; i < count && i < 64; i++)
        image_unref(wanted[i].image);
    return driver->failed > 0;
}

static int print_image(void *data, const struct image_info *info)
{
    (void)data;
    (void)printf("%s %lld", info->digest, (long long)info->size_bytes);
    for (size_t i = 0; i < info->name_count; i++)
        (void)printf(" %s", info->names[i]);
    (void)printf("\n");
    return 0;
}

static int act(struct driver *driver, const char *verb, int count, char **args)
{
    struct aq_error err = { 0 };
    int64_t bytes = 0;
    int r = 0;

    driver->keep = strcmp(verb, "hold") == 0;
    if (strcmp(verb, "get") == 0 || driver->keep)
        return get(driver, count, args, IMAGE_PULL_MISSING);
    if (strcmp(verb, "always") == 0)
        return get(driver, count, args, IMAGE_PULL_ALWAYS);
    if (strcmp(verb, "ls") == 0)
        r = images_each(driver->images, print_image, NULL);
    else if (strcmp(verb, "rm") == 0)
        r = images_remove(driver->images, args[0], &bytes, &err);
    else
        bytes = images_collect(driver->images, strcmp(verb, "gc-all") == 0);
    if (r < 0)
        (void)printf("failed %s %s\n", err.kind ? err.kind : "-", err.text);
    else
        (void)printf("freed %lld\n", (long long)bytes);
    (void)uv_run(&driver->loop, UV_RUN_DEFAULT); /* until what is removed is gone */
    images_free(driver->images);
    (void)uv_run(&driver->loop, UV_RUN_DEFAULT);
    return r < 0;
}

int main(int argc, char **argv)
{
    struct driver driver = { .waiting = 0 };
    struct aq_error err = { 0 };
    int r;

    if (argc < 4)
        return 2;
    log_init("image-driver", LOG_LEVEL_DEBUG);
    (void)uv_loop_init(&driver.loop);
    r = settings_load(argv[2], argv[1], false, &driver.settings, &err);
    if (r == 0)
        r = images_new(&driver.loop, &driver.settings, &driver.images, &err);
    if (r < 0)
        log_error("%s", err.text);
    else
        r = act(&driver, argv[3], argc - 4, argv + 4);
    (void)uv_run(&driver.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&driver.loop);
    settings_done(&driver.settings);
    return r != 0;
}
