/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - signatures already seen
 *
 * A signature is good for 15 minutes around its date; this remembers those of
 * requests that change something, so that none is accepted twice. About five
 * to ten bytes each. Two different signatures of one second are taken for the
 * same with a chance below one in 10^8; the request is then refused. At the
 * cap new requests are refused rather than old ones forgotten; a key may have half of what
 * is free (as in quota.h), so none fills it for all. Memory only: a restart forgets.
 */
#ifndef AQ_HTTP_REPLAY_H
#define AQ_HTTP_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct http_replay;

#define REPLAY_DEFAULT_MAX 4000000u

/* 'entries_max' 0 = the default. */
struct http_replay *replay_new(size_t entries_max);
void replay_free(struct http_replay *replay);
/* Another number of entries; what is remembered stays. */
void replay_set_max(struct http_replay *replay, size_t entries_max);
AQ_DEFINE_CLEANUP(struct http_replay, replay_free)

/* Note a verified signature of an access key, dated 'date_usec'. 0 if it is new; -EEXIST
 * (auth-failed) if it was seen; -EAGAIN (rate-limit-exceeded) at the cap or the
 * key's part of it, or without memory; -EINVAL (invalid-auth-params) outside the window.
 */
int replay_check(struct http_replay *replay, const char *access_key, const uint8_t signature[32],
                 int64_t date_usec, int64_t now_usec, struct aq_error *err);

#endif
