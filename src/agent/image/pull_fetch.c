/* SPDX-License-Identifier: Apache-2.0 */
/* The blobs of an image that are missing, into a directory of its own. */
#include <errno.h>
#include <string.h>

#include "agent/image/store_layout.h"
#include "agent/image/oci_layout.h"
#include "agent/image/pull.h"
#include "agent/settings/image_registries.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"

#define MEASURE_MSEC 200
#define STALL_USEC (300 * USEC_PER_SEC)    /* skopeo may write a large layer to disk that long */
#define PROGRESS_BYTES (INT64_C(16) << 20) /* of a try that is not a failure in a row */
#define UNPACKED_FACTOR 3 /* of a blob's size, for what is in it, until that is known better */

/* ---- room on the disk ---- */

/* Of blobs whose layers are not unpacked yet. */
static int64_t pull_fetch_packed_bytes(const struct pull *pull)
{
    int64_t sum = 0;

    for (size_t i = 0; i < pull->directory.layer_count; i++)
        if (pull_must_unpack(pull, i))
            sum += pull->directory.layers[i].size_bytes;
    return sum;
}

static void pull_fetch_on_room(void *data)
{
    pull_fetch(data);
}

static int pull_fetch_make_room(struct pull *pull, int64_t bytes, bool is_estimate,
                                struct aq_error *err)
{
    const struct room_wish wish = { .bytes = bytes,
                                    .user = pull_user(pull),
                                    .image_bytes = pull_fetch_packed_bytes(pull) * pull->factor,
                                    .is_estimate = is_estimate };

    pull->room.on_made = pull_fetch_on_room;
    pull->room.data = pull;
    return room_make(pull->images, &wish, &pull->room, err);
}

int pull_make_room(struct pull *pull, struct aq_error *err)
{
    int64_t available = room_available(pull->images), packed = pull_fetch_packed_bytes(pull);

    while (packed && packed * pull->factor <= available)
        pull->factor *= 2;
    return pull_fetch_make_room(pull, AQ_MAX(packed * pull->factor - available, 1), true, err);
}

/* There has to be room for the blobs, and if others can give way, for what is in them. */
static int pull_fetch_find_room(struct pull *pull, struct aq_error *err)
{
    int64_t available = room_available(pull->images), missing = pull->missing_bytes;
    int64_t wanted = missing + pull_fetch_packed_bytes(pull) * pull->factor;
    int r;

    if (wanted <= available)
        return 0;
    r = pull_fetch_make_room(pull, wanted - available, false, NULL);
    if (r == -ENOSPC && missing <= AQ_MAX(available, 0))
        return 0; /* unpacking will tell */
    if (r == -ENOSPC)
        r = pull_fetch_make_room(pull, missing - available, false, err);
    if (r == -EINPROGRESS || err->code)
        return r;
    return aq_fail_as(
        err, ENOSPC, "image-no-space", "image",
        "the image needs %lld bytes, but only %lld may be used, and %lld have to stay "
        "free ([image] keep-free); remove images or make room",
        (long long)missing, (long long)AQ_MAX(available, 0), (long long)room_kept(pull->images));
}

/* ---- fetching ---- */

static void pull_fetch_on_measure(uv_work_t *work)
{
    struct pull *pull = AQ_CONTAINER_OF(work, struct pull, measuring);

    if (pull->directory.keeps_parts)
        pull_directory_keep_parts(&pull->directory);
    pull->measured_bytes = pull_directory_measure(&pull->directory, &pull->is_too_long);
}

/* No byte has arrived for so long that the connection counts as dead. */
static bool pull_fetch_is_stalled(struct pull *pull)
{
    int64_t now = clock_monotonic_usec();

    if (pull->measured_bytes != pull->moved_bytes) {
        pull->moved_bytes = pull->measured_bytes;
        pull->moved_usec = now;
    }
    return pull->ref.form == REFERENCE_REGISTRY
           && now - pull->moved_usec
                  >= AQ_MIN(STALL_USEC, pull->images->settings->image_timeout_usec / 4);
}

void pull_fetch_failed(struct pull *pull, struct aq_error *err)
{
    pull->was_cut |= err->code != ENOSPC;
    if (err->code == ENOSPC ? pull_make_room(pull, err) != -EINPROGRESS
                            : !pull_retry(pull, pull_fetch, err))
        pull_failed(pull, err);
}

static void pull_fetch_end_stalled(struct pull *pull)
{
    struct aq_error err;

    tool_stop(AQ_TAKE(pull->tool));
    (void)uv_timer_stop(&pull->timer);
    (void)aq_fail_as(&err, ETIMEDOUT, "image-registry", "image",
                     "image '%.80s': the registry has sent nothing for %lld seconds",
                     pull->ref.text,
                     (long long)((clock_monotonic_usec() - pull->moved_usec) / USEC_PER_SEC));
    pull_fetch_failed(pull, &err);
}

static void pull_fetch_on_measured(uv_work_t *work, int status)
{
    struct pull *pull = AQ_CONTAINER_OF(work, struct pull, measuring);
    struct aq_error err;

    (void)status;
    pull->is_measuring = false;
    if (pull->is_over) {
        pull_let_go(pull);
    } else if (pull->is_too_long && pull->tool) { /* its digest would be wrong: do not wait */
        (void)aq_fail_as(&err, EBADMSG, "image-damaged", "image",
                         "image '%.80s': the registry sends more than its manifest says",
                         pull->ref.text);
        pull_failed(pull, &err);
    } else if (pull->tool && pull_fetch_is_stalled(pull)) {
        pull_fetch_end_stalled(pull);
    } else if (pull->tool) {
        pull_tell(pull, IMAGE_FETCHING, pull->measured_bytes);
    }
}

