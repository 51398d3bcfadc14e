#include "agent/prepare.h"

#include <errno.h>

#include "agent/container.h"
#include "base/fault.h"
#include "base/log.h"

static void on_image_ready(void *data, struct image *image)
{
    struct local_kernel *k = data;

    k->image_request = NULL;
    k->image = image;
    AQ_FAULT("agent.image.ready");
    kernel_step(k);
}

static void on_image_failed(void *data, const struct aq_error *err)
{
    struct local_kernel *k = data;

    k->image_request = NULL;
    kernel_fail(k, err);
}

static const struct image_events image_events = { .on_ready = on_image_ready,
                                                  .on_failed = on_image_failed };

int prepare_container(struct local_kernel *k, struct aq_error *err)
{
    int r = container_is_wanted(k->agent, k->image_name, &k->is_container, err);

    if (r < 0 || !k->is_container || k->image)
        return r;
    if (!k->image_request)
        r = images_get(k->agent->images, k->image_name, NULL, IMAGE_PULL_MISSING, &image_events, k,
                       &k->image_request, err);
    return r < 0 ? r : -EINPROGRESS;
}

void prepare_adopt(struct local_kernel *k)
{
    struct aq_error err = { 0 };

    (void)container_is_wanted(k->agent, k->image_name, &k->is_container, &err);
    if (k->is_container && images_find(k->agent->images, k->image_name, &k->image, &err) < 0)
        log_info("the image of a kernel is got anew if that is started again: %s", err.text);
}

void prepare_release(struct local_kernel *k)
{
    if (k->image_request)
        images_cancel(AQ_TAKE(k->image_request));
    image_unref(AQ_TAKE(k->image));
}
