/* SPDX-License-Identifier: Apache-2.0 */
/* app_question.h - questions about an app to the executor of its container, and its answers
 *
 * Clients give variables and arguments as JSON texts. The executor checks them by the app's
 * definition (runner/apps.h); what it answers is a stranger's.
 */
#ifndef AQ_MANAGER_STREAM_APP_QUESTION_H
#define AQ_MANAGER_STREAM_APP_QUESTION_H

#include "manager/call/api.h"

#define APP_GIVEN_MAX 65536  /* bytes of each of the two texts */
#define APP_WAIT_MSEC 600000 /* a definition may say so much */

struct app_params {
    const char *app, *arguments, *envs, *owner_access_key, *kernel;
    int64_t port;    /* 0 = the first */
    bool half_close; /* of a connection: the client is told of the program's end */
    bool is_serving; /* of a connection: requests of a model service, which are nobody's work */
};
extern const struct field app_fields[];
#define APP_HALF_CLOSE_FIELD                                                              \
    {                                                                                     \
        "half_close", FIELD_BOOL, 0, offsetof(struct app_params, half_close),             \
            .doc = "the program's end is told by {\"type\": \"end\"}, and closes nothing" \
    }

/* {"port", "envs", "arguments"}. -EINVAL names the parameter. */
int app_question_write(const struct app_params *params, struct strbuf *out, struct aq_error *err);

/* The port that it listens on, or why there is none: of the kinds "object-not-found",
 * "invalid-api-params", "app-failed".
 */
int app_question_read(const json_t *answer, const char *app, uint16_t *ret, struct aq_error *err);

#endif
