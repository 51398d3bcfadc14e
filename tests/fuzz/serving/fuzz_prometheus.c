/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a Prometheus server: one that is refused has words, one of another status never is a
 * number.
 */
#include <stdint.h>
#include <stdlib.h>

#include "serving/prometheus_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aq_error err = { 0 };
    double value;

    if (prometheus_answer_read(200, (const char *)data, size, &value, &err) < 0 && !err.text[0])
        abort();
    if (prometheus_answer_read(503, (const char *)data, size, &value, &err) == 0)
        abort();
    return 0;
}
