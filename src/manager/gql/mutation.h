/* mutation.h - what mutations of images share; each answers {ok msg} */
#ifndef AQ_MANAGER_GQL_MUTATION_H
#define AQ_MANAGER_GQL_MUTATION_H

#include "manager/api/api.h"
#include "manager/gql/resolve.h"

struct outcome {
    bool ok;
    const char *msg;
    const char *task_id; /* NULL = nothing goes on */
};

/* Fill in the result; GQL_DONE or a failure. Texts are copied. */
int mutation_finish(struct gql_call *call, bool ok, const char *msg, const struct uuid *task_id);

/* False after the call has been answered: only superadmins may. */
bool mutation_may(struct gql_call *call);

struct api *mutation_api(const struct gql_call *call);

/* NULL, or what is wrong with names of images and ids of agents. */
const char *mutation_check_lists(struct gql_call *call, const struct gql_value *images,
                                 const struct gql_value *agents);

/* preload.c: the mutation preload_image. */
int preload_image(struct gql_call *call);

#endif
