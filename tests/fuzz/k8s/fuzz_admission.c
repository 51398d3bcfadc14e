/* SPDX-License-Identifier: Apache-2.0 */
/* An AdmissionReview, with all that settings can switch on: every answer is one, and what may be made has
 * been changed to what may be made as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/log.h"
#include "k8s/webhook/base64.h"
#include "k8s/webhook/pod_review.h"
#include "k8s/quantity.h"
#include "k8s/webhook/review.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings settings = { .memory_name = (char *)(uintptr_t) "alnair/vgpu-memory",
                                 .compute_name = (char *)(uintptr_t) "alnair/vgpu-compute",
                                 .memory_unit = INT64_C(1) << 30,
                                 .compute_units = 100,
                                 .webhook = { .scheduler = (char *)(uintptr_t) "aliquot",
                                              .card_memory = 80,
                                              .default_memory = size % 2,
                                              .hami = size % 3 } };
    struct aq_error err = { 0 };
    char *answer = NULL, *patch;
    json_t *review, *response, *operations;

    log_init("fuzz", LOG_LEVEL_ERR);
    if (review_answer(&settings, (const char *)data, size, &answer, &err) < 0)
        return 0;
    review = json_load_string(answer, 0);
    response = json_object_get(review, "response");
    if (!json_is_boolean(json_object_get(response, "allowed")))
        __builtin_trap();
    if (json_object_get(response, "patch")) {
        patch = base64_read(json_string_value(json_object_get(response, "patch")));
        operations = json_load_string(patch, 0);
        if (json_is_false(json_object_get(response, "allowed")) || !json_array_size(operations))
            __builtin_trap();
        json_decref(operations);
        free(patch);
    }
    json_decref(review);
    free(answer);
    return 0;
}
