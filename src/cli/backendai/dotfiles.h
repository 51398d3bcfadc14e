/* SPDX-License-Identifier: Apache-2.0 */
/* dotfiles.h - the column "dotfiles" of Backend.AI: bytes of MessagePack in hex, after "\x" */
#ifndef AQ_CLI_BACKENDAI_DOTFILES_H
#define AQ_CLI_BACKENDAI_DOTFILES_H

#include <jansson.h>

#include "base/error.h"

/* [{"path", "perm", "data"}, ...], the caller's (json_decref). -EINVAL for anything else. */
int dotfiles_read(const char *text, json_t **ret, struct aq_error *err) AQ_UNTRUSTED;

#endif
