/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - versions of the client API: "v6.20220615" */
#ifndef AQ_HTTP_VERSION_H
#define AQ_HTTP_VERSION_H

#include <stdint.h>

#include "base/error.h"

struct api_version {
    uint32_t major;
    uint32_t date; /* 20220615 */
};

/* What "GET /" announces: the newest that is understood. Clients take the
 * lower of it and their own.
 */
#define API_VERSION_ANNOUNCED "v9.20250722"
/* What a request without a version header means. */
#define API_VERSION_ASSUMED "v5.20191215"

/* Exactly ^v(\d+)\.(\d{8})$. Returns 0 or -EINVAL. */
int api_version_parse(const char *text, struct api_version *ret, struct aq_error *err) AQ_UNTRUSTED;

/* The version of a request from its header's text (NULL = none came). Only
 * published versions are accepted: otherwise generic-bad-request
 * "Unsupported API version.".
 */
int api_version_accept(const char *text, struct api_version *ret,
                       struct aq_error *err) AQ_UNTRUSTED;

#endif