static void pull_fetch_on_timer(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    if (pull->is_measuring)
        return;
    pull->is_measuring = true;
    (void)uv_queue_work(pull->images->loop, &pull->measuring, pull_fetch_on_measure,
                        pull_fetch_on_measured);
}

static void pull_fetch_on_fetched(void *data, int status, const char *complaint)
{
    struct pull *pull = data;
    struct aq_error err = { 0 };

    pull->tool = NULL;
    (void)uv_timer_stop(&pull->timer);
    AQ_FAULT("agent.image.fetched");
    if (status) {
        (void)fetch_failed(&pull->ref, status, complaint, &err);
        pull_fetch_failed(pull, &err);
        return;
    }
    pull->is_copied = true;
    pull_tell(pull, IMAGE_FETCHING, pull->manifest.size_bytes);
    pull_unpack(pull);
}

static void pull_fetch_on_prepare(uv_work_t *work)
{
    struct pull *pull = work->data;
    AQ_CLEANUP(aq_freep) char *view = pull_directory_view_path(&pull->directory);
    int r = pull_directory_prepare(&pull->directory, &pull->missing_bytes, &pull->work_err);

    if (r == 0 && pull->directory.keeps_parts)
        r = pull_directory_write_missing(&pull->directory, &pull->work_err);
    if (r == 0 && pull->directory.is_view)
        (void)oci_layout_make_view(pull->ref.path, pull->digest, pull->manifest_text.len, view,
                                   &pull->work_err);
}

static void pull_fetch_on_no_output(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

void pull_fetch_copy(struct pull *pull, struct aq_error *err)
{
    static const struct tool_events events = { .on_output = pull_fetch_on_no_output,
                                               .on_end = pull_fetch_on_fetched };
    AQ_CLEANUP(aq_freep) char *view = NULL;

    if (pull->directory.is_view)
        view = pull_directory_view_path(&pull->directory);
    (void)fetch_blobs(pull->images, &pull->ref, pull->digest, view, pull->directory.path, &events,
                      pull, &pull->tool, err);
}

/* Tries that bring a layer, or so many bytes of one, begin the count of failures again. */
static void pull_fetch_count(struct pull *pull)
{
    if (pull->directory.missing_count < pull->was_missing_count
        || pull->missing_bytes <= pull->was_missing_bytes - PROGRESS_BYTES)
        pull->failures = 0;
    else if (pull->was_missing_count)
        return;
    pull->was_missing_bytes = pull->missing_bytes;
    pull->was_missing_count = pull->directory.missing_count;
}

static void pull_fetch_after_prepare(struct pull *pull, const struct aq_error *failure)
{
    struct aq_error err = *failure;

    pull_fetch_count(pull);
    if (!err.code && pull_fetch_find_room(pull, &err) == -EINPROGRESS)
        return;
    /* Blobs alone are not enough: skopeo has to check the node's policy, also where each layer is
     * already unpacked for another image.
     */
    if (!err.code && pull->is_copied && pull->directory.missing_count == 0) {
        pull_unpack(pull);
        return;
    }
    if (!err.code && pull->directory.keeps_parts && pull->directory.missing_count
        && (pull->was_cut || pull->directory.has_parts))
        pull_continue(pull, &err);
    else if (!err.code)
        pull_fetch_copy(pull, &err);
    if (err.code) {
        pull_failed(pull, &err);
        return;
    }
    pull->moved_usec = clock_monotonic_usec();
    pull_fetch_on_timer(&pull->timer);
    (void)uv_timer_start(&pull->timer, pull_fetch_on_timer, MEASURE_MSEC, MEASURE_MSEC);
}

void pull_fetch(struct pull *pull)
{
    for (size_t i = 0; i < pull->manifest.layer_count; i++)
        pull->directory.layers[i].is_here = layer_is_of_blob(
            map_gets(&pull->images->layers, pull->config.diff_ids[i]),
            pull->directory.layers[i].digest);
    pull->directory.keeps_parts = pull->ref.form == REFERENCE_REGISTRY && !pull->is_declined
                                  && !image_registries_has_mirror(pull->images->settings,
                                                                  &pull->ref);
    pull->phase = IMAGE_FETCHING;
    pull->told_bytes = -1;
    pull_work(pull, pull_fetch_on_prepare, pull_fetch_after_prepare);
}

void pull_plan(struct pull *pull)
{
    size_t count = pull->manifest.layer_count;

    pull->waiters = aq_alloc_array(count, sizeof(*pull->waiters));
    pull->directory.layers = aq_alloc_array(count, sizeof(*pull->directory.layers));
    pull->directory.layer_count = count;
    pull->factor = UNPACKED_FACTOR;
    pull->directory.path = aq_format("%s/pulls/%s", pull->images->directory,
                                     layout_digest_hex(pull->digest));
    for (size_t i = 0; i < count; i++) {
        const char *diff_id = pull->config.diff_ids[i];
        bool is_again = false;

        for (size_t k = 0; k < i; k++)
            is_again = is_again
                       || (strcmp(diff_id, pull->config.diff_ids[k]) == 0
                           && strcmp(pull->manifest.layers[i].digest,
                                     pull->manifest.layers[k].digest)
                                  == 0);
        (void)strcpy(pull->directory.layers[i].digest, pull->manifest.layers[i].digest);
        pull->directory.layers[i].size_bytes = pull->manifest.layers[i].size_bytes;
        pull->waiters[i].pull = pull;
        if (!is_again)
            pull->waiters[i].layer = layer_use(pull->images, diff_id);
    }
}
