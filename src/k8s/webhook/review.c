/* SPDX-License-Identifier: Apache-2.0 */
/* review.c - see review.h */
#include "k8s/webhook/review.h"

#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "base/log.h"
#include "k8s/webhook/base64.h"
#include "k8s/webhook/pod_review.h"

#define API_VERSION "admission.k8s.io/v1"
#define REFUSED 403

static const char *review_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

static bool review_says(const json_t *object, const char *member, const char *value)
{
    const char *text = review_text(object, member);

    return text && strcmp(text, value) == 0;
}

static void review_add_patch(json_t *response, const json_t *patch)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(patch, JSON_COMPACT);
    AQ_CLEANUP(aq_freep) char *encoded = base64_write(text, strlen(text));

    json_object_set_new(response, "patchType", json_string("JSONPatch"));
    json_object_set_new(response, "patch", json_string(encoded));
}

static int review_add_refusal(json_t *response, const json_t *request, const struct aq_error *why,
                              struct aq_error *err)
{
    const char *space = review_text(request, "namespace");

    log_info("a pod in namespace '%.63s' is refused: %s", space ? space : "", why->text);
    json_object_set_new(response, "allowed", json_false());
    if (json_object_set_new(response, "status",
                            json_pack("{s:i, s:s}", "code", REFUSED, "message", why->text))
        < 0)
        return aq_fail(err, EINVAL, "the refusal '%.200s' is not UTF-8", why->text);
    return 0;
}

/* A pod, or ephemeral containers of one, which the API server sends as the whole pod. */
static int review_object(const struct pod_review *review, const json_t *request,
                         struct aq_error *err)
{
    const json_t *pod = json_object_get(request, "object");

    if (review_says(request, "operation", "CREATE"))
        return pod_review(review, pod, err);
    if (review_says(request, "subResource", "ephemeralcontainers"))
        return pod_review_debug(review, pod, json_object_get(request, "oldObject"), err);
    return 0;
}

/* Fill what is a response already. */
static int review_pod(const struct settings *settings, const json_t *request, json_t *response,
                      struct aq_error *err)
{
    struct pod_review review = { .settings = settings,
                                 .patch = json_array(),
                                 .warnings = json_array() };
    struct aq_error why = { 0 };
    int r = review_object(&review, request, &why);

    if (r == -EPERM) {
        r = review_add_refusal(response, request, &why, err);
    } else if (r < 0) {
        *err = why;
    } else if (json_array_size(review.patch)) {
        review_add_patch(response, review.patch);
        if (json_array_size(review.warnings))
            json_object_set(response, "warnings", review.warnings);
    }
    json_decref(review.patch);
    json_decref(review.warnings);
    return r;
}

static int review_request(const struct settings *settings, const json_t *request, char **ret,
                          struct aq_error *err)
{
    json_t *response = json_pack("{s:s, s:b}", "uid", review_text(request, "uid"), "allowed", true);
    json_t *answer = json_pack("{s:s, s:s, s:O}", "apiVersion", API_VERSION, "kind",
                               "AdmissionReview", "response", response);
    int r = 0;

    if (review_says(json_object_get(request, "kind"), "kind", "Pod"))
        r = review_pod(settings, request, response, err);
    if (r == 0)
        *ret = json_dump_text(answer, JSON_COMPACT);
    json_decref(response);
    json_decref(answer);
    return r;
}

int review_answer(const struct settings *settings, const char *body, size_t len, char **ret,
                  struct aq_error *err)
{
    json_t *review = json_load_text(body, len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *request = json_object_get(review, "request");
    int r;

    if (!review_says(review, "apiVersion", API_VERSION) || !review_text(request, "uid"))
        r = aq_fail(err, EINVAL, "this is no AdmissionReview of " API_VERSION);
    else
        r = review_request(settings, request, ret, err);
    json_decref(review);
    return r;
}
