/* SPDX-License-Identifier: Apache-2.0 */
/* sdl.h - schema documents into type tables: what the files of the builder share */
#ifndef AQ_GRAPHQL_SDL_SDL_H
#define AQ_GRAPHQL_SDL_SDL_H

#include "base/map.h"
#include "graphql/errors.h"

/* Scalars, directives and introspection types, as pieces of schema text; NULL ends them. */
extern const char *const gql_prelude[];

/* One named type while the tables are made. */
struct sdl_type {
    struct gql_type type; /* first: tables point here */
    const struct ast_definition *def;
    const struct ast_definition **extensions;
    uint32_t extension_count;
    bool builtin;     /* of the prelude */
    bool own;         /* the schema's own text has it (again) */
    bool ordered;     /* has an id */
    uint8_t defaults; /* 0 = to do, 1 = under way, 2 = done */
};

struct sdl {
    struct arena *arena; /* of the schema */
    struct errors *errors;
    struct map types; /* name -> struct sdl_type, in the order of the text */
    struct gql_schema *schema;
    const struct ast_definition *user; /* definitions of the schema's own text */
};

/* The first error counts: nothing goes on after it. All return false then. */
bool sdl_fail(struct sdl *sdl, uint32_t at, const char *fmt, ...) AQ_PRINTF(3, 4);
void *sdl_alloc(struct sdl *sdl, size_t count, size_t size);
char *sdl_copy(struct sdl *sdl, const char *text, size_t len);

/* What must hold for directives in the text (directives.c). */
bool sdl_check_directives(struct sdl *sdl);

/* What must hold for the finished types (check.c). */
bool sdl_check_types(struct sdl *sdl);

/* Coerce all default values (defaults.c); 'prelude' defines the language's directives. */
bool sdl_set_defaults(struct sdl *sdl, const struct ast_definition *prelude);

/* Fill in ids, orders and tables of the schema (tables.c). */
bool sdl_order(struct sdl *sdl);

/* The argument of a directive, NULL if it is absent or null. */
const struct ast_value *sdl_directive_value(const struct ast_directive *directives,
                                            const char *directive, const char *arg);
const struct ast_directive *sdl_directive(const struct ast_directive *directives, const char *name);

#endif
