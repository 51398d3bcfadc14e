/* SPDX-License-Identifier: Apache-2.0 */
/* session_feature.h - what sessions of which type can do
 *
 * The table of Backend.AI's concepts: a feature that a type has not is refused. Pure.
 */
#ifndef AQ_MODEL_SESSION_FEATURE_H
#define AQ_MODEL_SESSION_FEATURE_H

#include "base/error.h"
#include "model/status.h"

enum session_feature {
    SESSION_CODE, /* running code by requests */
    SESSION_APPS, /* apps and service ports */
    SESSION_SSH,  /* sshd, for files and terminals */
    SESSION_FEATURE_COUNT
};

/* 0, or -EPERM of the kind "session-type-lacks-feature" that names both. */
int session_feature_check(enum session_type type, enum session_feature feature,
                          struct aq_error *err);

#endif
