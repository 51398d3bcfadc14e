/* SPDX-License-Identifier: Apache-2.0 */
/* serving_view.h - model services as clients see them */
#ifndef AQ_MANAGER_SERVING_SERVING_VIEW_H
#define AQ_MANAGER_SERVING_SERVING_VIEW_H

#include "manager/call/api.h"
#include "manager/core/services.h"
#include "store/model_service.h"

/* May the caller see and change it: is it theirs, or do they administer its domain? */
bool serving_view_may(const struct request *req, const struct model_service *s);

/* Those of the caller that have ended, and with 'all' what an administrator sees besides. Borrows from
 * 'who'.
 */
struct model_service_ended serving_view_ended(const struct principal *who, bool all);

/* Replicas that have not ended, by what they do. */
struct serving_counts {
    int64_t ready;     /* and take requests */
    int64_t starting;  /* never answered yet */
    int64_t unhealthy; /* answered, and do not now */
    int64_t draining;
    int64_t outdated; /* of another revision than the goal, and not draining */
};

struct serving_counts serving_view_count(const struct core *core, const struct model_service *s);

/* "ready", "scaling", "sleeping", "degraded", "failing", "ending", "ended". 'is_failing': as of
 * core_service_is_failing(). Pure.
 */
const char *serving_view_status(const struct model_service *s, const struct serving_counts *counts,
                                bool is_failing);

/* Where clients ask it first, in the arena; NULL: it has ended, or no proxy is connected. */
const char *serving_view_url(const struct core *core, const struct model_service *s,
                             struct arena *arena);

/* An object. With 'is_whole' also the list of its replicas. One that has
 * ended has no replicas.
 */
void serving_view_write(const struct api *api, const struct model_service *s, bool is_whole,
                        struct jsonw *w);

/* {"number", "note", ..., and what the revision says} */
void serving_view_write_revision(const struct core *core, const struct model_service *s,
                                 const struct model_service_revision *revision, struct jsonw *w);

/* A part of a device as a number, null = there is none. */
void serving_view_write_share(const char *key, int64_t share_micro, struct jsonw *w);

/* The members of a token; the object is open. */
void serving_view_write_token(const struct core *core, const struct model_service_token *token,
                              struct jsonw *w);

/* ---- figures: serving_use.h ---- */

/* "figures": of the service. */
void serving_view_write_figures(const struct api *api, const struct model_service *s,
                                struct jsonw *w);
/* "revision_figures": a list of the goal and of those that have had requests. */
void serving_view_write_revision_figures(const struct api *api, const struct model_service *s,
                                         struct jsonw *w);
/* Members of a replica; the object is open. */
void serving_view_write_replica_figures(const struct api *api, const struct uuid *service_id,
                                        const struct uuid *session_id, struct jsonw *w);
/* "figures": of a token. */
void serving_view_write_token_figures(const struct api *api, const struct uuid *service_id,
                                      const struct uuid *token_id, struct jsonw *w);

/* The 404 of one that there is not, or that the caller may not see. */
int serving_view_set_unknown(const char *name, struct aq_error *ret);

#endif
