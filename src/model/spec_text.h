/* SPDX-License-Identifier: Apache-2.0 */
/* spec_text.h - the spec of a session as memory keeps it: without long texts */
#ifndef AQ_MODEL_SPEC_TEXT_H
#define AQ_MODEL_SPEC_TEXT_H

/* What is longer is kept without its command, bootstrap script and environment: only the agent
 * needs these, and the store has them. */
#define SPEC_TEXT_KEPT_MAX 4096

/* The part of it that is kept, to be freed; NULL in *ret if that is all of it. 0 or -ENOMEM. */
int spec_text_shorten(const char *spec, char **ret);

#endif
