/* SPDX-License-Identifier: Apache-2.0 */
/* field_schema.h - tables of fields as JSON Schema, for documentation
 *
 * Written from the tables that decode.h reads requests by. Fields are under the first of their
 * names, the others are in "x-aliases". Pure.
 */
#ifndef AQ_MANAGER_CALL_FIELD_SCHEMA_H
#define AQ_MANAGER_CALL_FIELD_SCHEMA_H

#include "base/jsonw.h"
#include "manager/call/decode.h"

/* Whether a request must have the field. */
bool field_schema_is_required(const struct field *field);

/* A schema of the value of one field, without its notes. */
void field_schema_write_value(const struct field *field, struct jsonw *w);

/* "description", "deprecated" and "x-aliases" as members of an object that was begun; those that
 * would say nothing are left out.
 */
void field_schema_write_notes(const struct field *field, struct jsonw *w);

/* A schema of the object that has the table's fields. */
void field_schema_write_object(const struct field *table, struct jsonw *w);

#endif
