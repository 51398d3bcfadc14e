/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes in objects of Kubernetes */
#ifndef AQ_K8S_WEBHOOK_BASE64_H
#define AQ_K8S_WEBHOOK_BASE64_H

#include <stddef.h>

#include "base/cleanup.h"

/* To be freed. */
char *base64_write(const char *bytes, size_t len);

/* A text that ends with NUL, to be freed; NULL if it is none or has a NUL. */
char *base64_read(const char *text) AQ_UNTRUSTED;

#endif
