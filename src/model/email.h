/* SPDX-License-Identifier: Apache-2.0 */
/* email.h - e-mail addresses of accounts */
#ifndef AQ_MODEL_EMAIL_H
#define AQ_MODEL_EMAIL_H

#include "base/error.h"

/* An address that a new account may have: LOCAL@DOMAIN, of which LOCAL has letters, digits and
 * . _ + - ' = / %, does not begin with '-', and DOMAIN has letters, digits, '.', '-' and '_'.
 * Letters beyond ASCII are fine in both. RFC 5322 allows more, among which are characters that a
 * shell acts on. -EINVAL names the field "email".
 */
int email_check_new(const char *text, struct aq_error *err) AQ_UNTRUSTED;

#endif
