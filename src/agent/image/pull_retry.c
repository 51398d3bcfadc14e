/* SPDX-License-Identifier: Apache-2.0 */
/* pull_retry.c - asks a registry again after it broke off, was overloaded or fell silent */
#include <errno.h>
#include <string.h>

#include "agent/image/pull.h"
#include "base/clock.h"
#include "base/log.h"

#define PAUSE_MSEC 1000 /* before the second try; doubled before each further one */

/* Tries in a row that brought little (pull_fetch_count()). A wrong name, login or image fails in
 * the same way at every try.
 */
static unsigned pull_retry_max(const struct pull *pull, const struct aq_error *err)
{
    if (pull->ref.form != REFERENCE_REGISTRY || !err->kind
        || strcmp(err->kind, "image-registry") != 0)
        return 1;
    switch (err->code) {
    case EPIPE:
    case ECONNRESET:
    case EREMOTEIO:
        return 5;
    case ETIMEDOUT:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case EBUSY: /* skopeo or aliquot-fetch has waited for as long as the registry said, up to a
                   minute each time */
        return 3;
    default:
        return 1;
    }
}

static void pull_retry_on_timer(uv_timer_t *timer)
{
    struct pull *pull = timer->data;

    pull->again(pull);
}

/* Adds the number of tries and the bytes received, of the one missing layer or of all layers. */
static void pull_retry_give_up(const struct pull *pull, struct aq_error *err)
{
    int64_t all = pull->manifest.size_bytes, done = pull->measured_bytes;
    const struct pull_layer *layer = pull->directory.only_missing;

    if (pull->phase < IMAGE_FETCHING)
        (void)aq_error_wrap(err, "gave up after %u tries", pull->failures);
    else if (layer)
        (void)aq_error_wrap(err, "gave up after %u tries with %lld of %lld bytes of layer %.71s",
                            pull->failures, (long long)AQ_MAX(done - (all - layer->size_bytes), 0),
                            (long long)layer->size_bytes, layer->digest);
    else
        (void)aq_error_wrap(err, "gave up after %u tries with %lld of %lld bytes of all layers",
                            pull->failures, (long long)done, (long long)all);
}

bool pull_retry(struct pull *pull, void (*again)(struct pull *pull), struct aq_error *err)
{
    unsigned most = pull_retry_max(pull, err);
    uint64_t pause_msec = (uint64_t)PAUSE_MSEC << pull->failures;
    int64_t until_usec = pull->began_usec + pull->images->settings->image_timeout_usec;

    if (most == 1)
        return false;
    if (++pull->failures >= most || clock_monotonic_usec() >= until_usec) {
        pull_retry_give_up(pull, err);
        return false;
    }
    log_warning("%s; try %u of %u in %u seconds", err->text, pull->failures + 1, most,
                (unsigned)(pause_msec / 1000));
    pull->again = again;
    pull->failure = *err;
    (void)uv_timer_start(&pull->timer, pull_retry_on_timer, pause_msec, 0);
    pull_tell(pull, IMAGE_RETRYING, pull->measured_bytes); /* last: it may end the pull */
    return true;
}
