/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - a front daemon's certificate in its state directory: link/identity.h */
#ifndef AQ_FRONT_IDENTITY_H
#define AQ_FRONT_IDENTITY_H

#include "front/settings.h"
#include "link/identity.h"

/* As link_identity_join(). The id is "PROGRAM:NAME" of the settings. */
int front_identity_join(const struct front_settings *settings, const char *address,
                        const char *token, struct aq_error *err);
/* As link_identity_keep_epoch() and link_identity_keep_managers(). */
int front_identity_keep_epoch(const struct front_settings *settings, int64_t epoch,
                              struct aq_error *err);
int front_identity_keep_managers(const struct front_settings *settings,
                                 const struct link_manager *list, size_t count,
                                 struct aq_error *err);
/* -ENOENT, saying what to do, before joining. */
int front_identity_load(const struct front_settings *settings, struct link_identity *ret,
                        struct aq_error *err);

#endif
