/* SPDX-License-Identifier: Apache-2.0 */
/* image_mutation.h - what mutations of images share; each answers {ok msg} */
#ifndef AQ_MANAGER_GQL_IMAGE_MUTATION_H
#define AQ_MANAGER_GQL_IMAGE_MUTATION_H

#include "manager/request/api.h"
#include "manager/gql/resolve.h"

struct image_mutation_result {
    bool ok;
    const char *msg;
    const char *task_id; /* NULL = nothing goes on */
};

/* Fill in the result; GQL_DONE or a failure. Texts are copied. */
int image_mutation_finish(struct gql_call *call, bool ok, const char *msg,
                          const struct uuid *task_id);

/* False after the call has been answered: only superadmins may. */
bool image_mutation_may(struct gql_call *call);

struct api *image_mutation_api(const struct gql_call *call);

/* NULL, or what is wrong with names of images and ids of agents. */
const char *image_mutation_check_lists(struct gql_call *call, const struct gql_value *images,
                                       const struct gql_value *agents);

/* image_preload.c: the mutation preload_image. */
int image_preload(struct gql_call *call);

#endif
